/* The live blocks of one heap, by address: open addressing with linear probing, 32 bytes an entry. */
#ifndef MT_UTIL_BLOCKS_H
#define MT_UTIL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_NO_SITE UINT32_MAX
#define BLOCKS_SMALL  (1u << 15) /* entries, of 1 MiB: fewer are kept emptier, as one look finds more of them */

struct block {
	uint64_t addr; /* 0 = empty entry */
	uint64_t size;
	uint64_t ns; /* when it was allocated */
	uint32_t site, thread;
};

struct blocks {
	struct block *entries; /* NULL or mask + 1 of them, two to a cache line */
	void *room;            /* what is to be freed: entries begin with a cache line */
	size_t mask, count;
	unsigned shift; /* 64 - log2(mask + 1) */
};

/* Where the search for an address begins: the product's upper bits, which all of the address went into. */
static inline size_t blocks_home(const struct blocks *t, uint64_t addr)
{
	return (size_t)(addr * 0x9E3779B97F4A7C15ull >> t->shift);
}

/* Brings the entry's cache line in, some events before it is needed. */
static inline void blocks_prefetch(const struct blocks *t, uint64_t addr)
{
	if (t->entries)
		__builtin_prefetch(&t->entries[blocks_home(t, addr)], 1);
}

/* The entry of an address, or the empty one where it would be; there must be entries. Valid until the next put or
 * remove. */
static inline struct block *blocks_entry(const struct blocks *t, uint64_t addr)
{
	size_t i = blocks_home(t, addr);
	while (t->entries[i].addr != addr && t->entries[i].addr)
		i = (i + 1) & t->mask;
	return &t->entries[i];
}

/* NULL if there is none. Valid until the next put or remove. */
static inline struct block *blocks_find(const struct blocks *t, uint64_t addr)
{
	struct block *b = t->entries ? blocks_entry(t, addr) : NULL;
	return b && b->addr ? b : NULL;
}

int blocks_grow(struct blocks *t);

/* Makes room for one more. 0 or -MT_EMEMORY. */
static inline int blocks_reserve(struct blocks *t)
{
	return !t->entries || t->count * (t->mask < BLOCKS_SMALL ? 16 : 8) >= t->mask * 5 ? blocks_grow(t) : 0;
}

/* Adds a block whose address isn't there yet (addr != 0). 0 or -MT_EMEMORY. */
int blocks_put(struct blocks *t, const struct block *b);

/* Takes out what blocks_find() returned. */
void blocks_remove(struct blocks *t, struct block *b);

void blocks_fini(struct blocks *t);

/* What a forked child has from its parent: address and size alone, 20 bytes a block, since every worker of a data
 * loader has as many as its parent. Blocks only ever leave it, or come back. */
struct inherited_blocks {
	/* addr 0 = empty; size INHERITED_BLOCKS_GONE = freed by the child */
	struct inherited_blocks_entry {
		uint64_t addr, size;
	} *entries;
	size_t room, count;
};

#define INHERITED_BLOCKS_GONE UINT64_MAX

/* All of the parent's blocks: its own and what it has itself inherited. 0 or -MT_EMEMORY. */
int inherited_blocks_init(struct inherited_blocks *l, const struct blocks *own,
			  const struct inherited_blocks *inherited);
void inherited_blocks_fini(struct inherited_blocks *l);

/* The block's size, and it is gone; INHERITED_BLOCKS_GONE if there is none. */
uint64_t inherited_blocks_take(struct inherited_blocks *l, uint64_t addr);

/* Brings back what inherited_blocks_take() took. */
void inherited_blocks_put_back(struct inherited_blocks *l, uint64_t addr, uint64_t size);

#endif
