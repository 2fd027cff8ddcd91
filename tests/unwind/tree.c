/* A call tree for tests of the unwinder: as shim/stack/tree.h says, in one table that never grows. */
#include <stddef.h>
#include <sys/mman.h>

#include "shim/base/sys.h"
#include "shim/base/tables.h"
#include "shim/stack/ehframe.h"
#include "shim/stack/maps.h"
#include "shim/stack/rules.h"
#include "shim/stack/tree.h"
#include "tests/unwind/tree.h"

/* There is no filter here. */
uint32_t mt_quiet;
uint32_t mt_maps_generation;
bool mt_maps_has(uint64_t at, size_t bytes, bool to_write) { return (void)at, (void)bytes, (void)to_write, false; }
bool mt_maps_in_first_stack(uint64_t from, uint64_t to) { return (void)from, (void)to, false; }
void mt_maps_look(void) {}

#define NODES (1u << 23)
#define FEW (1u << 14)  /* slots of the first table, which a small program doesn't fill */
#define MANY (1u << 25)
#define TABLES (1u << 20) /* bytes of the unwinder's */

static struct test_node *nodes;
static uint32_t *few, *many;
static uint32_t count = 1;
uint32_t test_tree_limit = NODES;

static void *pages(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void test_tree_start(void)
{
	struct mt_tables t = { pages(TABLES), 0 };

	mt_rules_tables(&t);
	mt_ehframe_tables(&t);
	nodes = pages(NODES * sizeof(*nodes));
	few = pages(FEW * sizeof(*few));
	many = pages(MANY * sizeof(*many));
}

/* Finds the node in a table, or makes it if `id` is nonzero; 0 if it isn't there. */
static uint32_t find(uint32_t *table, uint32_t mask, uint64_t h, struct test_node want, uint32_t make)
{
	uint32_t id, empty;

	for (uint32_t i = (uint32_t)(h >> 32) & mask;; i = (i + 1) & mask) {
		id = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
		if (id && nodes[id].parent == want.parent && nodes[id].pc == want.pc && nodes[id].flags == want.flags)
			return id;
		if (id)
			continue;
		if (!make)
			return 0;
		nodes[make] = want;
		empty = 0;
		if (__atomic_compare_exchange_n(&table[i], &empty, make, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return make;
	}
}

uint32_t mt_tree_child(uint32_t parent, uint64_t pc, uint32_t flags)
{
	uint64_t h = (pc ^ (uint64_t)parent << 40) * 0x9E3779B97F4A7C15ull + parent;
	struct test_node want = { pc, parent, flags };
	uint32_t id;

	h = (h ^ h >> 29) * 0xD6E8FEB86659FD93ull;
	id = find(few, FEW - 1, h, want, 0);
	if (!id && count > FEW / 2)
		id = find(many, MANY - 1, h, want, 0);
	if (id)
		return id;
	id = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	if (id >= test_tree_limit)
		return MT_NODE_FAILED;
	return id < FEW / 2 ? find(few, FEW - 1, h, want, id) : find(many, MANY - 1, h, want, id);
}

unsigned mt_tree_path(uint32_t parent, struct mt_tree_frame *path, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t id = mt_tree_child(parent, path[i].pc, path[i].flags);
		if (id == MT_NODE_FAILED)
			return i;
		parent = path[i].node = id;
	}
	return n;
}

const struct test_node *test_tree_node(uint32_t id)
{
	return &nodes[id];
}

uint32_t test_tree_count(void)
{
	return count - 1;
}

unsigned test_tree_path(uint32_t id, uint64_t *pc, unsigned most)
{
	unsigned n = 0;

	for (; id && n < most; id = nodes[id].parent)
		pc[n++] = nodes[id].pc;
	return n;
}
