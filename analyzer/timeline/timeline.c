#include "analyzer/timeline/timeline.h"

#include "analyzer/timeline/cohorts.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
};

struct timeline *timeline_new(void)
{
	struct timeline *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->finder = loop_finder_new();
	c->phases = phases_new();
	c->steps = c->finder ? steps_new(c->finder) : NULL;
	c->cohorts = cohorts_new();
	if (c->steps && c->phases && c->cohorts)
		return c;
	timeline_free(c);
	return NULL;
}

void timeline_free(struct timeline *c)
{
	if (!c)
		return;
	steps_free(c->steps);
	cohorts_free(c->cohorts);
	phases_free(c->phases);
	loop_finder_free(c->finder);
	samples_close(c->samples);
	reader_close(c->reader);
	reader_close(c->first);
	free(c);
}

/* ---- passes -------------------------------------------------------------------------------------------- */

static void first_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct timeline *c = arg;
	if (c->on_event)
		c->on_event(c->arg, p, slot, ring, thread);
	loop_finder_event(c->finder, p, slot);
}

static void first_change(void *arg, const struct model_change *change)
{
	struct timeline *c = arg;
	if (c->on_change)
		c->on_change(c->arg, change);
	loop_finder_change(c->finder, change);
	cohorts_count(c->cohorts, change);
	phases_first_change(c->phases, change);
}

static void first_level(void *arg, const struct model_level_change *l)
{
	loop_finder_level(((struct timeline *)arg)->finder, l);
}

void timeline_attach(struct timeline *c, struct model_query *q)
{
	c->on_event = q->on_event;
	c->on_change = q->on_change;
	c->arg = q->arg;
	q->on_event = first_event;
	q->on_change = first_change;
	q->on_level = first_level;
	q->arg = c;
}

void timeline_watch(struct timeline *c,
		    void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
				     uint32_t thread),
		    void (*on_change)(void *arg, const struct model_change *c), void *arg)
{
	if (c->watcher_count < TIMELINE_WATCHERS)
		c->watchers[c->watcher_count++] = (struct watcher){ on_event, on_change, arg };
}

static void second_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
			 uint32_t thread)
{
	struct timeline *c = arg;
	for (unsigned i = 0; i < c->watcher_count; i++)
		c->watchers[i].on_event(c->watchers[i].arg, p, slot, ring, thread);
	steps_event(c->steps, p, slot, thread);
	phases_event(c->phases, p, slot, thread);
}

static void second_change(void *arg, const struct model_change *change)
{
	struct timeline *c = arg;
	for (unsigned i = 0; i < c->watcher_count; i++)
		c->watchers[i].on_change(c->watchers[i].arg, change);
	steps_change(c->steps, change);
	const struct steps_now now = steps_now(c->steps, change->process->id);
	cohorts_change(c->cohorts, change, now.begin_ns, now.before_ns);
	phases_change(c->phases, change);
}

static void second_level(void *arg, const struct model_level_change *l)
{
	struct timeline *c = arg;
	steps_level(c->steps, l);
	phases_level(c->phases, l);
}

static void attach_second(struct timeline *c, struct model_query *q, bool goes_on)
{
	loop_finder_settle(c->finder);
	cohorts_begin(c->cohorts, goes_on);
	q->on_event = second_event;
	q->on_change = second_change;
	q->on_level = second_level;
	q->arg = c;
}

void timeline_attach_second(struct timeline *c, struct model_query *q)
{
	attach_second(c, q, true);
}

void timeline_finish(struct timeline *c)
{
	steps_finish(c->steps, c->cohorts);
	phases_finish(c->phases);
}

static struct model_query query_of(const struct selection *v)
{
	struct model_query q = MODEL_QUERY_ALL;
	if (v->model)
		q.until_ns = v->until_ns;
	q.split = selection_split(v);
	q.changes_only = true;
	q.on_progress = output_progress;
	return q;
}

/* The second pass, with the readers' processes and the sites' numbers of the first. */
static int run_again(struct timeline *c, const struct selection *v, const struct reader *reader,
		     const struct model *first)
{
	struct model *m;
	struct model_query q = query_of(v);
	attach_second(c, &q, false);
	q.numbers = first;
	/* each process's decoded block was among what the model has kept; another thread's arena would not find it */
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	int e = reader_open_again(&c->reader, reader);
	if (e == 0)
		e = model_run(&m, c->reader, &q);
	output_progress_end();
	if (e < 0)
		return e;
	model_free(m);
	reader_release(c->reader);
	timeline_finish(c);
	timeline_doubt(c, first);
	if (samples_open(&c->samples, c->reader) < 0)
		c->samples = NULL; /* no figure but forecasts needs them, and whose business they are says so */
	return 0;
}

void timeline_doubt(struct timeline *c, const struct model *m)
{
	steps_doubt(c->steps, m);
}

int timeline_run(struct timeline *c, const struct selection *v)
{
	return run_again(c, v, v->reader, v->model);
}

int timeline_make(struct timeline **out, const struct selection *v)
{
	struct model_query q = query_of(v);
	struct timeline *c = timeline_new();
	struct model *first = NULL;
	*out = NULL;
	if (!c)
		return error_memory();
	timeline_attach(c, &q);
	int e = reader_open_again(&c->first, v->reader);
	if (e == 0)
		e = model_run(&first, c->first, &q);
	output_progress_end();
	if (e == 0)
		e = run_again(c, v, c->first, first);
	model_free(first);
	if (e < 0) {
		timeline_free(c);
		return e;
	}
	*out = c;
	return 0;
}

/* ---- what was found ------------------------------------------------------------------------------------ */

const struct step_list *timeline_step_list(const struct timeline *c, unsigned process)
{
	return steps_of(c->steps, process);
}
const struct phases *timeline_phases(const struct timeline *c)
{
	return c->phases;
}
const struct steps *timeline_steps(const struct timeline *c)
{
	return c->steps;
}
const struct samples *timeline_samples(const struct timeline *c)
{
	return c->samples;
}
const struct cohorts *timeline_cohorts(const struct timeline *c)
{
	return c->cohorts;
}

static uint64_t highest(const struct step_list *p)
{
	uint64_t most = 0;
	for (size_t k = 0; k < p->track_count; k++)
		for (size_t i = 0; i < p->count; i++)
			most = step_high(&p->tracks[k], i) > most ? step_high(&p->tracks[k], i) : most;
	return most;
}

const struct step_list *timeline_main(const struct timeline *c, const struct selection *v)
{
	const struct step_list *best = NULL;
	uint64_t most = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct step_list *p = timeline_step_list(c, id);
		if (!p || p->source == LOOP_NONE || !p->count || !selection_has(v, reader_process(v->reader, id)))
			continue;
		uint64_t high = highest(p);
		if (best && (p->source > best->source || (p->source == best->source && high <= most)))
			continue;
		best = p;
		most = high;
	}
	return best;
}

size_t timeline_points(const struct step_list *p, const struct step_track *t, double *x, double *low, double *high)
{
	size_t n = p->count;
	if (n && (p->source == LOOP_NONE || p->steps[n - 1].partial))
		n--;
	for (size_t i = 0; i < n; i++) {
		x[i] = step_x(p, i);
		low[i] = (double)step_low(t, i);
		high[i] = (double)step_high(t, i);
	}
	return n;
}

bool timeline_steps_are_sure(const struct step_list *p)
{
	return p->source == LOOP_MARKS || p->source == LOOP_NVTX || p->source == LOOP_MSTX ||
	       p->source == LOOP_OPTIMIZER || p->whole;
}

struct growth timeline_growth(const struct step_list *p, const struct step_track *t)
{
	double *points = calloc(3 * p->count + 1, sizeof(*points));
	double *x = points, *low = points + p->count, *high = low + p->count;
	struct growth g = growth_of(x, low, points ? timeline_points(p, t, x, low, high) : 0);
	free(points);
	growth_doubt(&g, t->doubt);
	return g;
}

double timeline_amplitude(const struct step_list *p, const struct step_track *t)
{
	enum { LATEST = 64 };
	double rises[LATEST];
	size_t n = 0;
	for (size_t i = p->count; i-- > 0 && n < LATEST;)
		if (!p->steps[i].partial && p->steps[i].rare * 2 <= p->steps[i].count)
			rises[n++] = (double)(step_high(t, i) - step_low(t, i));
	return median_of(rises, n);
}

double timeline_period(const struct step_list *p)
{
	size_t n = 0;
	double *lengths = calloc(p->count + 1, sizeof(*lengths)), period = 0;
	for (size_t i = 0; lengths && p->source != LOOP_NONE && i < p->count; i++)
		if (!p->steps[i].partial)
			lengths[n++] = (double)(p->steps[i].end_ns - p->steps[i].begin_ns) / 1e9 / p->steps[i].count;
	if (lengths)
		period = median_of(lengths, n);
	free(lengths);
	return period;
}

double timeline_mean_period(const struct step_list *p)
{
	if (p->source == LOOP_NONE || !p->count || !p->total)
		return 0;
	return (double)less(p->steps[p->count - 1].end_ns, p->steps[0].begin_ns) / 1e9 / (double)p->total;
}

int timeline_step_time(const struct timeline *c, const struct selection *v, uint64_t number, const char *text,
		       uint64_t *begin, uint64_t *end)
{
	const struct step_list *p = timeline_main(c, v);
	size_t i = p ? step_find(p, number) : 0;
	if (!p)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "no steps were found in this trace");
	if (i == p->count)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "this trace has steps %llu to %llu",
				 (unsigned long long)p->steps[0].number,
				 (unsigned long long)(p->steps[p->count - 1].number + p->steps[p->count - 1].count -
						      1));
	const struct step *s = &p->steps[i];
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
int timeline_phase_time(const struct timeline *c, const struct selection *v, const char *name, const char *text,
			uint64_t *begin, uint64_t *peak, uint64_t *end)
{
	uint64_t most = 0;
	size_t first = phases_find(c->phases, name, 0);
	*begin = UINT64_MAX;
	*end = *peak = 0;
	for (size_t i = first; i < phases_count(c->phases); i++) {
		const struct phase *p = phases_get(c->phases, i), *found = phases_get(c->phases, first);
		const struct phase_track *t = greatest(p);
		if (strcmp(p->name, found->name) || p->process->id != found->process->id ||
		    !selection_has(v, p->process))
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

const char *timeline_track_name(const struct selection *v, const struct process *p, uint32_t kind, uint32_t device,
				char *out, size_t size)
{
	const struct model_device *d = device < model_devices(v->model) ? model_device(v->model, device) : NULL;
	(void)p;
	if (d)
		snprintf(out, size, "%s%s", d->name, kind == MODEL_POOL ? " pool" : "");
	else
		snprintf(out, size, "%s", kind == MODEL_HEAP ? "host" : kind_name((enum model_kind)kind));
	return out;
}
