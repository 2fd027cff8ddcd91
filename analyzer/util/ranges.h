/* The mappings of one address space: disjoint ranges in order of address (a treap, so that a thousand or a million of
 * them are cut and joined in logarithmic time). */
#ifndef MT_UTIL_RANGES_H
#define MT_UTIL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end;
	uint64_t ns; /* when it was mapped first; a move keeps it */
	uint32_t site, thread;
	uint32_t file;
	/* whose piece it is: what one call gave; 0 = nobody counts it. Numbered by mappings.c */
	uint32_t mapping;
	uint8_t class; /* enum model_map_class */
	/* what it is when it can be used: of a reservation the class that mprotect would make it */
	uint8_t usable;
	uint8_t prot;
	bool inherited;
};

struct range_node;
struct ranges {
	struct range_node *root;
};

/* The first range that overlaps [start, end), or NULL. Borrowed until the next change. */
const struct range *ranges_overlap(const struct ranges *r, uint64_t start, uint64_t end);

/* Where the range ends that begins at `start`: `start` itself if none does. */
uint64_t ranges_until(const struct ranges *r, uint64_t start);

/* Adds a range that overlaps none. 0 or -MT_EMEMORY. */
int ranges_put(struct ranges *r, const struct range *range);

/* Takes out the range that ranges_overlap() returned. */
void ranges_remove(struct ranges *r, const struct range *range);

int ranges_each(const struct ranges *r, int (*f)(void *arg, const struct range *range), void *arg);

/* *to becomes a copy with every range marked inherited. */
int ranges_inherit(struct ranges *to, const struct ranges *from);
void ranges_fini(struct ranges *r);

#endif
