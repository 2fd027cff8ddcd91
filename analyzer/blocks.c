#include "analyzer/blocks.h"

#include "analyzer/error.h"

#include <stdlib.h>
#include <string.h>

struct block *blocks_find(const struct blocks *t, uint64_t addr)
{
	if (!t->entries)
		return NULL;
	for (size_t i = blocks_home(t, addr);; i = (i + 1) & t->mask) {
		struct block *b = &t->entries[i];
		if (b->addr == addr)
			return b;
		if (!b->addr)
			return NULL;
	}
}

static void place(struct blocks *t, const struct block *b)
{
	size_t i = blocks_home(t, b->addr);
	while (t->entries[i].addr)
		i = (i + 1) & t->mask;
	t->entries[i] = *b;
}

static struct block *allocate(size_t entries)
{
	void *p = aligned_alloc(64, entries * sizeof(struct block));
	if (!p)
		error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	return p;
}

static int grow(struct blocks *t)
{
	struct blocks bigger = { .mask = t->entries ? 2 * t->mask + 1 : 255, .count = t->count };
	bigger.shift = t->entries ? t->shift - 1 : 56;
	bigger.entries = allocate(bigger.mask + 1);
	if (!bigger.entries)
		return -MT_EMEMORY;
	memset(bigger.entries, 0, (bigger.mask + 1) * sizeof(*bigger.entries));
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].addr)
			place(&bigger, &t->entries[i]);
	free(t->entries);
	*t = bigger;
	return 0;
}

int blocks_put(struct blocks *t, const struct block *b)
{
	if (!t->entries || t->count * 8 >= t->mask * 5) {
		int e = grow(t);
		if (e)
			return e;
	}
	place(t, b);
	t->count++;
	return 0;
}

/* Closes the gap by moving later entries of the run back, so that there are no tombstones to pile up. */
void blocks_remove(struct blocks *t, struct block *b)
{
	size_t gap = (size_t)(b - t->entries);
	for (size_t i = (gap + 1) & t->mask; t->entries[i].addr; i = (i + 1) & t->mask) {
		size_t home = blocks_home(t, t->entries[i].addr);
		if (((i - home) & t->mask) >= ((i - gap) & t->mask)) {
			t->entries[gap] = t->entries[i];
			gap = i;
		}
	}
	t->entries[gap].addr = 0;
	t->count--;
}

int blocks_inherit(struct blocks *to, const struct blocks *from)
{
	*to = *from;
	if (!from->entries)
		return 0;
	to->entries = allocate(from->mask + 1);
	if (!to->entries) {
		*to = (struct blocks){ 0 };
		return -MT_EMEMORY;
	}
	memcpy(to->entries, from->entries, (from->mask + 1) * sizeof(*to->entries));
	for (size_t i = 0; i <= to->mask; i++) {
		to->entries[i].inherited = 1;
		to->entries[i].site = BLOCK_NO_SITE;
	}
	return 0;
}

void blocks_fini(struct blocks *t)
{
	free(t->entries);
	*t = (struct blocks){ 0 };
}
