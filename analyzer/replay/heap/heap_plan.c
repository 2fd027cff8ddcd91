#include "analyzer/replay/heap/heap_plan.h"

#include "analyzer/model/model.h"
#include "analyzer/replay/heap/heap_setting.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { PLAN_MOST_POINTS = 2048, MOST_SAMPLES = 512, LARGEST_ALIGNMENT = 12, MOST_ALIGNMENTS = 1 << 16 };
#define PLAN_LEAST_STEP (1ull << 20) /* bytes that the heap moves from one point to the next */
#define LOOKED_AT       (8ull << 20) /* mappings of fewer bytes are in no sample */
/* calloc takes such blocks from the kernel, zeros and all. */
#define IS_ZEROED(what, n) ((what) == HEAP_CALLOC && (n) >= 128ull << 10)

/* Who asks for aligned blocks: the hook and the stack, and the least alignment that its blocks had. */
struct heap_alignment {
	uint64_t who;
	unsigned bits;
	UT_hash_handle hh;
};

/* A sample of the process. */
struct look {
	uint64_t ns, bytes;
	uint64_t threads; /* HEAP_UNKNOWN */
	uint64_t at;      /* after so many events of the heap */
};

/* Of a thread: its first call and its last one, after so many events. */
struct life {
	uint64_t from, until;
	uint32_t ring, thread;
	bool calls, gone;
};

struct planning {
	struct heap_plan *plan;
	const struct samples *samples;
	struct heap_calls *calls;
	const struct model *model; /* of the pass; NULL until it is known */
	unsigned subject;          /* the process among the samples */
	struct look *looks;
	size_t look_count, look_room, next_look;
	struct life *lives; /* by thread */
	size_t life_count, life_room;
	uint64_t last_ns;         /* of the last event */
	uint64_t step, last_live; /* at the last point */
	uint64_t unseen;          /* of mapped memory */
	uint64_t allocators;      /* of it, what an allocator has for its blocks */
	uint64_t seen;            /* of live blocks */
	struct heap_point peak;
	int error;
};

/* ---- samples ----------------------------------------------------------------------------------------------- */

static int add_look(void *arg, const struct sample *s)
{
	struct planning *g = arg;
	const uint64_t both = 1ull << MT_PROCESS_rss_anon | 1ull << MT_PROCESS_swap;
	if (s->subject->index != g->subject || !(s->fields & 1ull << MT_PROCESS_rss_anon) ||
	    !s->value[MT_PROCESS_rss_anon])
		return 0;
	int e = vec_reserve(g->looks, g->look_room, g->look_count + 1);
	if (!e)
		g->looks[g->look_count++] = (struct look){
			s->ns,
			s->value[MT_PROCESS_rss_anon] + ((s->known & both) == both ? s->value[MT_PROCESS_swap] : 0),
			s->known >> MT_PROCESS_threads & 1 ? s->value[MT_PROCESS_threads] : HEAP_UNKNOWN, 0
		};
	return e;
}

/* Evenly; the most of those that are joined stands for them, and the last one stays. */
static void thin_looks(struct planning *g)
{
	while (g->look_count > MOST_SAMPLES) {
		size_t kept = 0;
		for (size_t i = 0; i < g->look_count; i += 2) {
			const bool pair = i + 2 < g->look_count && g->looks[i + 1].bytes > g->looks[i].bytes;
			g->looks[kept++] = i + 2 == g->look_count ? g->looks[i + 1] : g->looks[i + pair];
		}
		g->look_count = kept;
	}
}

static int find_looks(struct planning *g)
{
	const struct process *p = g->plan->process;
	const struct sample_subject *d = g->samples ? samples_of_process(g->samples, p) : NULL;
	if (!d)
		return 0;
	g->subject = d->index;
	int e = samples_each(g->samples, p->start_ns, p->end_ns, add_look, g);
	thin_looks(g);
	return e;
}

static int by_start(const void *a, const void *b)
{
	const struct heap_mapping *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Of mappings that were as large as that and resident in part. */
static int find_mappings(struct planning *g)
{
	struct heap_plan *plan = g->plan;
	const struct process *p = plan->process;
	int e = 0;
	for (unsigned i = 0; g->samples && !e; i++) {
		i = samples_find(g->samples, MT_SUBJECT_MAPPING, p->host, i);
		if (i >= samples_subjects(g->samples))
			break;
		const struct sample_subject *d = samples_subject(g->samples, i);
		const uint64_t size = d->most[MT_MAPPING_size].value;
		if (d->pid != p->pid || strncmp(d->text, "[anon", 5) || size < LOOKED_AT || d->first_ns > p->end_ns ||
		    d->last_ns < p->start_ns)
			continue;
		e = vec_reserve(plan->mappings, plan->mapping_room, plan->mapping_count + 1);
		const uint64_t there = d->most[MT_MAPPING_rss].value + d->most[MT_MAPPING_swap].value;
		if (!e)
			plan->mappings[plan->mapping_count++] =
				(struct heap_mapping){ d->address, d->address + size,
						       there < size ? (double)there / (double)size : 1 };
	}
	if (plan->mapping_count)
		qsort(plan->mappings, plan->mapping_count, sizeof(*plan->mappings), by_start);
	return e;
}

static double share_of(const struct heap_plan *plan, uint64_t addr, uint64_t size)
{
	const size_t low = SEARCH_FIRST(i, plan->mapping_count, plan->mappings[i].start > addr);
	const struct heap_mapping *m = low ? &plan->mappings[low - 1] : NULL;
	return m && addr + size / 2 < m->end ? m->share : 1;
}

static uint64_t seen_of(const struct heap_plan *plan, uint64_t addr, uint64_t size)
{
	return size >= LOOKED_AT && plan->mapping_count ? (uint64_t)((double)size * share_of(plan, addr, size)) : size;
}

uint64_t heap_plan_touched(const struct heap_plan *plan, enum heap_what what, uint64_t addr, uint64_t size)
{
	if (plan->touch == HEAP_TOUCH_LEAST && IS_ZEROED(what, size))
		return 0;
	return plan->touch == HEAP_TOUCH_ALL ? size : seen_of(plan, addr, size);
}

/* ---- alignments -------------------------------------------------------------------------------------------- */

static uint64_t who_of(const struct heap_call *c)
{
	return (uint64_t)c->node << 10 | c->hook;
}

static unsigned bits_of(uint64_t addr)
{
	const unsigned bits = addr ? (unsigned)__builtin_ctzll(addr) : 0;
	return bits < LARGEST_ALIGNMENT ? bits : LARGEST_ALIGNMENT;
}

static int note_alignment(struct heap_plan *plan, const struct heap_call *c)
{
	struct heap_alignment *a = NULL;
	const uint64_t who = who_of(c);
	HASH_FIND(hh, plan->alignments, &who, sizeof(who), a);
	if (!a && HASH_COUNT(plan->alignments) < MOST_ALIGNMENTS) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return error_memory();
		a->who = who;
		a->bits = LARGEST_ALIGNMENT;
		HASH_ADD(hh, plan->alignments, who, sizeof(a->who), a);
	}
	if (a && bits_of(c->addr) < a->bits)
		a->bits = bits_of(c->addr);
	return 0;
}

unsigned heap_plan_alignment(const struct heap_plan *plan, const struct heap_call *c)
{
	const struct heap_alignment *a = NULL;
	const uint64_t who = who_of(c);
	HASH_FIND(hh, plan->alignments, &who, sizeof(who), a);
	return a ? a->bits : bits_of(c->addr);
}

/* ---- points ------------------------------------------------------------------------------------------------ */

static struct heap_point point_now(const struct planning *g, uint64_t ns)
{
	const struct model_process *p = g->model ? model_process(g->model, g->plan->process->id) : NULL;
	const struct heap_calls_counts *c = heap_calls_counts(g->calls);
	const uint64_t mapped = p ? less(p->map[MAP_ANON].bytes, g->allocators) : 0;
	return (struct heap_point){ .at = c->events,
				    .ns = ns,
				    .live = c->live,
				    .mapped = mapped,
				    .unseen = lower(mapped, g->unseen),
				    .recorded = HEAP_UNKNOWN };
}

/* Every second one of those that no sample is behind goes, and new ones come half as often. */
static void thin_points(struct planning *g)
{
	struct heap_plan *plan = g->plan;
	size_t kept = 0;
	bool odd = false;
	for (size_t i = 0; i < plan->point_count; i++) {
		odd ^= plan->points[i].recorded == HEAP_UNKNOWN;
		if (plan->points[i].recorded != HEAP_UNKNOWN || odd)
			plan->points[kept++] = plan->points[i];
	}
	plan->point_count = kept;
	g->step *= 2;
}

static int add_point(struct planning *g, const struct heap_point *point)
{
	struct heap_plan *plan = g->plan;
	if (plan->point_count == PLAN_MOST_POINTS)
		thin_points(g);
	int e = vec_reserve(plan->points, plan->point_room, plan->point_count + 1);
	if (!e)
		plan->points[plan->point_count++] = *point;
	return e;
}

/* Samples whose time has come, and where the heap has moved by much. */
static int add_points(struct planning *g, uint64_t ns)
{
	struct heap_point now = point_now(g, ns);
	int e = 0;
	for (; g->next_look < g->look_count && g->looks[g->next_look].ns < ns && !e; g->next_look++) {
		now.recorded = g->looks[g->next_look].bytes;
		now.ns = g->looks[g->next_look].ns;
		g->looks[g->next_look].at = now.at;
		e = add_point(g, &now);
		g->last_live = now.live;
	}
	const uint64_t moved = higher(now.live, g->last_live) - lower(now.live, g->last_live);
	if (e || moved < higher(g->step, g->plan->most_live / 64))
		return e;
	g->last_live = now.live;
	now.recorded = HEAP_UNKNOWN;
	return add_point(g, &now);
}

/* The peak's point, in its place among the others. */
static int insert_peak(struct planning *g)
{
	struct heap_plan *plan = g->plan;
	size_t at = 0;
	int e = vec_reserve(plan->points, plan->point_room, plan->point_count + 1);
	if (e)
		return e;
	while (at < plan->point_count && plan->points[at].at <= g->peak.at)
		at++;
	memmove(&plan->points[at + 1], &plan->points[at], (plan->point_count - at) * sizeof(*plan->points));
	plan->points[at] = g->peak;
	plan->point_count++;
	plan->peak = at;
	return 0;
}

/* ---- the pass ---------------------------------------------------------------------------------------------- */

static int note_life(struct planning *g, const struct heap_call *c)
{
	if (c->thread >= g->life_count && vec_extend(g->lives, g->life_count, g->life_room, c->thread + 1ul))
		return error_memory();
	struct life *l = &g->lives[c->thread];
	const uint64_t now = heap_calls_counts(g->calls)->events;
	*l = (struct life){ l->calls ? l->from : now, now, c->ring, c->thread, .calls = true };
	return 0;
}

static int on_call(void *arg, const struct heap_call *c)
{
	struct planning *g = arg;
	struct heap_plan *plan = g->plan;
	plan->rings = (uint32_t)higher(plan->rings, c->ring + 1ul);
	plan->threads = (uint32_t)higher(plan->threads, c->thread + 1ul);
	plan->zeroed += IS_ZEROED(c->what, c->size) ? c->size : 0;
	g->seen += seen_of(plan, c->addr, c->size);
	g->seen = less(g->seen,
		       c->old_size ? seen_of(plan, c->what == HEAP_FREE ? c->addr : c->old_addr, c->old_size) : 0);
	plan->most_seen = higher(plan->most_seen, g->seen);
	int e = note_life(g, c);
	return !e && c->what == HEAP_ALIGNED ? note_alignment(plan, c) : e;
}

/* The model calls it before it counts the event. */
static void on_event(void *arg, const struct process *p, const struct mt_event *s, uint32_t ring, uint32_t thread)
{
	struct planning *g = arg;
	if (g->error || p->id != g->plan->process->id)
		return;
	const uint64_t ns = process_ns(p, s->ticks);
	g->last_ns = ns;
	g->error = add_points(g, ns);
	g->plan->lost += s->kind == MT_LOST ? s->addr : 0;
	if (!g->error)
		g->error = heap_calls_event(g->calls, s, ring, thread);
	const uint64_t live = heap_calls_counts(g->calls)->live;
	if (live > g->plan->most_live) {
		g->plan->most_live = live;
		g->peak = point_now(g, ns);
	}
}

/* glibc's own mappings come by no hook, those of a library do. */
static bool is_allocators(const struct model_change *c)
{
	const struct process_module *m = reader_module_of(c->process, c->node);
	return m && heap_setting_is_library(m->path);
}

static uint64_t changed(uint64_t sum, uint64_t bytes, bool goes)
{
	return goes ? less(sum, bytes) : sum + bytes;
}

static void on_change(void *arg, const struct model_change *c)
{
	struct planning *g = arg;
	if (c->process->id != g->plan->process->id)
		return;
	g->model = c->model;
	if (c->kind != MODEL_MAP)
		return;
	const bool goes = c->bytes < 0;
	const uint64_t bytes = (uint64_t)(goes ? -c->bytes : c->bytes);
	if (is_allocators(c))
		g->allocators = changed(g->allocators, bytes, goes);
	else
		g->unseen = changed(g->unseen, bytes - seen_of(g->plan, c->addr, bytes), goes);
}

/* Behind the last event. Where the end may be missing, later samples are of calls that are missing, too. */
static int add_last_points(struct planning *g)
{
	const bool complete = g->plan->complete;
	int e = complete ? add_points(g, UINT64_MAX) : 0;
	struct heap_point last = point_now(g, complete ? g->plan->process->end_ns : g->last_ns);
	return e ? e : add_point(g, &last);
}

static int run_model(struct planning *g, struct reader *first, void (*on_progress)(double done, uint64_t events))
{
	struct model_query q = MODEL_QUERY_ALL;
	struct reader *r = NULL;
	struct model *m = NULL;
	q.on_event = on_event;
	q.on_change = on_change;
	q.arg = g;
	q.on_progress = on_progress;
	int e = reader_open_again(&r, first);
	e = e ? e : model_run(&m, r, &q);
	e = e ? e : g->error;
	if (!e) {
		g->plan->folded = model_process(m, g->plan->process->id)->fold.blocks;
		g->plan->young = model_process(m, g->plan->process->id)->fold.young_blocks;
		g->plan->lost = higher(g->plan->lost, g->plan->process->lost_events);
		g->plan->complete = reader_complete(first) && reader_complete(r);
		e = add_last_points(g);
	}
	g->model = NULL;
	model_free(m);
	reader_close(r);
	return e;
}

/* ---- threads that end -------------------------------------------------------------------------------------- */

bool heap_plan_is_main(const struct heap_plan *plan, uint32_t thread)
{
	const struct process_thread *t = process_thread(plan->process, thread);
	return t ? t->tid == plan->process->pid : thread == 0; /* without the information on it the first one is */
}

static int by_until(const void *a, const void *b)
{
	const struct life *x = a, *y = b;
	return (x->until > y->until) - (x->until < y->until);
}

/* Nobody records a thread's end, but samples count threads: of more that have made calls than there are, those have
 * ended that have been silent for longest. Some allocators give back what a thread had when it ends. */
static int find_stops_by(struct planning *g, const struct look *look)
{
	struct heap_plan *plan = g->plan;
	uint64_t there = 0;
	int e = 0;
	for (size_t i = 0; i < g->life_count; i++)
		there += g->lives[i].calls && !g->lives[i].gone && g->lives[i].from <= look->at;
	for (size_t i = 0; i < g->life_count && there > look->threads && !e; i++) {
		struct life *l = &g->lives[i];
		if (!l->calls || l->gone || l->until > look->at || heap_plan_is_main(plan, l->thread))
			continue;
		l->gone = true;
		there--;
		e = vec_reserve(plan->stops, plan->stop_room, plan->stop_count + 1);
		if (!e)
			plan->stops[plan->stop_count++] = (struct heap_stop){ look->at, l->ring, l->thread };
	}
	return e;
}

static int find_stops(struct planning *g)
{
	int e = 0;
	if (g->life_count)
		qsort(g->lives, g->life_count, sizeof(*g->lives), by_until);
	for (size_t i = 0; i < g->next_look && !e; i++)
		if (g->looks[i].threads != HEAP_UNKNOWN)
			e = find_stops_by(g, &g->looks[i]);
	return e;
}

static void find_looked(struct heap_plan *plan)
{
	size_t i = plan->point_count;
	while (i > 0 && plan->points[i - 1].recorded == HEAP_UNKNOWN)
		i--;
	plan->looked = (i ? i : plan->point_count) - 1;
}

int heap_plan_make(struct heap_plan *plan, struct reader *first, const struct samples *samples, const struct process *p,
		   void (*on_progress)(double done, uint64_t events))
{
	struct planning g = { .plan = plan, .samples = samples, .step = PLAN_LEAST_STEP };
	*plan = (struct heap_plan){ .process = p };
	g.calls = heap_calls_new(p, on_call, &g);
	int e = g.calls ? 0 : error_memory();
	e = e ? e : find_looks(&g);
	e = e ? e : find_mappings(&g);
	e = e ? e : run_model(&g, first, on_progress);
	if (!e)
		plan->counts = *heap_calls_counts(g.calls);
	e = e ? e : find_stops(&g);
	e = e ? e : insert_peak(&g);
	if (!e)
		find_looked(plan);
	heap_calls_free(g.calls);
	free(g.looks);
	free(g.lives);
	return e;
}

void heap_plan_fini(struct heap_plan *plan)
{
	struct heap_alignment *a, *next;
	HASH_ITER(hh, plan->alignments, a, next)
	{
		HASH_DEL(plan->alignments, a);
		free(a);
	}
	free(plan->points);
	free(plan->stops);
	free(plan->mappings);
	*plan = (struct heap_plan){ 0 };
}
