#include "analyzer/model/heap_layout.h"

#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#define ARENA_BYTES  (64ull << 20)
#define HEADER       16u /* what malloc needs in front of a block */
#define PAGE         4096u
#define MAPPED_LEAST (128u << 10)

struct found {
	struct model_block *blocks;
	size_t count, room;
	struct model_block *segments; /* of pools, by address */
	size_t segment_count, segment_room;
};

static int gather(void *arg, const struct model_block *b)
{
	struct found *f = arg;
	if (b->inherited || vec_reserve_raw(f->blocks, f->room, f->count + 1))
		return b->inherited ? 0 : -MT_EMEMORY;
	f->blocks[f->count++] = *b;
	return 0;
}

static int gather_segment(void *arg, const struct model_block *b)
{
	struct found *f = arg;
	int e = vec_reserve_raw(f->segments, f->segment_room, f->segment_count + 1);
	if (!e)
		f->segments[f->segment_count++] = *b;
	return e;
}

static int by_address(const void *a, const void *b)
{
	const struct model_block *x = a, *y = b;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* From the program's end to the next module is where the break may grow. */
static void find_main(const struct process *p, uint64_t *from, uint64_t *to)
{
	*from = *to = 0;
	for (unsigned i = 0; i < p->module_count; i++)
		if (!strcmp(p->modules[i].path, p->exe))
			*from = p->modules[i].end;
	if (!*from && p->parent) {
		find_main(p->parent, from, to);
		return;
	}
	*to = *from ? UINT64_MAX : 0;
	for (unsigned i = 0; i < p->module_count; i++)
		if (p->modules[i].start >= *from && p->modules[i].start < *to)
			*to = p->modules[i].start;
	if (*to - *from > 1ull << 42)
		*to = *from + (1ull << 42); /* far from the stack and the mappings */
}

/* ---- one arena ------------------------------------------------------------------------------------------- */

static void see_tops(struct arena *a, const struct model_block *blocks, size_t count)
{
	for (size_t i = count; i-- > 0 && a->tops < 4;) {
		uint64_t below = i ? blocks[i - 1].addr + blocks[i - 1].size : blocks[i].addr - HEADER;
		a->top[a->tops] = blocks[i];
		a->below[a->tops++] = blocks[i].addr > below + HEADER ? blocks[i].addr - below - HEADER : 0;
	}
}

static void see_blocks(struct arena *a, const struct model_block *blocks, size_t count)
{
	a->start = blocks[0].addr - HEADER;
	uint64_t at = a->start;
	for (size_t i = 0; i < count; i++) {
		const struct model_block *b = &blocks[i];
		a->live += b->size;
		a->blocks++;
		if (b->addr > at + HEADER && b->addr - at - HEADER > a->largest_hole)
			a->largest_hole = b->addr - at - HEADER;
		at = b->addr + b->size > at ? b->addr + b->size : at;
	}
	a->end = at;
	see_tops(a, blocks, count);
}

static int add(struct arenas *a, size_t *room, enum arena_kind kind, const struct model_block *blocks, size_t count)
{
	if (!count)
		return 0;
	int e = vec_reserve(a->list, *room, a->count + 1);
	if (e)
		return e;
	struct arena *arena = &a->list[a->count++];
	arena->kind = kind;
	see_blocks(arena, blocks, count);
	a->live += arena->live;
	a->blocks += arena->blocks;
	a->span += kind == ARENA_MAPPED ? 0 : arena->end - arena->start;
	return 0;
}

/* ---- pools ----------------------------------------------------------------------------------------------- */

/* The first of n blocks that begins at an address or behind it. */
static size_t first_from(const struct model_block *blocks, size_t n, uint64_t addr)
{
	return SEARCH_FIRST(i, n, blocks[i].addr >= addr);
}

/* With the blocks that begin in it. */
static int add_segment(struct arenas *a, size_t *room, const struct model_block *segment, const struct found *pooled)
{
	uint64_t at = segment->addr, end = segment->addr + segment->size;
	int e = vec_reserve(a->list, *room, a->count + 1);
	if (e)
		return e;
	struct arena *arena = &a->list[a->count++];
	*arena = (struct arena){ .kind = ARENA_POOL, .start = at, .end = end };
	for (size_t i = first_from(pooled->blocks, pooled->count, at); at < end; i++) {
		const struct model_block *b = i < pooled->count ? &pooled->blocks[i] : NULL;
		bool last = !b || b->addr >= end;
		uint64_t next = last ? end : b->addr;
		if (next > at && next - at > arena->largest_hole)
			arena->largest_hole = next - at;
		at = last ? end : b->addr + b->size;
		arena->live += last ? 0 : b->size;
		arena->blocks += !last;
	}
	a->live += arena->live;
	a->blocks += arena->blocks;
	a->span += segment->size;
	return 0;
}

/* Blocks of pools go to *pooled; the others stay, in their order. */
static int part_pools(struct found *f, struct found *pooled)
{
	size_t kept = 0;
	int e = f->segment_count ? vec_reserve_raw(pooled->blocks, pooled->room, f->count) : 0;
	for (size_t i = 0, k = 0; i < f->count && f->segment_count && !e; i++) {
		const struct model_block *b = &f->blocks[i];
		while (k < f->segment_count && f->segments[k].addr + f->segments[k].size <= b->addr)
			k++;
		if (k < f->segment_count && b->addr >= f->segments[k].addr)
			pooled->blocks[pooled->count++] = *b;
		else
			f->blocks[kept++] = *b;
	}
	f->count = f->segment_count ? kept : f->count;
	return e;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static bool is_mapped(const struct model_block *b)
{
	return b->size >= MAPPED_LEAST && b->addr % PAGE == HEADER;
}

/* Moves the blocks that satisfy nothing but having pages of their own behind the others; returns how many stay. Order
 * is kept. */
static size_t part(struct model_block *blocks, size_t count, struct model_block *mapped, size_t *mapped_count,
		   uint64_t from, uint64_t to)
{
	size_t kept = 0;
	*mapped_count = 0;
	for (size_t i = 0; i < count; i++) {
		bool in_main = blocks[i].addr >= from && blocks[i].addr < to;
		if (!in_main && is_mapped(&blocks[i]))
			mapped[(*mapped_count)++] = blocks[i];
		else
			blocks[kept++] = blocks[i];
	}
	return kept;
}

static size_t same_arena(const struct model_block *blocks, size_t count)
{
	size_t n = 1;
	while (n < count && blocks[n].addr / ARENA_BYTES == blocks[0].addr / ARENA_BYTES)
		n++;
	return n;
}

static int sort_out(struct arenas *a, struct found *f, struct model_block *mapped, const struct found *pooled,
		    const struct process *p)
{
	uint64_t from, to;
	size_t room = 0, mapped_count, first = 0, end;
	find_main(p, &from, &to);
	size_t count = part(f->blocks, f->count, mapped, &mapped_count, from, to);
	while (first < count && f->blocks[first].addr < from)
		first++;
	for (end = first; end < count && f->blocks[end].addr < to; end++)
		;
	int e = add(a, &room, ARENA_MAIN, f->blocks + first, end - first);
	for (size_t i = 0, n; i < count && !e; i += n) {
		n = i == first && end > first ? end - first
					      : same_arena(f->blocks + i, i < first ? first - i : count - i);
		if (!(i == first && end > first))
			e = add(a, &room, ARENA_THREAD, f->blocks + i, n);
	}
	e = e ? e : add(a, &room, ARENA_MAPPED, mapped, mapped_count);
	for (size_t i = 0; i < f->segment_count && !e; i++)
		e = add_segment(a, &room, &f->segments[i], pooled);
	return e;
}

int arenas_find(struct arenas *a, const struct model *m, const struct process *p)
{
	struct found f = { 0 }, pooled = { 0 };
	*a = (struct arenas){ 0 };
	int e = model_each_block(m, p->id, MODEL_HEAP, gather, &f);
	if (f.count)
		qsort(f.blocks, f.count, sizeof(*f.blocks), by_address);
	e = e ? e : model_each_segment(m, p->id, gather_segment, &f);
	e = e ? e : part_pools(&f, &pooled);
	struct model_block *mapped = malloc((f.count + 1) * sizeof(*mapped));
	if (!mapped)
		e = error_memory();
	if (!e)
		e = sort_out(a, &f, mapped, &pooled, p);
	free(mapped);
	free(f.blocks);
	free(f.segments);
	free(pooled.blocks);
	return e;
}

void arenas_fini(struct arenas *a)
{
	free(a->list);
	*a = (struct arenas){ 0 };
}
