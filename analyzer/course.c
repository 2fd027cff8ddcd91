#include "analyzer/course.h"

#include "analyzer/arith.h"
#include "analyzer/error.h"
#include "analyzer/output.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YOUNG 0.3  /* of what grew: less of it is older than a step */
#define NEEDS 1.5  /* times what grew, by which steps rise higher: what is made anew, only larger, is there twice for a moment */

struct course {
	struct rhythm *rhythm;
	struct phases *phases;
	struct steps *steps;
	struct samples *samples;
	struct work *work;
	struct reader *first, *reader; /* of passes of its own; results point to the second's processes */
	/* Whom the query called before. */
	void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread);
	void (*on_change)(void *arg, const struct model_change *c);
	void *arg;
	/* course_watch() */
	void (*watch_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread);
	void (*watch_change)(void *arg, const struct model_change *c);
	void *watch_arg;
};

struct course *course_new(void)
{
	struct course *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->rhythm = rhythm_new();
	c->phases = phases_new();
	c->steps = c->rhythm ? steps_new(c->rhythm) : NULL;
	c->work = work_new();
	if (c->steps && c->phases && c->work)
		return c;
	course_free(c);
	return NULL;
}

void course_free(struct course *c)
{
	if (!c)
		return;
	steps_free(c->steps);
	work_free(c->work);
	phases_free(c->phases);
	rhythm_free(c->rhythm);
	samples_close(c->samples);
	reader_close(c->reader);
	reader_close(c->first);
	free(c);
}

/* ---- passes -------------------------------------------------------------------------------------------- */

static void first_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct course *c = arg;
	if (c->on_event)
		c->on_event(c->arg, p, slot, ring, thread);
	rhythm_event(c->rhythm, p, slot);
}

static void first_change(void *arg, const struct model_change *change)
{
	struct course *c = arg;
	if (c->on_change)
		c->on_change(c->arg, change);
	rhythm_change(c->rhythm, change);
	phases_look(c->phases, change);
}

static void first_level(void *arg, const struct model_level_change *l)
{
	rhythm_level(((struct course *)arg)->rhythm, l);
}

void course_attach(struct course *c, struct model_query *q)
{
	c->on_event = q->on_event;
	c->on_change = q->on_change;
	c->arg = q->arg;
	q->on_event = first_event;
	q->on_change = first_change;
	q->on_level = first_level;
	q->arg = c;
}

void course_watch(struct course *c, void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
						     uint32_t thread),
		  void (*on_change)(void *arg, const struct model_change *c), void *arg)
{
	c->watch_event = on_event;
	c->watch_change = on_change;
	c->watch_arg = arg;
}

static void second_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct course *c = arg;
	if (c->watch_event)
		c->watch_event(c->watch_arg, p, slot, ring, thread);
	steps_event(c->steps, p, slot, thread);
	phases_event(c->phases, p, slot, thread);
}

static void second_change(void *arg, const struct model_change *change)
{
	struct course *c = arg;
	if (c->watch_change)
		c->watch_change(c->watch_arg, change);
	steps_change(c->steps, change);
	work_change(c->work, change);
	phases_change(c->phases, change);
}

static void second_level(void *arg, const struct model_level_change *l)
{
	struct course *c = arg;
	steps_level(c->steps, l);
	phases_level(c->phases, l);
}

void course_attach_second(struct course *c, struct model_query *q)
{
	rhythm_settle(c->rhythm);
	q->on_event = second_event;
	q->on_change = second_change;
	q->on_level = second_level;
	q->arg = c;
}

void course_finish(struct course *c)
{
	steps_finish(c->steps);
	phases_finish(c->phases);
}

static struct model_query query_of(const struct view *v)
{
	struct model_query q = MODEL_QUERY_ALL;
	if (v->model)
		q.until_ns = v->until_ns;
	q.split = view_split(v);
	q.changes_only = true;
	q.on_progress = output_progress;
	return q;
}

/* The second pass, with the readers' processes and the sites' numbers of the first. */
static int run_again(struct course *c, const struct view *v, const struct reader *reader, const struct model *first)
{
	struct model *m;
	struct model_query q = query_of(v);
	course_attach_second(c, &q);
	q.numbers = first;
	malloc_trim(0); /* each process's decoded block was among what the model has kept; another thread's arena would not find it */
	int e = reader_again(&c->reader, reader);
	if (e == 0)
		e = model_run(&m, c->reader, &q);
	output_progress_end();
	if (e < 0)
		return e;
	model_free(m);
	reader_rest(c->reader);
	course_finish(c);
	course_doubt(c, first);
	if (samples_open(&c->samples, c->reader) < 0)
		c->samples = NULL; /* no figure but forecasts needs them, and whose business they are says so */
	return 0;
}

void course_doubt(struct course *c, const struct model *m)
{
	steps_doubt(c->steps, m);
}

int course_run(struct course *c, const struct view *v)
{
	return run_again(c, v, v->reader, v->model);
}

int course_make(struct course **out, const struct view *v)
{
	struct model_query q = query_of(v);
	struct course *c = course_new();
	struct model *first = NULL;
	*out = NULL;
	if (!c)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	course_attach(c, &q);
	int e = reader_again(&c->first, v->reader);
	if (e == 0)
		e = model_run(&first, c->first, &q);
	output_progress_end();
	if (e == 0)
		e = run_again(c, v, c->first, first);
	model_free(first);
	if (e < 0) {
		course_free(c);
		return e;
	}
	*out = c;
	return 0;
}

/* ---- what was found ------------------------------------------------------------------------------------ */

const struct pace *course_pace(const struct course *c, unsigned process) { return steps_of(c->steps, process); }
const struct phases *course_phases(const struct course *c) { return c->phases; }
const struct steps *course_steps(const struct course *c) { return c->steps; }
const struct samples *course_samples(const struct course *c) { return c->samples; }
const struct work *course_work(const struct course *c) { return c->work; }

static uint64_t highest(const struct pace *p)
{
	uint64_t most = 0;
	for (size_t k = 0; k < p->track_count; k++)
		for (size_t i = 0; i < p->count; i++)
			most = step_high(&p->tracks[k], i) > most ? step_high(&p->tracks[k], i) : most;
	return most;
}

const struct pace *course_main(const struct course *c, const struct view *v)
{
	const struct pace *best = NULL;
	uint64_t most = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct pace *p = course_pace(c, id);
		if (!p || p->source == RHYTHM_NONE || !p->count || !view_has(v, reader_process(v->reader, id)))
			continue;
		uint64_t high = highest(p);
		if (best && (p->source > best->source || (p->source == best->source && high <= most)))
			continue;
		best = p;
		most = high;
	}
	return best;
}

size_t course_points(const struct pace *p, const struct step_track *t, double *x, double *low, double *high)
{
	size_t n = p->count;
	if (n && (p->source == RHYTHM_NONE || p->steps[n - 1].partial))
		n--;
	for (size_t i = 0; i < n; i++) {
		x[i] = step_x(p, i);
		low[i] = (double)step_low(t, i);
		high[i] = (double)step_high(t, i);
	}
	return n;
}

/* The median of how far the entries [from, to) rise above their low points. */
static double rise_of(const struct step_track *t, size_t from, size_t to)
{
	double *rises = calloc(to - from + 1, sizeof(*rises)), median = 0;
	for (size_t i = from; rises && i < to; i++)
		rises[i - from] = (double)(step_high(t, i) - step_low(t, i));
	if (rises)
		median = median_of(rises, to - from);
	free(rises);
	return median;
}

bool course_is_needed(const struct pace *p, const struct step_track *t, const struct growth *g, double kept)
{
	size_t from = 0, end = p->count && p->steps[p->count - 1].partial ? p->count - 1 : p->count;
	if (p->source == RHYTHM_NONE || g->bytes <= 0 || kept >= YOUNG * g->bytes)
		return false;
	while (from + 1 < end && step_x(p, from) < g->since_x)
		from++;
	size_t part = (end - from) / 4;
	return part && rise_of(t, end - part, end) - rise_of(t, from, from + part) >= NEEDS * g->bytes;
}

struct growth course_growth(const struct pace *p, const struct step_track *t)
{
	double *points = calloc(3 * p->count + 1, sizeof(*points));
	double *x = points, *low = points + p->count, *high = low + p->count;
	struct growth g = growth_of(x, low, points ? course_points(p, t, x, low, high) : 0);
	free(points);
	if (growth_is_steady(&g) && course_is_needed(p, t, &g, steps_track_kept(p, t)))
		g.kind = GROWTH_NONE;
	growth_doubt(&g, t->doubt);
	return g;
}

double course_amplitude(const struct pace *p, const struct step_track *t)
{
	enum { LATEST = 64 };
	double rises[LATEST];
	size_t n = 0;
	for (size_t i = p->count; i-- > 0 && n < LATEST;)
		if (!p->steps[i].partial && p->steps[i].rare * 2 <= p->steps[i].count)
			rises[n++] = (double)(step_high(t, i) - step_low(t, i));
	return median_of(rises, n);
}

double course_period(const struct pace *p)
{
	size_t n = 0;
	double *lengths = calloc(p->count + 1, sizeof(*lengths)), period = 0;
	for (size_t i = 0; lengths && p->source != RHYTHM_NONE && i < p->count; i++)
		if (!p->steps[i].partial)
			lengths[n++] = (double)(p->steps[i].end_ns - p->steps[i].begin_ns) / 1e9 / p->steps[i].count;
	if (lengths)
		period = median_of(lengths, n);
	free(lengths);
	return period;
}

double course_mean_period(const struct pace *p)
{
	if (p->source == RHYTHM_NONE || !p->count || !p->total)
		return 0;
	return (double)less(p->steps[p->count - 1].end_ns, p->steps[0].begin_ns) / 1e9 / (double)p->total;
}

int course_step_time(const struct course *c, const struct view *v, uint64_t number, const char *text, uint64_t *begin, uint64_t *end)
{
	const struct pace *p = course_main(c, v);
	size_t i = p ? step_find(p, number) : 0;
	if (!p)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "no steps were found in this trace");
	if (i == p->count)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "this trace has steps %llu to %llu",
				 (unsigned long long)p->steps[0].number,
				 (unsigned long long)(p->steps[p->count - 1].number + p->steps[p->count - 1].count - 1));
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
int course_phase_time(const struct course *c, const struct view *v, const char *name, const char *text, uint64_t *begin,
		      uint64_t *peak, uint64_t *end)
{
	uint64_t most = 0;
	size_t first = phases_find(c->phases, name, 0);
	*begin = UINT64_MAX;
	*end = *peak = 0;
	for (size_t i = first; i < phases_count(c->phases); i++) {
		const struct phase *p = phases_get(c->phases, i), *found = phases_get(c->phases, first);
		const struct phase_track *t = greatest(p);
		if (strcmp(p->name, found->name) || p->process->id != found->process->id || !view_has(v, p->process))
			continue;
		*begin = p->begin_ns < *begin ? p->begin_ns : *begin;
		*end = p->end_ns > *end ? p->end_ns : *end;
		if (t && t->peak_bytes > most) {
			most = t->peak_bytes;
			*peak = t->peak_ns;
		}
	}
	if (*begin == UINT64_MAX)
		return error_set(MT_EUSAGE, text, ERROR_NO_OFFSET, "no phase of this trace is called so; memtrace timeline --by phase "
				 "lists them");
	if (!*peak)
		*peak = *end;
	return 0;
}

const char *course_source(enum rhythm_source source)
{
	static const char *const names[] = {
		[RHYTHM_NONE] = "none", [RHYTHM_MARKS] = "marks", [RHYTHM_NVTX] = "nvtx", [RHYTHM_MSTX] = "mstx",
		[RHYTHM_OPTIMIZER] = "inferred", [RHYTHM_SITES] = "inferred",
	};
	return names[source];
}

const char *course_track_name(const struct view *v, const struct process *p, uint32_t kind, uint32_t device, char *out, size_t size)
{
	const struct model_device *d = device < model_devices(v->model) ? model_device(v->model, device) : NULL;
	(void)p;
	if (d)
		snprintf(out, size, "%s%s", d->name, kind == MODEL_POOL ? " pool" : "");
	else
		snprintf(out, size, "%s", kind == MODEL_HEAP ? "host" : kind_name((enum model_kind)kind));
	return out;
}
