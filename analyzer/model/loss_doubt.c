#include "analyzer/model/loss_doubt.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <math.h>

/* ---- what may be ----------------------------------------------------------------------------------------- */

struct suspect {
	uint64_t size;
	uint32_t site;
	uint8_t kind;
	bool young;
};

struct suspects {
	struct suspect *list;
	size_t count, room;
	uint64_t until_ns;
	enum model_kind kind;
};

static int add(void *arg, const struct model_block *b)
{
	struct suspects *s = arg;
	if (b->inherited || (s->kind == MODEL_MAP && b->class == MAP_RESERVED))
		return 0;
	if (vec_reserve_raw(s->list, s->room, s->count + 1))
		return error_memory();
	s->list[s->count++] = (struct suspect){ b->size, b->site, (uint8_t)s->kind, b->ns > s->until_ns };
	return 0;
}

static int gather(const struct process_memory *a, struct suspects *s)
{
	int e = 0;
	*s = (struct suspects){ .until_ns = a->lost_until_ns };
	for (s->kind = 0; !e && s->kind < MODEL_KINDS; s->kind++)
		e = model_each_block(a->model, a->seen.process->id, s->kind, add, s);
	return e;
}

static int by_size(const struct suspect *x, const struct suspect *y)
{
	return (x->size < y->size) - (x->size > y->size);
}

static int by_kind(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;
	return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : by_size(x, y);
}

static int by_site(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;
	return x->site != y->site ? (x->site > y->site) - (x->site < y->site) : by_size(x, y);
}

/* The largest of n, as many as may have been freed. */
static struct model_doubt most(const struct suspect *list, size_t n, uint64_t lost, uint64_t lately)
{
	struct model_doubt d = { 0 };
	uint64_t young = 0;
	for (size_t i = 0; i < n && d.blocks < lost; i++) {
		if (list[i].young && young == lately)
			continue;
		young += list[i].young;
		d.blocks++;
		d.bytes += list[i].size;
	}
	return d;
}

static void set_site(struct process_memory *a, uint32_t site, struct model_doubt d)
{
	const struct model_site *s = site < a->sites.count ? site_table_figures(&a->sites, site) : NULL;
	if (!s)
		return;
	struct model_doubt *to = &a->sites.doubts[s - a->sites.sites];
	to->bytes = d.bytes;
	to->blocks = d.blocks;
}

static void set_missed(struct process_memory *a)
{
	for (size_t n = 0; n < a->missed_room && n < a->sites.count; n++) {
		const struct model_site *s = a->missed[n] ? site_table_figures(&a->sites, (uint32_t)n) : NULL;
		if (s)
			a->sites.doubts[s - a->sites.sites].missed_bytes = a->missed[n];
	}
}

static uint64_t lost_lately(const struct process_memory *a, uint64_t lost)
{
	return lost == UINT64_MAX ? lost : lost - a->lost;
}

int loss_doubt_fill(struct process_memory *a)
{
	struct suspects s;
	const uint64_t lost = process_memory_lost(a), lately = lost_lately(a, lost);
	if (!lost)
		return 0;
	a->sites.doubts = calloc(a->sites.site_count + 1, sizeof(*a->sites.doubts));
	int e = a->sites.doubts ? gather(a, &s) : error_memory();
	if (e)
		return e;
	set_missed(a);
	for (int pass = 0; s.count && pass < 2; pass++) {
		qsort(s.list, s.count, sizeof(*s.list), pass ? by_site : by_kind);
		for (size_t i = 0, n; i < s.count; i += n) {
			const struct suspect *first = &s.list[i];
			for (n = 1;
			     i + n < s.count && (pass ? first[n].site == first->site : first[n].kind == first->kind);
			     n++)
				;
			struct model_doubt d = most(first, n, lost, lately);
			if (pass) {
				set_site(a, first->site, d);
				continue;
			}
			a->kind[first->kind].totals.doubt_bytes = d.bytes;
			a->kind[first->kind].totals.doubt_blocks = d.blocks;
		}
	}
	free(s.list);
	return 0;
}

/* ---- at any time ------------------------------------------------------------------------------------------ */

uint64_t model_lost(const struct model *m, unsigned id)
{
	return process_memory_lost(&m->accounts[id]);
}

/* Of one that has ended, and of which nobody wanted what it left, all. */
uint64_t model_open(const struct model *m, unsigned id, enum model_kind kind)
{
	const struct process_memory *a = &m->accounts[id];
	const struct model_totals *t = &a->kind[kind].totals;
	const uint64_t lost = process_memory_lost(a);
	struct suspects s = { .until_ns = a->lost_until_ns, .kind = kind };
	uint64_t open = t->live_bytes;
	if (!lost || a->sites.doubts)
		return t->doubt_bytes;
	if (!a->seen.ended && model_each_block(m, id, kind, add, &s) == 0) {
		if (s.count)
			qsort(s.list, s.count, sizeof(*s.list), by_kind);
		open = most(s.list, s.count, lost, lost_lately(a, lost)).bytes;
	}
	free(s.list);
	return open;
}

/* With what was found to be freed unseen. Frees of blocks that nobody saw being allocated are of such as were live
 * before by that much more. */
double model_doubt(const struct model *m, unsigned id, enum model_kind kind)
{
	const struct process_memory *a = &m->accounts[id];
	const struct model_totals *t = &a->kind[kind].totals;
	const uint64_t lost = process_memory_lost(a), unknown = t->unknown_frees < lost ? t->unknown_frees : lost;
	if (!lost)
		return 0;
	if (a->seen.ended && !a->sites.doubts)
		return INFINITY; /* what was live at its end is not known any more */
	double mean = t->allocations ? (double)t->allocated_bytes / (double)t->allocations : 0;
	return (double)model_open(m, id, kind) + (double)t->missed_bytes + (double)unknown * mean;
}
