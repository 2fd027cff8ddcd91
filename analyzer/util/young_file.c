#include "analyzer/util/young_file.h"

#include "analyzer/util/error.h"
#include "analyzer/util/event_check.h"

#include <stdlib.h>
#include <string.h>

#define AREAS_AT(blocks) (MT_YOUNG_TABLE + (blocks) * sizeof(struct mt_young_block))
#define FILE_LEAST       AREAS_AT(MT_YOUNG_BLOCKS_LEAST)
#define FILE_MOST        (AREAS_AT(MT_YOUNG_BLOCKS_MOST) + MT_YOUNG_AREAS * sizeof(struct mt_young_area))
#define STATE            7ull

size_t young_file_bytes(uint64_t size)
{
	return size < FILE_LEAST ? 0 : size < FILE_MOST ? (size_t)size : (size_t)FILE_MOST;
}

/* ---- one file ---------------------------------------------------------------------------------------------- */

struct source {
	const struct mt_young_block *blocks;
	const struct mt_young_area *areas;
	uint32_t block_count, area_count;
	uint64_t horizon;
	young_ring_end *end;
	void *context;
	size_t *counts; /* of slots, by area */
	struct mt_event **at;
};

static bool is_published(const struct source *s, const struct mt_young_area *a)
{
	return s->end(s->context, a->ring) > a->position;
}

/* Whether the event of block i is in a ring. */
static bool has_left(const struct source *s, uint32_t i)
{
	for (uint32_t k = 0; k < s->area_count; k++)
		if (s->areas[k].leaves == i + 1 && is_published(s, &s->areas[k]))
			return true;
	return false;
}

/* The area that says what a sum is with the freed block i. */
static const struct mt_young_area *freed_by(const struct source *s, uint32_t i)
{
	for (uint32_t k = 0; k < s->area_count; k++)
		if (s->areas[k].frees == i + 1 && s->areas[k].sum < MT_YOUNG_SUMS)
			return &s->areas[k];
	return NULL;
}

static void put(struct source *s, uint32_t area, const struct mt_event *slots, size_t n)
{
	if (s->at) {
		memcpy(s->at[area], slots, n * sizeof(*slots));
		s->at[area] += n;
	} else {
		s->counts[area] += n;
	}
}

static void put_sum(struct source *s, uint32_t area, const struct mt_young_sum *sum, uint32_t thread, uint64_t ticks)
{
	struct mt_event slots[2] = { { .ticks = ticks,
				       .addr = sum->count,
				       .size = sum->size,
				       .hook = sum->hook & 1023,
				       .kind = MT_FOLD,
				       .node = sum->node,
				       .node2 = sum->node2 } };
	const struct mt_ext_device ext = { .stream = sum->bytes,
					   .other = sum->temporary,
					   .class = MT_FOLD_SUM,
					   .kind_ext = (uint32_t)MT_EXT << 26,
					   .status = thread };
	memcpy(&slots[1], &ext, sizeof(ext));
	put(s, area, slots, 2);
}

/* It may have left, and it may have been freed, on its way. */
static void put_block(struct source *s, uint32_t i)
{
	const struct mt_young_block *b = &s->blocks[i];
	const uint64_t state = b->addr & STATE, addr = b->addr & ~STATE;
	const bool left = state && has_left(s, i), freed = state & MT_YOUNG_FREED;
	const struct mt_event alloc = { .ticks = b->ticks,
					.addr = addr,
					.size = b->size,
					.hook = b->hook & 1023,
					.kind = MT_ALLOC,
					.node = b->node,
					.node2 = b->node2 };
	const struct mt_event gone = { .ticks = b->ticks + 1, .addr = addr, .size = 1, .kind = MT_FREE };
	const struct mt_young_sum one = { b->node, b->node2, 0, b->hook & 1023, b->size, 1, 0, b->size };
	if (!addr || state & MT_YOUNG_TAKEN || b->area >= s->area_count || b->ticks > s->horizon)
		return;
	if (state == MT_YOUNG_FREED) {
		if (!freed_by(s, i))
			put_sum(s, b->area, &one, s->areas[b->area].thread, b->ticks);
		return;
	}
	if (!left)
		put(s, b->area, &alloc, 1);
	if (freed)
		put(s, b->area, &gone, 1);
}

static struct mt_young_sum sum_of(const struct source *s, const struct mt_young_area *a, uint32_t k)
{
	struct mt_young_sum sum = a->sums[k];
	bool freed = a->frees && a->frees <= s->block_count && a->sum == k &&
		     (s->blocks[a->frees - 1].addr & STATE) == MT_YOUNG_FREED;
	if (freed) {
		sum.count = a->count;
		sum.temporary = a->temporary;
		sum.bytes = a->bytes;
	}
	return sum;
}

static void put_all(struct source *s)
{
	for (uint32_t i = 0; i < s->area_count; i++) {
		const struct mt_young_area *a = &s->areas[i];
		const bool told = a->told && is_published(s, a);
		for (uint32_t k = 0; k < MT_YOUNG_SUMS; k++) {
			const struct mt_young_sum sum = sum_of(s, a, k);
			if (sum.count && sum.thread < EVENT_MAX_THREADS && !(told && a->told == k + 1))
				put_sum(s, i, &sum, sum.thread, a->since);
		}
	}
	for (uint32_t i = 0; i < s->block_count; i++)
		put_block(s, i);
}

/* ---- rings ------------------------------------------------------------------------------------------------- */

/* A slot with its extension. */
struct item {
	struct mt_event slots[2];
	size_t index;
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->slots[0].ticks != y->slots[0].ticks)
		return x->slots[0].ticks < y->slots[0].ticks ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static int sort(struct young_ring *r)
{
	struct item *items = malloc((r->count + 1) * sizeof(*items));
	size_t n = 0;
	if (!items)
		return error_memory();
	for (size_t i = 0; i < r->count; i++, n++) {
		items[n] = (struct item){ { r->slots[i] }, n };
		if (mt_has_ext(r->slots[i].kind) && i + 1 < r->count)
			items[n].slots[1] = r->slots[++i];
	}
	if (n)
		qsort(items, n, sizeof(*items), compare);
	for (size_t i = 0, at = 0; i < n; i++) {
		r->slots[at++] = items[i].slots[0];
		if (mt_has_ext(items[i].slots[0].kind))
			r->slots[at++] = items[i].slots[1];
	}
	free(items);
	return 0;
}

/* Its first slot says whose they are. */
static int make_ring(struct young_ring *r, uint32_t ring, uint32_t thread, struct mt_event *slots, size_t count)
{
	*r = (struct young_ring){ ring, thread, slots + 1, count };
	int e = sort(r);
	slots[0] = (struct mt_event){ .ticks = r->slots[0].ticks, .addr = thread, .kind = MT_THREAD };
	r->slots = slots;
	r->count++;
	return e;
}

/* Each has a slot more than its blocks and sums. */
static int share_out(struct young_rest *rest, struct source *s, uint32_t rings)
{
	struct mt_event *next = rest->slots;
	for (uint32_t i = 0; i < s->area_count; i++) {
		s->at[i] = next + 1;
		next += s->counts[i] + 1;
	}
	put_all(s);
	next = rest->slots;
	for (uint32_t i = 0; i < s->area_count && rings + i < MT_MAX_CHUNKS; i++) {
		const uint32_t thread = s->areas[i].thread;
		int e = s->counts[i] && thread < EVENT_MAX_THREADS
				? make_ring(&rest->rings[rest->count++], rings + i, thread, next, s->counts[i])
				: 0;
		if (e)
			return e;
		next += s->counts[i] + 1;
	}
	return 0;
}

int young_rest_make(struct young_rest *rest, const void *file, size_t bytes, uint32_t rings, uint64_t horizon,
		    young_ring_end *end, void *context)
{
	const struct mt_young_head *head = file;
	*rest = (struct young_rest){ 0 };
	if (bytes < FILE_LEAST || memcmp(head->magic, MT_YOUNG_MAGIC, 8) != 0 || head->version != MT_VERSION ||
	    head->blocks > MT_YOUNG_BLOCKS_MOST || bytes < AREAS_AT(head->blocks))
		return 0;
	struct source s = { .blocks = (const void *)((const char *)file + MT_YOUNG_TABLE),
			    .areas = (const void *)((const char *)file + AREAS_AT(head->blocks)),
			    .block_count = head->blocks,
			    .area_count = (uint32_t)((bytes - AREAS_AT(head->blocks)) / sizeof(struct mt_young_area)),
			    .horizon = horizon,
			    .end = end,
			    .context = context };
	s.area_count = head->areas < s.area_count ? head->areas : s.area_count;
	s.counts = calloc(s.area_count + 1ul, sizeof(*s.counts));
	rest->rings = calloc(s.area_count + 1ul, sizeof(*rest->rings));
	struct mt_event **at = calloc(s.area_count + 1ul, sizeof(*at));
	size_t slots = 0;
	int e = s.counts && rest->rings && at ? 0 : error_memory();
	if (!e)
		put_all(&s);
	for (uint32_t i = 0; !e && i < s.area_count; i++)
		slots += s.counts[i] + 1;
	if (!e && !(rest->slots = malloc((slots + 1) * sizeof(*rest->slots))))
		e = error_memory();
	s.at = at;
	if (!e)
		e = share_out(rest, &s, rings);
	free(at);
	free(s.counts);
	return e;
}

void young_rest_fini(struct young_rest *rest)
{
	free(rest->rings);
	free(rest->slots);
	*rest = (struct young_rest){ 0 };
}
