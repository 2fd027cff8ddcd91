#include "analyzer/model/loss_doubt.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <math.h>

#define ENDING  0.05        /* of a run: what is freed in this last part, and ... */
#define EXIT_NS 1000000000u /* ... in what an exit may take, is freed as the program ends */

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
	if (b->inherited || (s->kind == MODEL_MAP && !map_class_counts(b->class)))
		return 0;
	if (vec_reserve_raw(s->list, s->room, s->count + 1))
		return error_memory();
	s->list[s->count++] = (struct suspect){ b->bytes, b->site, (uint8_t)s->kind, b->ns > s->until_ns };
	return 0;
}

static int gather(const struct process_memory *memory, struct suspects *s)
{
	int e = 0;
	*s = (struct suspects){ .until_ns = memory->lost_until_ns };
	for (s->kind = 0; !e && s->kind < MODEL_KINDS; s->kind++)
		e = model_each_block(memory->model, memory->seen.process->id, s->kind, add, s);
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

static void set_site(struct process_memory *memory, uint32_t site, struct model_doubt d)
{
	const struct model_site *s = site < memory->sites.count ? site_table_figures(&memory->sites, site) : NULL;
	if (!s)
		return;
	struct model_doubt *to = &memory->sites.doubts[s - memory->sites.sites];
	to->bytes = d.bytes;
	to->blocks = d.blocks;
}

static void set_missed(struct process_memory *memory)
{
	for (size_t n = 0; n < memory->missed_room && n < memory->sites.count; n++) {
		const struct model_site *s = memory->missed[n] ? site_table_figures(&memory->sites, (uint32_t)n) : NULL;
		if (s)
			memory->sites.doubts[s - memory->sites.sites].missed_bytes = memory->missed[n];
	}
}

static uint64_t lost_lately(const struct process_memory *memory, uint64_t lost)
{
	return lost == UINT64_MAX ? lost : lost - memory->lost;
}

int loss_doubt_fill(struct process_memory *memory)
{
	struct suspects s;
	const uint64_t lost = process_memory_lost(memory), lately = lost_lately(memory, lost);
	if (!lost)
		return 0;
	memory->sites.doubts = calloc(memory->sites.site_count + 1, sizeof(*memory->sites.doubts));
	int e = memory->sites.doubts ? gather(memory, &s) : error_memory();
	if (e)
		return e;
	set_missed(memory);
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
				set_site(memory, first->site, d);
				continue;
			}
			memory->kind[first->kind].totals.doubt_bytes = d.bytes;
			memory->kind[first->kind].totals.doubt_blocks = d.blocks;
		}
	}
	free(s.list);
	return 0;
}

/* ---- at any time ------------------------------------------------------------------------------------------ */

uint64_t model_lost(const struct model *m, unsigned id)
{
	return process_memory_lost(&m->processes[id]);
}

uint64_t model_lost_ns(const struct model *m, unsigned id)
{
	const struct process_memory *memory = &m->processes[id];
	return !process_memory_lost(memory) ? UINT64_MAX
	       : memory->seen.lost_events   ? memory->seen.lost_ns
					    : memory->seen.last_ns;
}

uint64_t model_ending_ns(const struct model *m, unsigned id)
{
	const struct process *p = m->processes[id].seen.process;
	const uint64_t part = (uint64_t)(ENDING * (double)less(p->end_ns, p->start_ns));
	return less(p->end_ns, higher(part, EXIT_NS));
}

/* Of one that has ended, and of which nobody wanted what it left, all. */
uint64_t model_open(const struct model *m, unsigned id, enum model_kind kind)
{
	const struct process_memory *memory = &m->processes[id];
	const struct model_totals *t = &memory->kind[kind].totals;
	const uint64_t lost = process_memory_lost(memory);
	struct suspects s = { .until_ns = memory->lost_until_ns, .kind = kind };
	uint64_t open = t->live_bytes;
	if (!lost || memory->sites.doubts)
		return t->doubt_bytes;
	if (!memory->seen.ended && model_each_block(m, id, kind, add, &s) == 0) {
		if (s.count)
			qsort(s.list, s.count, sizeof(*s.list), by_kind);
		open = most(s.list, s.count, lost, lost_lately(memory, lost)).bytes;
	}
	free(s.list);
	return open;
}

/* With what was found to be freed unseen. Frees of blocks that nobody saw being allocated are of such as were live
 * before by that much more. */
double model_doubt(const struct model *m, unsigned id, enum model_kind kind)
{
	const struct process_memory *memory = &m->processes[id];
	const struct model_totals *t = &memory->kind[kind].totals;
	const uint64_t lost = process_memory_lost(memory), unknown = t->unknown_frees < lost ? t->unknown_frees : lost;
	if (!lost)
		return 0;
	if (memory->seen.ended && !memory->sites.doubts)
		return INFINITY; /* what was live at its end is not known any more */
	double mean = t->allocations ? (double)t->allocated_bytes / (double)t->allocations : 0;
	return (double)model_open(m, id, kind) + (double)t->missed_bytes + (double)unknown * mean;
}
