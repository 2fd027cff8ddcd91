/*
 * The call tree: a stack is a node, a node is (parent, pc). Nodes live in a mapped file and are never changed;
 * the index that finds a child by (parent, pc) is private memory. Everything is lock-free: a lost race makes
 * a second node for the same (parent, pc), which costs 16 bytes and no truth.
 */
#ifndef MT_STACK_TREE_H
#define MT_STACK_TREE_H

#include <stdint.h>

#include "format/format.h"
#include "shim/base/state.h"

#define MT_NODE_FAILED UINT32_MAX

/* Makes an empty tree whose ids start at `base`; ids below are the parent's and stay readable. */
int mt_tree_start(uint32_t base);

/* The node for a frame at `pc` called from `parent`, or MT_NODE_FAILED when the tree is full or the disk is. */
uint32_t mt_tree_child(uint32_t parent, uint64_t pc, uint32_t flags);

/* A frame of a path: each is called by the one before. */
struct mt_tree_frame {
	uint64_t pc;
	uint32_t flags;
	uint32_t node; /* to be filled in */
};

/* Fills in the nodes of a path of n <= MT_TREE_PATH frames, the first of which `parent` called. Returns how many have a
 * node: fewer than n if the tree is full. Much faster than mt_tree_child() for each where nodes are new. */
#define MT_TREE_PATH MT_NODE_RUN
unsigned mt_tree_path(uint32_t parent, struct mt_tree_frame *path, unsigned n);

/* The frame's pc and its caller's node; 0 if there is no such node. */
uint64_t mt_tree_pc(uint32_t id, uint32_t *parent);

/* The pcs of a stack, innermost first, as far as they fit. */
unsigned mt_tree_stack(uint32_t node, uint64_t *pc, unsigned most);

/* Ids handed out so far; a forked child's tree starts at or after it. */
static inline uint32_t mt_tree_end(void)
{
	uint32_t end = __atomic_load_n(&mt_process.info->node_end, __ATOMIC_RELAXED);

	return end < MT_MAX_NODES ? end : MT_MAX_NODES;
}

/* Makes room for new nodes, before a sandbox forbids files. */
void mt_tree_reserve(void);

/* Nonzero if there was no room for a new node the last time. It is tried again every few milliseconds. */
int mt_tree_is_full(void);

#endif
