#include "analyzer/util/blocks.h"

#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>

int blocks_grow(struct blocks *t)
{
	struct blocks bigger = { .mask = t->entries ? 2 * t->mask + 1 : 255, .count = t->count };
	bigger.shift = t->entries ? t->shift - 1 : 56;
	bigger.room = vec_calloc(bigger.mask + 3, sizeof(*bigger.entries));
	if (!bigger.room)
		return error_memory();
	bigger.entries = (struct block *)(((uintptr_t)bigger.room + 63) & ~(uintptr_t)63);
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].addr)
			*blocks_entry(&bigger, t->entries[i].addr) = t->entries[i];
	free(t->room);
	*t = bigger;
	return 0;
}

int blocks_put(struct blocks *t, const struct block *b)
{
	int e = blocks_reserve(t);
	if (e)
		return e;
	*blocks_entry(t, b->addr) = *b;
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

void blocks_fini(struct blocks *t)
{
	free(t->room);
	*t = (struct blocks){ 0 };
}

/* ---- inherited ------------------------------------------------------------------------------------------- */

/* The entry of an address, or the empty one where it would be. There always is one: room is more than count. */
static struct inherited_blocks_entry *inherited_blocks_find(const struct inherited_blocks *l, uint64_t addr)
{
	size_t i = (size_t)((unsigned __int128)(addr * 0x9E3779B97F4A7C15ull) * l->room >> 64);
	while (l->entries[i].addr && l->entries[i].addr != addr)
		i = i + 1 < l->room ? i + 1 : 0;
	return &l->entries[i];
}

static void inherited_blocks_add(struct inherited_blocks *l, uint64_t addr, uint64_t size)
{
	*inherited_blocks_find(l, addr) = (struct inherited_blocks_entry){ addr, size };
	l->count++;
}

int inherited_blocks_init(struct inherited_blocks *l, const struct blocks *own,
			  const struct inherited_blocks *inherited)
{
	*l = (struct inherited_blocks){ 0 };
	if (!own->count && !inherited->count)
		return 0;
	l->room = (own->count + inherited->count) * 5 / 4 + 1;
	l->entries = vec_calloc(l->room, sizeof(*l->entries));
	if (!l->entries)
		return error_memory();
	for (size_t i = 0; own->entries && i <= own->mask; i++)
		if (own->entries[i].addr)
			inherited_blocks_add(l, own->entries[i].addr, own->entries[i].size);
	for (size_t i = 0; i < inherited->room; i++)
		if (inherited->entries[i].addr && inherited->entries[i].size != INHERITED_BLOCKS_GONE)
			inherited_blocks_add(l, inherited->entries[i].addr, inherited->entries[i].size);
	return 0;
}

void inherited_blocks_fini(struct inherited_blocks *l)
{
	free(l->entries);
	*l = (struct inherited_blocks){ 0 };
}

uint64_t inherited_blocks_take(struct inherited_blocks *l, uint64_t addr)
{
	if (!l->count)
		return INHERITED_BLOCKS_GONE;
	struct inherited_blocks_entry *e = inherited_blocks_find(l, addr);
	if (!e->addr || e->size == INHERITED_BLOCKS_GONE)
		return INHERITED_BLOCKS_GONE;
	uint64_t size = e->size;
	e->size = INHERITED_BLOCKS_GONE;
	l->count--;
	return size;
}

void inherited_blocks_put_back(struct inherited_blocks *l, uint64_t addr, uint64_t size)
{
	struct inherited_blocks_entry *e = inherited_blocks_find(l, addr);
	if (e->addr && e->size == INHERITED_BLOCKS_GONE) {
		e->size = size;
		l->count++;
	}
}
