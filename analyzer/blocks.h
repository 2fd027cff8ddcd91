/* The live blocks of one heap, by address: open addressing with linear probing, 32 bytes an entry. */
#ifndef MT_BLOCKS_H
#define MT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_NO_SITE UINT32_MAX

struct block {
	uint64_t addr;            /* 0 = empty entry */
	uint64_t size;
	uint64_t ns;              /* when it was allocated */
	uint32_t site, thread;
};

struct blocks {
	struct block *entries;    /* NULL or mask + 1 of them, two to a cache line */
	void *room;               /* what is to be freed: entries begin with a cache line */
	size_t mask, count;
	unsigned shift;           /* 64 - log2(mask + 1) */
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

/* NULL if there is none. Valid until the next put or remove. */
struct block *blocks_find(const struct blocks *t, uint64_t addr);

/* Adds a block whose address isn't there yet (addr != 0). 0 or -MT_EMEMORY. */
int blocks_put(struct blocks *t, const struct block *b);

/* Takes out what blocks_find() returned. */
void blocks_remove(struct blocks *t, struct block *b);

void blocks_fini(struct blocks *t);

/* What a forked child has from its parent: address and size alone, 20 bytes a block, since every worker of a data loader
 * has as many as its parent. Blocks only ever leave it, or come back. */
struct legacy {
	struct legacy_entry { uint64_t addr, size; } *entries; /* addr 0 = empty; size LEGACY_GONE = freed by the child */
	size_t room, count;
};

#define LEGACY_GONE UINT64_MAX

/* All of the parent's blocks: its own and what it has itself inherited. 0 or -MT_EMEMORY. */
int legacy_init(struct legacy *l, const struct blocks *own, const struct legacy *inherited);
void legacy_fini(struct legacy *l);

/* The block's size, and it is gone; LEGACY_GONE if there is none. */
uint64_t legacy_take(struct legacy *l, uint64_t addr);

/* Brings back what legacy_take() took. */
void legacy_put_back(struct legacy *l, uint64_t addr, uint64_t size);

#endif
