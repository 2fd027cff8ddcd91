/*
 * Finds things of an array by their hash, in 4 bytes each: the index holds their numbers, from 1 on, and as much of the
 * hash as there is room for, which tells most other things apart without a look at them. Things are never taken out.
 *
 *   if (hash_index_is_full(&t->index, t->count))
 *           e = hash_index_grow(&t->index, t, t->count, hash_of_thing);     only before a new one is added
 *   size_t at = hash_index_home(&t->index, hash);
 *   for (uint32_t n; (n = hash_index_candidate(&t->index, hash, &at)); at = hash_index_after(&t->index, at))
 *           if (t->things[n - 1] is it)
 *                   return n;
 *   t->things[t->count++] = it;
 *   hash_index_set(&t->index, at, t->count, hash);
 *
 * Of the hash all 64 bits must be good. All zero is an empty index, to be grown before it is asked.
 */
#ifndef MT_UTIL_HASH_INDEX_H
#define MT_UTIL_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_index {
	uint32_t *slots; /* NULL or mask + 1 of them: a number that is at most mask, the hash above; 0 = free */
	size_t mask;
};

/* The hash of the thing with that number. */
typedef uint64_t hash_index_hash(const void *things, uint32_t number);

/* Has it no room for one more than `count`? */
static inline bool hash_index_is_full(const struct hash_index *x, size_t count)
{
	return !x->slots || count * 8 >= x->mask * 7;
}

/* Twice as large, with the numbers 1 to `count`. Returns 0 or -MT_EMEMORY, and is as it was then. */
int hash_index_grow(struct hash_index *x, const void *things, size_t count, hash_index_hash *hash);
void hash_index_fini(struct hash_index *x);

/* Nothing is in it, and it stays as large. */
void hash_index_clear(struct hash_index *x);

/* Where a search begins. */
static inline size_t hash_index_home(const struct hash_index *x, uint64_t hash)
{
	return hash >> 20 & x->mask;
}

static inline size_t hash_index_after(const struct hash_index *x, size_t at)
{
	return (at + 1) & x->mask;
}

/* The next number, from slot *at on, that may be the one; *at is its slot. 0: there is none, and *at is free. */
static inline uint32_t hash_index_candidate(const struct hash_index *x, uint64_t hash, size_t *at)
{
	const uint32_t mask = (uint32_t)x->mask, tag = (uint32_t)(hash >> 32) & ~mask;
	for (;; *at = hash_index_after(x, *at)) {
		uint32_t slot = x->slots[*at];
		if (!slot || (slot & ~mask) == tag)
			return slot & mask;
	}
}

static inline void hash_index_set(struct hash_index *x, size_t at, size_t number, uint64_t hash)
{
	x->slots[at] = (uint32_t)number | ((uint32_t)(hash >> 32) & ~(uint32_t)x->mask);
}

#endif
