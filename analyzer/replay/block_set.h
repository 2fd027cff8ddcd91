/*
 * Free blocks of an allocator, in the order in which it looks for the best fit: by stream, by bytes, by their
 * segments' age where that counts, by address. A treap: each operation takes
 * O(log n) on average, and a block is its own node, in one set at a time.
 */
#ifndef MT_REPLAY_BLOCK_SET_H
#define MT_REPLAY_BLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

struct set_key {
	uint64_t stream, bytes, segment, addr; /* segment: its number, 0 = does not count */
};

struct set_node {
	struct set_key key; /* not to be changed while it is in a set */
	struct set_node *left, *right;
	uint32_t priority;
};

struct block_set {
	struct set_node *root;
	uint32_t random; /* of the next node's priority */
};

void block_set_insert(struct block_set *s, struct set_node *n);
void block_set_remove(struct block_set *s, struct set_node *n);

/* The first that is not below the key, the last that is; NULL = none. */
struct set_node *block_set_from(const struct block_set *s, struct set_key key);
struct set_node *block_set_before(const struct block_set *s, struct set_key key);

/* The next in order; NULL = it was the last. */
struct set_node *block_set_next(const struct block_set *s, const struct set_node *n);

#endif
