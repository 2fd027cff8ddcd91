#include "analyzer/timeline/timeline.h"

#include "analyzer/symbols/python_arenas.h"
#include "analyzer/timeline/cohorts.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the timeline's own parts hear of events: marks, and what a device's pool was refused. */
#define HEARD (1ull << MT_MARK | 1ull << MT_DEVICE_FAIL)

struct timeline {
	struct loop_finder *finder;
	struct phases *phases;
	struct steps *steps;
	struct samples *samples;
	struct cohorts *cohorts;
	struct reader *first, *reader; /* of passes of its own; results point to the second's processes */
	/* Whom the query called before. */
	void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
			 uint32_t thread);
	void (*on_change)(void *arg, const struct model_change *c);
	void *arg;
	struct watcher {
		void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
				 uint32_t thread);
		void (*on_change)(void *arg, const struct model_change *c);
		void *arg;
	} watchers[TIMELINE_WATCHERS];
	unsigned watcher_count;
	bool every; /* one of them hears of all events */
};

struct timeline *timeline_new(void)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));
	if (!timeline)
		return NULL;
	timeline->finder = loop_finder_new();
	timeline->phases = phases_new();
	timeline->steps = timeline->finder ? steps_new(timeline->finder) : NULL;
	timeline->cohorts = cohorts_new();
	if (timeline->steps && timeline->phases && timeline->cohorts)
		return timeline;
	timeline_free(timeline);
	return NULL;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	steps_free(timeline->steps);
	cohorts_free(timeline->cohorts);
	phases_free(timeline->phases);
	loop_finder_free(timeline->finder);
	samples_close(timeline->samples);
	reader_close(timeline->reader);
	reader_close(timeline->first);
	free(timeline);
}

int timeline_resume(struct timeline *timeline)
{
	return timeline->samples ? samples_resume(timeline->samples) : 0;
}

/* ---- passes -------------------------------------------------------------------------------------------- */

static void first_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct timeline *timeline = arg;
	if (timeline->on_event)
		timeline->on_event(timeline->arg, p, slot, ring, thread);
	loop_finder_event(timeline->finder, p, slot);
}

static void first_change(void *arg, const struct model_change *change)
{
	struct timeline *timeline = arg;
	if (timeline->on_change)
		timeline->on_change(timeline->arg, change);
	loop_finder_change(timeline->finder, change);
	if (!change->before)
		cohorts_count(timeline->cohorts, change);
	phases_first_change(timeline->phases, change);
}

static void first_level(void *arg, const struct model_level_change *l)
{
	loop_finder_level(((struct timeline *)arg)->finder, l);
}

static void left_out(void *arg, const struct model_left_out *l)
{
	cohorts_left_out(((struct timeline *)arg)->cohorts, l);
}

void timeline_attach(struct timeline *timeline, struct model_query *q)
{
	timeline->on_event = q->on_event;
	timeline->on_change = q->on_change;
	timeline->arg = q->arg;
	q->event_kinds = q->on_event && !q->event_kinds ? 0 : q->event_kinds | HEARD;
	q->on_event = first_event;
	q->on_change = first_change;
	q->on_level = first_level;
	q->on_left_out = left_out;
	q->arg = timeline;
}

void timeline_watch(struct timeline *timeline, bool every,
		    void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
				     uint32_t thread),
		    void (*on_change)(void *arg, const struct model_change *c), void *arg)
{
	if (timeline->watcher_count < TIMELINE_WATCHERS)
		timeline->watchers[timeline->watcher_count++] = (struct watcher){ on_event, on_change, arg };
	timeline->every |= every;
}

static void second_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
			 uint32_t thread)
{
	struct timeline *timeline = arg;
	for (unsigned i = 0; i < timeline->watcher_count; i++)
		timeline->watchers[i].on_event(timeline->watchers[i].arg, p, slot, ring, thread);
	steps_event(timeline->steps, p, slot, thread);
	phases_event(timeline->phases, p, slot, thread);
}

static void second_change(void *arg, const struct model_change *change)
{
	struct timeline *timeline = arg;
	for (unsigned i = 0; i < timeline->watcher_count; i++)
		timeline->watchers[i].on_change(timeline->watchers[i].arg, change);
	steps_change(timeline->steps, change);
	const struct steps_now now = steps_now(timeline->steps, change->process->id);
	if (!change->before)
		cohorts_change(timeline->cohorts, change, now.begin_ns, now.before_ns);
	phases_change(timeline->phases, change);
}

static void second_level(void *arg, const struct model_level_change *l)
{
	struct timeline *timeline = arg;
	steps_level(timeline->steps, l);
	phases_level(timeline->phases, l);
}

static void attach_second(struct timeline *timeline, struct model_query *q, bool goes_on)
{
	loop_finder_settle(timeline->finder);
	cohorts_begin(timeline->cohorts, goes_on);
	q->event_kinds = timeline->every ? 0 : HEARD;
	q->on_event = second_event;
	q->on_change = second_change;
	q->on_level = second_level;
	q->on_left_out = left_out;
	q->arg = timeline;
}

void timeline_attach_second(struct timeline *timeline, struct model_query *q)
{
	attach_second(timeline, q, true);
}

void timeline_finish(struct timeline *timeline)
{
	steps_finish(timeline->steps, timeline->cohorts);
	phases_finish(timeline->phases);
}

static struct model_query query_of(const struct selection *sel)
{
	struct model_query q = MODEL_QUERY_ALL;
	if (sel->model)
		q.until_ns = sel->until_ns;
	q.split = selection_split(sel);
	q.changes_only = true;
	q.on_progress = output_progress;
	return q;
}

/* The second pass, with the readers' processes and the sites' numbers of the first. */
static int run_again(struct timeline *timeline, const struct selection *sel, const struct reader *reader,
		     const struct model *first)
{
	struct model *m;
	struct model_query q = query_of(sel);
	attach_second(timeline, &q, false);
	q.numbers = first;
	/* each process's decoded block was among what the model has kept; another thread's arena would not find it */
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	int e = reader_open_again(&timeline->reader, reader);
	if (e == 0)
		e = model_run(&m, timeline->reader, &q);
	output_progress_end();
	if (e < 0)
		return e;
	model_free(m);
	reader_release(timeline->reader);
	timeline_finish(timeline);
	timeline_doubt(timeline, first);
	timeline_read_samples(timeline, timeline->reader);
	return 0;
}

void timeline_read_samples(struct timeline *timeline, struct reader *r)
{
	samples_close(timeline->samples);
	if (samples_open(&timeline->samples, r) < 0)
		timeline->samples = NULL; /* no figure but forecasts needs them, and whose business they are says so */
}

void timeline_doubt(struct timeline *timeline, const struct model *m)
{
	steps_doubt(timeline->steps, m);
}

struct arena_query {
	const struct timeline *timeline;
	const struct model *model;
	const struct process *process;
	struct stacks *stacks;
};

static bool is_arena(void *arg, unsigned process, uint32_t site)
{
	const struct arena_query *q = arg;
	uint32_t node, node2, blocks;
	enum model_kind kind;
	model_site_stack(q->model, process, site, &node, &node2, &kind);
	const uint64_t bytes = cohorts_live(q->timeline->cohorts, process, site, &blocks);
	return python_arenas_is(q->stacks, stacks_of_site(q->stacks, q->process, site, node, node2), bytes, blocks);
}

void timeline_find_arenas(struct timeline *timeline, const struct model *m, const struct reader *r,
			  struct stacks *stacks)
{
	for (unsigned id = 0; id < reader_processes(r); id++)
		cohorts_find_arenas(timeline->cohorts, id, is_arena,
				    &(struct arena_query){ timeline, m, reader_process(r, id), stacks });
}

int timeline_run(struct timeline *timeline, const struct selection *sel)
{
	return run_again(timeline, sel, sel->reader, sel->model);
}

int timeline_make(struct timeline **out, const struct selection *sel)
{
	struct model_query q = query_of(sel);
	struct timeline *timeline = timeline_new();
	struct model *first = NULL;
	*out = NULL;
	if (!timeline)
		return error_memory();
	timeline_attach(timeline, &q);
	int e = reader_open_again(&timeline->first, sel->reader);
	if (e == 0)
		e = model_run(&first, timeline->first, &q);
	output_progress_end();
	if (e == 0)
		e = run_again(timeline, sel, timeline->first, first);
	model_free(first);
	if (e < 0) {
		timeline_free(timeline);
		return e;
	}
	*out = timeline;
	return 0;
}

/* ---- what was found ------------------------------------------------------------------------------------ */

const struct step_list *timeline_step_list(const struct timeline *timeline, unsigned process)
{
	return steps_of(timeline->steps, process);
}
const struct phases *timeline_phases(const struct timeline *timeline)
{
	return timeline->phases;
}
const struct steps *timeline_steps(const struct timeline *timeline)
{
	return timeline->steps;
}
const struct samples *timeline_samples(const struct timeline *timeline)
{
	return timeline->samples;
}
const struct cohorts *timeline_cohorts(const struct timeline *timeline)
{
	return timeline->cohorts;
}

static uint64_t highest(const struct step_list *steps)
{
	uint64_t most = 0;
	for (size_t k = 0; k < steps->track_count; k++)
		for (size_t i = 0; i < steps->count; i++)
			most = step_high(&steps->tracks[k], i) > most ? step_high(&steps->tracks[k], i) : most;
	return most;
}

const struct step_list *timeline_main(const struct timeline *timeline, const struct selection *sel)
{
	const struct step_list *best = NULL;
	uint64_t most = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct step_list *steps = timeline_step_list(timeline, id);
		if (!steps || steps->source == LOOP_NONE || !steps->count ||
		    !selection_has(sel, reader_process(sel->reader, id)))
			continue;
		uint64_t high = highest(steps);
		if (best && (steps->source > best->source || (steps->source == best->source && high <= most)))
			continue;
		best = steps;
		most = high;
	}
	return best;
}

size_t timeline_points(const struct step_list *steps, const struct step_track *t, double *x, double *low, double *high)
{
	size_t n = steps->count;
	if (n && (steps->source == LOOP_NONE || steps->steps[n - 1].partial))
		n--;
	for (size_t i = 0; i < n; i++) {
		x[i] = step_x(steps, i);
		low[i] = (double)step_low(t, i);
		high[i] = (double)step_high(t, i);
	}
	return n;
}

bool timeline_steps_are_sure(const struct step_list *steps)
{
	return steps->source == LOOP_MARKS || steps->source == LOOP_NVTX || steps->source == LOOP_MSTX ||
	       steps->source == LOOP_OPTIMIZER || steps->whole;
}

struct growth timeline_growth(const struct step_list *steps, const struct step_track *t)
{
	double *points = calloc(3 * steps->count + 1, sizeof(*points));
	double *x = points, *low = points + steps->count, *high = low + steps->count;
	struct growth g = growth_of(x, low, points ? timeline_points(steps, t, x, low, high) : 0);
	free(points);
	g.stepped = steps->source != LOOP_NONE;
	if (!g.stepped && steps->count)
		g.lasted_s = step_x(steps, steps->count - 1) - g.since_x;
	growth_doubt(&g, t->doubt);
	return g;
}

double timeline_amplitude(const struct step_list *steps, const struct step_track *t)
{
	enum { TIMELINE_LATEST = 64 };
	double rises[TIMELINE_LATEST];
	size_t n = 0;
	for (size_t i = steps->count; i-- > 0 && n < TIMELINE_LATEST;)
		if (!steps->steps[i].partial && steps->steps[i].rare * 2 <= steps->steps[i].count)
			rises[n++] = (double)(step_high(t, i) - step_low(t, i));
	return median_of(rises, n);
}

double timeline_period(const struct step_list *steps)
{
	if (steps->source == LOOP_NONE || !steps->count || !steps->total)
		return 0;
	return (double)less(steps->steps[steps->count - 1].end_ns, steps->steps[0].begin_ns) / 1e9 /
	       (double)steps->total;
}

int timeline_step_time(const struct timeline *timeline, const struct selection *sel, uint64_t number, const char *text,
		       uint64_t *begin, uint64_t *end)
{
	const struct step_list *steps = timeline_main(timeline, sel);
	size_t i = steps ? step_find(steps, number) : 0;
	if (!steps)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "no steps were found in this trace");
	if (i == steps->count)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "this trace has steps %llu to %llu",
				 (unsigned long long)steps->steps[0].number,
				 (unsigned long long)(steps->steps[steps->count - 1].number +
						      steps->steps[steps->count - 1].count - 1));
	const struct step *s = &steps->steps[i];
	double length = (double)(s->end_ns - s->begin_ns) / s->count;
	*begin = s->begin_ns + (uint64_t)(length * (double)(number - s->number));
	*end = number - s->number + 1 == s->count ? s->end_ns : *begin + (uint64_t)length;
	return 0;
}

/* What is mapped says least of what a phase needs: much of it is never touched. */
static const struct phase_track *greatest(const struct phase *p)
{
	const struct phase_track *best = NULL;
	for (size_t k = 0; k < p->track_count; k++) {
		const struct phase_track *t = &p->tracks[k];
		bool mapped = t->kind == MODEL_MAP, was = best && best->kind == MODEL_MAP;
		if (!best || (was && !mapped) || (was == mapped && t->peak_bytes > best->peak_bytes))
			best = t;
	}
	return best;
}

/* Of several visits: from the first to the last, and the peak of all. */
int timeline_phase_time(const struct timeline *timeline, const struct selection *sel, const char *name,
			const char *text, uint64_t *begin, uint64_t *peak, uint64_t *end)
{
	uint64_t most = 0;
	size_t first = phases_find(timeline->phases, name, 0);
	*begin = UINT64_MAX;
	*end = *peak = 0;
	for (size_t i = first; i < phases_count(timeline->phases); i++) {
		const struct phase *p = phases_get(timeline->phases, i), *found = phases_get(timeline->phases, first);
		const struct phase_track *t = greatest(p);
		if (strcmp(p->name, found->name) || p->process->id != found->process->id ||
		    !selection_has(sel, p->process))
			continue;
		*begin = p->begin_ns < *begin ? p->begin_ns : *begin;
		*end = p->end_ns > *end ? p->end_ns : *end;
		if (t && t->peak_bytes > most) {
			most = t->peak_bytes;
			*peak = t->peak_ns;
		}
	}
	if (*begin == UINT64_MAX)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET,
				 "no phase of this trace is called so; memtrace timeline --by phase "
				 "lists them");
	if (!*peak)
		*peak = *end;
	return 0;
}

const char *timeline_source(enum loop_source source)
{
	static const char *const names[] = {
		[LOOP_NONE] = "none", [LOOP_MARKS] = "marks",        [LOOP_NVTX] = "nvtx",
		[LOOP_MSTX] = "mstx", [LOOP_OPTIMIZER] = "inferred", [LOOP_SITES] = "inferred",
	};
	return names[source];
}

const char *timeline_track_name(const struct selection *sel, const struct process *p, uint32_t kind, uint32_t device,
				char *out, size_t size)
{
	const struct model_device *d = device < model_devices(sel->model) ? model_device(sel->model, device) : NULL;
	(void)p;
	if (d)
		snprintf(out, size, "%s%s", d->name, kind == MODEL_POOL ? " pool" : "");
	else
		snprintf(out, size, "%s", kind == MODEL_HEAP ? "host" : kind_name((enum model_kind)kind));
	return out;
}
