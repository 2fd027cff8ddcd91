/* A call tree for tests of the unwinder: as shim/tree.h says, in one table that never grows. */
#include <stddef.h>
#include <sys/mman.h>

#include "shim/tree.h"
#include "tests/unwind/tree.h"

#define NODES (1u << 23)
#define SLOTS (1u << 25)

static struct test_node *nodes;
static uint32_t *slots;
static uint32_t count = 1;
uint32_t test_tree_limit = NODES;

void test_tree_start(void)
{
	nodes = mmap(NULL, NODES * sizeof(*nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	slots = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

uint32_t mt_tree_child(uint32_t parent, uint64_t pc, uint32_t flags)
{
	uint64_t h = (pc ^ (uint64_t)parent << 40) * 0x9E3779B97F4A7C15ull + parent;
	uint32_t id, empty;

	h = (h ^ h >> 29) * 0xD6E8FEB86659FD93ull;
	for (uint32_t i = (uint32_t)(h >> 32) % SLOTS;; i = (i + 1) % SLOTS) {
		id = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
		if (id && nodes[id].parent == parent && nodes[id].pc == pc && nodes[id].flags == flags)
			return id;
		if (id)
			continue;
		id = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
		if (id >= test_tree_limit)
			return MT_NODE_FAILED;
		nodes[id] = (struct test_node){ pc, parent, flags };
		empty = 0;
		if (__atomic_compare_exchange_n(&slots[i], &empty, id, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return id;
	}
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
