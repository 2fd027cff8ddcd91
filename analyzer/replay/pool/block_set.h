/*
 * The free blocks of an allocator, in the order in which it looks for the best fit: by stream, by bytes, by the age of
 * their segments where that counts, by address. The set is a treap: each operation takes O(log n) on average. Nodes are
 * part of the caller's blocks, and a block is in one set at a time.
 */
#ifndef MT_REPLAY_POOL_BLOCK_SET_H
#define MT_REPLAY_POOL_BLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

struct set_key {
	uint64_t stream, bytes, segment, addr; /* segment: its number in order of age; 0 = its age does not count */
};

struct set_node {
	struct set_key key; /* not to be changed while it is in a set */
	struct set_node *left, *right;
	uint32_t priority;
};

struct block_set {
	struct set_node *root;
	uint32_t random; /* state of the generator of priorities */
};

void block_set_insert(struct block_set *s, struct set_node *n);
void block_set_remove(struct block_set *s, struct set_node *n);

/* The first node that is not below the key; the last one that is. NULL = none. */
struct set_node *block_set_from(const struct block_set *s, struct set_key key);
struct set_node *block_set_before(const struct block_set *s, struct set_key key);

/* The node after `n`; NULL = it is the last. */
struct set_node *block_set_next(const struct block_set *s, const struct set_node *n);

#endif
