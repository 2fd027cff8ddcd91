/*
 * How a child is found by (parent, pc). Nearly all nodes have few children: these are a list, newest first, whose links
 * lie beside the nodes in private memory. A list ends at SHORT entries; further children of the same parent go into a
 * hash table, as do all of the root. So a new node costs one access to memory that no cache has, that to its parent's
 * link; and what is called from a new node is new, too, its list one store to the link just made.
 */
#include <string.h>

#include "format/format.h"
#include "shim/base/clock.h"
#include "shim/base/disk.h"
#include "shim/base/file.h"
#include "shim/base/lock.h"
#include "shim/base/state.h"
#include "shim/stack/modules.h"
#include "shim/stack/tree.h"

#define SEGMENTS    (MT_MAX_NODES / MT_NODE_STEP)
#define BLOCK       65536u /* links that are mapped at a time */
#define SHORT       8
#define INDEX_START (1u << 10)
#define SMALL       (1u << 20) /* slots up to which an index grows fourfold */
#define HUGE        (4u << 20) /* bytes of an index from which on it has huge pages */
#define FEW         512u       /* nodes of the first segment that are reserved at first */
#define RUN         16u        /* segments that are made at once */
#define AHEAD       2048u      /* nodes whose pages are made writable at a time */

/* The newest child, the next older sibling: ids of 24 bits, 0 = none. */
struct link {
	uint32_t child, next;
};

#define ID_MASK  0xffffffu
#define IS_DEAD  (1u << 31) /* in next: its code is gone, it is not to be found again */
#define IN_INDEX (1u << 30) /* in next: it is in no list */

/* An entry is 0 or a node's id in the low 24 bits with 40 bits of its hash above. A match is verified against
 * the node, so that a stack is never another one's by accident. */
struct index {
	uint64_t mask;
	uint64_t used;
	uint64_t entry[];
};

static struct mt_node *segment[SEGMENTS];
static struct link *links[MT_MAX_NODES / BLOCK];
static struct index *table;
static uint64_t first_table[sizeof(struct index) / 8 + INDEX_START]; /* there is always one */
static uint16_t held[SEGMENTS];      /* nodes of each segment that have their place on the disk */
static uint32_t base, there, failed; /* there: ids below that are ours have theirs */
static uint64_t retry_ns;            /* of what failed */

static inline struct mt_node *node_at(uint32_t id)
{
	struct mt_node *seg = __atomic_load_n(&segment[id / MT_NODE_STEP], __ATOMIC_ACQUIRE);

	return seg ? &seg[id % MT_NODE_STEP] : NULL;
}

/* Of a node that exists: its link was there before it. */
static inline struct link *link_at(uint32_t id)
{
	return &__atomic_load_n(&links[id / BLOCK], __ATOMIC_ACQUIRE)[id % BLOCK];
}

static inline uint64_t hash_of(uint32_t parent, uint64_t pc)
{
	uint64_t h = (pc ^ (uint64_t)parent << 40) * 0x9E3779B97F4A7C15ull + parent;

	h ^= h >> 29;
	h *= 0xD6E8FEB86659FD93ull;
	return h ^ h >> 32;
}

/* A large index is used all over: in small pages each look-up would miss the cache of the page tables, too. */
static struct index *index_new(uint64_t slots)
{
	struct index *idx = mt_sys_pages(sizeof(*idx) + slots * sizeof(idx->entry[0]));

	if (idx && slots * sizeof(idx->entry[0]) >= HUGE)
		MT_SYS3(SYS_madvise, idx, slots * sizeof(idx->entry[0]), 14 /* MADV_HUGEPAGE */);

	if (idx)
		idx->mask = slots - 1;
	return idx;
}

/* Only `entry` is given back: a thread may still be probing the old table, finds it empty, and makes a node
 * twice. The header stays readable. */
static void index_retire(struct index *idx)
{
	uint64_t bytes = (idx->mask + 1) * sizeof(idx->entry[0]);

	if (bytes > 8192)
		MT_SYS3(SYS_madvise, ((uintptr_t)idx->entry + 4095) & ~(uintptr_t)4095, bytes - 8192, 4 /* DONTNEED */);
}

static void index_put(struct index *idx, uint64_t hash, uint32_t id)
{
	uint64_t value = (hash & ~0xffffffull) | id;

	for (uint64_t i = hash & idx->mask, n = 0; n <= idx->mask; i = (i + 1) & idx->mask, n++) {
		uint64_t empty = 0;
		/* release: who finds the id finds the node written; pairs with the acquire in find_in_index() */
		if (__atomic_compare_exchange_n(&idx->entry[i], &empty, value, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&idx->used, 1, __ATOMIC_RELAXED);
			return;
		}
	}
}

static uint32_t find_in_index(const struct index *idx, uint64_t hash, const struct mt_node *wanted)
{
	uint64_t value;

	for (uint64_t i = hash & idx->mask, n = 0; n <= idx->mask; i = (i + 1) & idx->mask, n++) {
		value = __atomic_load_n(&idx->entry[i], __ATOMIC_ACQUIRE);
		if (!value)
			break;
		if ((value ^ hash) >> 24 == 0) {
			const struct mt_node *node = node_at((uint32_t)(value & 0xffffff));
			if (node && node->pc == wanted->pc && node->parent == wanted->parent &&
			    node->flags == wanted->flags)
				return (uint32_t)(value & 0xffffff);
		}
	}
	return 0;
}

/* With so many entries more. */
static int index_would_be_full(const struct index *idx, uint32_t more)
{
	return (__atomic_load_n(&idx->used, __ATOMIC_RELAXED) + more) * 4 > (idx->mask + 1) * 3;
}

/* Rebuilds the index from the nodes themselves; the caller holds the lock. */
static void index_rebuild(uint64_t slots)
{
	struct index *old = table, *idx = index_new(slots);
	uint32_t end = mt_tree_end();

	if (!idx)
		return;
	for (uint32_t id = 1; id < end; id++) {
		const struct mt_node *node = node_at(id);
		if (!node) {
			id |= MT_NODE_STEP - 1; /* a gap between the parent's ids and ours */
			continue;
		}
		/* acquire pairs with set_next(): the node is whole */
		if ((__atomic_load_n(&link_at(id)->next, __ATOMIC_ACQUIRE) & (IN_INDEX | IS_DEAD)) == IN_INDEX)
			index_put(idx, hash_of(node->parent, node->pc), id);
	}
	__atomic_store_n(&table, idx, __ATOMIC_RELEASE);
	if (old)
		index_retire(old);
}

static void grow_index(uint32_t more)
{
	uint64_t signals;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		if (index_would_be_full(table, more))
			index_rebuild((table->mask + 1) * (table->mask < SMALL ? 4 : 2));
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
}

static int map_links(uint32_t block)
{
	struct link *new;

	if (links[block])
		return 1;
	new = mt_sys_pages(BLOCK * sizeof(*new));
	__atomic_store_n(&links[block], new, __ATOMIC_RELEASE);
	return new != NULL;
}

/* Maps segment i and those after it, `run` in all. Of the first one only some nodes are reserved: most processes make
 * few. How many ids more have their place, or 0. */
static uint32_t map_segments(uint32_t i, uint32_t run)
{
	uint32_t own = i - base / MT_NODE_STEP,
		 n = own ? run * MT_NODE_STEP : (uint32_t)mt_file_first(FEW, MT_NODE_STEP);
	size_t bytes = run * MT_NODE_STEP * sizeof(struct mt_node), reserved = n * sizeof(struct mt_node);
	struct mt_node *seg;

	if (i + run > SEGMENTS || mt_process_sandboxed() || !map_links(i * MT_NODE_STEP / BLOCK) ||
	    !map_links((i + run - 1) * MT_NODE_STEP / BLOCK) ||
	    !mt_disk_charge(reserved, own ? MT_CHARGE_KEPT : MT_CHARGE_FIRST))
		return 0;
	seg = mt_disk_map("nodes", (uint64_t)own * MT_NODE_STEP * sizeof(*seg), bytes, reserved,
			  own ? MT_EXTEND : MT_CREATE);
	if (!seg) {
		mt_disk_refund(reserved);
		return 0;
	}
	if (!own)
		mt_file_populate(seg, reserved);
	for (uint32_t k = 0; k < run; k++) {
		held[i + k] = n < MT_NODE_STEP ? FEW : MT_NODE_STEP;
		__atomic_store_n(&segment[i + k], seg + (uint64_t)k * MT_NODE_STEP, __ATOMIC_RELEASE);
	}
	return n;
}

/* Four times as many nodes of the first segment as before; how many more these are, or 0. */
static uint32_t fill_segment(uint32_t i)
{
	uint32_t have = held[i], n = 4 * have < MT_NODE_STEP ? 3 * have : MT_NODE_STEP - have;

	if (!mt_disk_reserve("nodes", have * sizeof(struct mt_node), n * sizeof(struct mt_node), segment[i] + have))
		return 0;
	mt_file_populate(segment[i] + have, n * sizeof(struct mt_node));
	held[i] = (uint16_t)(have + n);
	return n;
}

/* Fewer, larger mappings when the tree is large already. */
static uint32_t map_more(uint32_t i)
{
	uint32_t n = i - base / MT_NODE_STEP < RUN ? 0 : map_segments(i, RUN);

	return n ? n : map_segments(i, 1);
}

/* The caller holds the lock. */
static int extend(void)
{
	uint32_t i = there / MT_NODE_STEP, n = there % MT_NODE_STEP ? fill_segment(i) : map_more(i);

	/* release: who sees the id has its place sees the segment */
	__atomic_store_n(&there, there + n, __ATOMIC_RELEASE);
	__atomic_store_n(&mt_process.tree_bytes, (uint64_t)(there - base) * sizeof(struct mt_node), __ATOMIC_RELAXED);
	return n != 0;
}

/* The file must reach ids that are handed out. */
static int reach(uint32_t id)
{
	uint64_t signals;
	int ok = 1;

	if (id < __atomic_load_n(&there, __ATOMIC_ACQUIRE))
		return 1;
	if (id >= MT_MAX_NODES)
		return 0;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		while (ok && there <= id)
			ok = extend();
		mt_lock_drop(&mt_process.lock);
	} else {
		ok = 0;
	}
	mt_sys_restore_signals(&signals);
	return ok;
}

static void write_node(uint32_t id, uint32_t parent, uint64_t pc, uint32_t flags)
{
	struct mt_node *node = node_at(id);

	if (id % AHEAD == 0 && id - base >= MT_NODE_STEP)
		mt_file_populate(node, AHEAD * sizeof(*node));
	node->parent = parent;
	node->flags = flags;
	__atomic_store_n(&node->pc, pc, __ATOMIC_RELEASE);
}

/* The recorder may have made room, or the program. */
static int has_room_again(uint32_t n)
{
	uint64_t now = mt_clock_ns(CLOCK_MONOTONIC_COARSE);

	/* relaxed: two threads may both try */
	if (now < __atomic_load_n(&retry_ns, __ATOMIC_RELAXED))
		return 0;
	__atomic_store_n(&retry_ns, now + MT_DISK_RETRY_NS, __ATOMIC_RELAXED);
	if (!reach(mt_tree_end() + n))
		return 0;
	__atomic_store_n(&failed, 0, __ATOMIC_RELAXED);
	return 1;
}

/* The first of n new ids in a row, or MT_NODE_FAILED. */
static uint32_t new_ids(uint32_t n)
{
	uint32_t first;

	if (__atomic_load_n(&failed, __ATOMIC_RELAXED) && !has_room_again(n))
		return MT_NODE_FAILED;
	first = __atomic_fetch_add(&mt_process.info->node_end, n, __ATOMIC_RELAXED);
	if (reach(first) && reach(first + n - 1))
		return first;
	__atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
	return MT_NODE_FAILED;
}

/* Another thread may be marking the node as dead. */
static void set_next(struct link *l, uint32_t next)
{
	uint32_t old = __atomic_load_n(&l->next, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&l->next, &old, next | (old & IS_DEAD), 0, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* From now on other threads may find the node. Releases: who finds the id finds the node whole; they pair with the
 * acquires in find() and index_rebuild(). */
static void put_in_list(uint32_t parent, uint32_t id)
{
	struct link *of = link_at(parent);
	uint32_t newest = __atomic_load_n(&of->child, __ATOMIC_RELAXED);

	do
		set_next(link_at(id), newest);
	while (!__atomic_compare_exchange_n(&of->child, &newest, id, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void put_in_index(uint32_t parent, uint32_t id, uint64_t pc)
{
	struct index *idx = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	set_next(link_at(id), IN_INDEX);
	index_put(idx, hash_of(parent, pc), id);
	if (index_would_be_full(idx, 0))
		grow_index(0);
}

/* New nodes: the first is a child of `parent`, in its list or in the index; each other one is the only child of the one
 * before. */
static unsigned add_path(uint32_t parent, struct mt_tree_frame *path, unsigned n, int in_list)
{
	uint32_t first;

	for (unsigned i = 0; i < n; i++)
		if (!(path[i].flags & MT_NODE_PYTHON))
			mt_modules_meet(path[i].pc);
	first = new_ids(n);
	if (first == MT_NODE_FAILED)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		path[i].node = first + i;
		write_node(first + i, i ? first + i - 1 : parent, path[i].pc, path[i].flags);
		if (i)
			__atomic_store_n(&link_at(first + i - 1)->child, first + i, __ATOMIC_RELAXED);
	}
	if (in_list)
		put_in_list(parent, first);
	else
		put_in_index(parent, first, path[0].pc);
	return n;
}

/* The child that is wanted, or 0; *in_list is 0 if a new one is to go into the index. */
static uint32_t find_in_list(const struct mt_node *wanted, int *in_list)
{
	uint32_t id = __atomic_load_n(&link_at(wanted->parent)->child, __ATOMIC_ACQUIRE), next;

	for (int n = 0; id && n < SHORT; n++, id = next & ID_MASK) {
		const struct mt_node *node = node_at(id);
		next = __atomic_load_n(&link_at(id)->next, __ATOMIC_RELAXED);
		if (node->pc == wanted->pc && node->flags == wanted->flags && !(next & IS_DEAD))
			return id;
	}
	*in_list = !id;
	return 0;
}

/* Of the root all are in the index: with sampled stacks these are the callers of all allocations. */
static uint32_t find(const struct mt_node *wanted, int *in_list)
{
	uint32_t id = 0;

	*in_list = 0;
	if (wanted->parent)
		id = find_in_list(wanted, in_list);
	if (!id && !*in_list)
		id = find_in_index(__atomic_load_n(&table, __ATOMIC_ACQUIRE), hash_of(wanted->parent, wanted->pc),
				   wanted);
	return id;
}

unsigned mt_tree_path(uint32_t parent, struct mt_tree_frame *path, unsigned n)
{
	int in_list;

	for (unsigned i = 0; i < n; i++) {
		struct mt_node wanted = { path[i].pc, parent, path[i].flags };
		uint32_t id = find(&wanted, &in_list);
		if (!id)
			return i + add_path(parent, path + i, n - i, in_list);
		parent = path[i].node = id;
	}
	return n;
}

uint32_t mt_tree_child(uint32_t parent, uint64_t pc, uint32_t flags)
{
	struct mt_tree_frame frame = { pc, flags, 0 };

	return mt_tree_path(parent, &frame, 1) ? frame.node : MT_NODE_FAILED;
}

uint64_t mt_tree_pc(uint32_t id, uint32_t *parent)
{
	const struct mt_node *node = id < MT_MAX_NODES ? node_at(id) : NULL;

	*parent = node ? node->parent : 0;
	return node ? node->pc : 0;
}

unsigned mt_tree_stack(uint32_t node, uint64_t *pc, unsigned most)
{
	unsigned n = 0;

	while (node && n < most)
		pc[n++] = mt_tree_pc(node, &node);
	return n;
}

/* A parent maps its file ahead of its nodes: from `first` on, what a forked child inherited is not its own. */
static void drop_from(uint32_t first)
{
	for (uint32_t i = first / MT_NODE_STEP; i < SEGMENTS && segment[i]; i++) {
		mt_sys_unmap(segment[i], MT_NODE_STEP * sizeof(struct mt_node));
		segment[i] = NULL;
	}
}

int mt_tree_start(uint32_t first)
{
	drop_from(first);
	base = there = first;
	mt_process.tree_bytes = 0;
	if (!table) {
		table = (struct index *)first_table;
		table->mask = INDEX_START - 1;
	}
	__atomic_store_n(&mt_process.info->node_end, first ? first : 1, __ATOMIC_RELAXED);
	failed = !map_links(0) || !extend();
	return !failed;
}

/* Code at [start, end) is gone: nodes with a pc there will not be found again, so that other code that is loaded at
 * the same place gets nodes of its own. */
static void forget_code(uint64_t start, uint64_t end)
{
	uint32_t until = mt_tree_end();

	for (uint32_t id = 1; id < until; id++) {
		const struct mt_node *node = node_at(id);
		if (!node || id % MT_NODE_STEP >= held[id / MT_NODE_STEP]) {
			id |= MT_NODE_STEP - 1;
			continue;
		}
		/* relaxed: one that another thread is just making has no pc yet, or the one it will have */
		uint64_t pc = __atomic_load_n(&node->pc, __ATOMIC_RELAXED);
		if (pc >= start && pc < end)
			__atomic_fetch_or(&link_at(id)->next, IS_DEAD, __ATOMIC_RELAXED);
	}
	index_rebuild(table->mask + 1);
}

static const struct mt_modules_watch watch = { .gone = forget_code };
MT_SET_ADD(mt_modules_watch, watch);

int mt_tree_is_full(void)
{
	return __atomic_load_n(&failed, __ATOMIC_RELAXED) != 0;
}

void mt_tree_reserve(void)
{
	reach(((mt_tree_end() > there ? mt_tree_end() : there) | (MT_NODE_STEP - 1)) + 1);
	for (int i = 0; i < 3 && index_would_be_full(table, MT_NODE_STEP); i++)
		grow_index(MT_NODE_STEP);
}
