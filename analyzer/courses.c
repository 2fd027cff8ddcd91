#include "analyzer/courses.h"

#include "analyzer/error.h"
#include "analyzer/vec.h"

#include <stdlib.h>

enum { HOST_RSS, HOST_SWAP, HOST_AVAILABLE, HOST_CGROUP, HOST_COURSES };
enum { PROCESS_RSS, PROCESS_SWAP, PROCESS_UNSEEN, PROCESS_COURSES };

static const char *const host_names[HOST_COURSES] = { "rss", "swap", "available", "cgroup" };
static const char *const process_names[PROCESS_COURSES] = { "rss", "swap", "unseen" };

struct courses {
	const struct view *view;
	struct samples *samples;
	struct course *courses;   /* HOST_COURSES of each host, then PROCESS_COURSES of each process */
	size_t count;
	struct course **shown;
	size_t shown_count;
	uint32_t buckets;         /* of the whole run */
	uint64_t width_ns;
	uint64_t *rss;            /* by subject: its share of its host's sum */
	uint64_t *sums;           /* by host */
	uint64_t *limits;         /* by host: the lowest of its cgroups so far */
	int error;
};

static struct course *of_host(struct courses *c, const struct reader_host *h, int what)
{
	return &c->courses[h->index * HOST_COURSES + (unsigned)what];
}

static struct course *of_process(struct courses *c, const struct process *p, int what)
{
	return &c->courses[reader_hosts(c->view->reader) * HOST_COURSES + p->id * PROCESS_COURSES + (unsigned)what];
}

/* ---- one value ------------------------------------------------------------------------------------------- */

/* All stretches up to that one have the latest value. */
static void carry(struct courses *c, struct model_series *s, uint32_t until)
{
	if (!s->count)
		return;
	uint64_t value = s->buckets[s->count - 1].last;
	while (!c->error && s->first + s->count < until) {
		size_t room = s->room;
		c->error = vec_reserve(s->buckets, room, s->count + 1);
		s->room = (uint32_t)room;
		if (!c->error)
			s->buckets[s->count++] = (struct model_bucket){ value, value, value, 0 };
	}
}

static void note(struct courses *c, struct course *course, uint64_t ns, uint64_t value)
{
	struct model_series *s = &course->series;
	if (ns < c->view->from_ns || c->error)
		return;
	uint32_t at = (uint32_t)((ns - c->view->from_ns) / c->width_ns);
	if (at >= c->buckets)
		return;
	if (!s->count) {
		size_t room = s->room;
		s->first = at;
		c->error = vec_reserve(s->buckets, room, 1);
		s->room = (uint32_t)room;
		if (!c->error)
			s->buckets[s->count++] = (struct model_bucket){ value, value, value, 0 };
		return;
	}
	carry(c, s, at + 1);
	if (c->error || at < s->first)
		return;
	struct model_bucket *b = &s->buckets[at - s->first];
	b->low = value < b->low ? value : b->low;
	b->high = value > b->high ? value : b->high;
	b->last = value;
}

/* ---- the pass -------------------------------------------------------------------------------------------- */

static bool knows(const struct sample *x, unsigned field) { return x->fields >> field & 1; }

/* Live mapped bytes in the stretch that holds the moment. */
static uint64_t mapped_at(struct courses *c, const struct process *p, uint64_t ns)
{
	const struct model_series *s = &model_process(c->view->model, p->id)->timeline[MODEL_MAP];
	uint32_t at = ns < c->view->from_ns ? 0 : (uint32_t)((ns - c->view->from_ns) / c->width_ns);
	if (!s->count || at < s->first)
		return 0;
	at -= s->first;
	return s->buckets[at < s->count ? at : s->count - 1].last;
}

static void take_process(struct courses *c, const struct sample *x)
{
	const struct sample_subject *d = x->subject;
	if (!d->traced)
		return;
	uint64_t rss = x->gone ? 0 : x->value[MT_PROCESS_rss];
	c->sums[d->host->index] += rss - c->rss[d->index];
	c->rss[d->index] = rss;
	const struct process *p = x->gone ? NULL : samples_process(c->samples, d, x->ns);
	if (!p || !view_has(c->view, p))
		return;
	if (knows(x, MT_PROCESS_rss))
		note(c, of_process(c, p, PROCESS_RSS), x->ns, rss);
	if (knows(x, MT_PROCESS_swap))
		note(c, of_process(c, p, PROCESS_SWAP), x->ns, x->value[MT_PROCESS_swap]);
	if (knows(x, MT_PROCESS_size)) {
		uint64_t size = x->value[MT_PROCESS_size], mapped = mapped_at(c, p, x->ns);
		note(c, of_process(c, p, PROCESS_UNSEEN), x->ns, size > mapped ? size - mapped : 0);
	}
}

/* It ends each sample of all processes. */
static void take_machine(struct courses *c, const struct sample *x)
{
	const struct reader_host *h = x->subject->host;
	note(c, of_host(c, h, HOST_RSS), x->ns, c->sums[h->index]);
	if (knows(x, MT_MACHINE_swap_total))
		note(c, of_host(c, h, HOST_SWAP), x->ns, x->value[MT_MACHINE_swap_total] - x->value[MT_MACHINE_swap_free]);
	if (knows(x, MT_MACHINE_available))
		note(c, of_host(c, h, HOST_AVAILABLE), x->ns, x->value[MT_MACHINE_available]);
}

static void take_cgroup(struct courses *c, const struct sample *x)
{
	const struct reader_host *h = x->subject->host;
	uint64_t limit = x->value[MT_CGROUP_limit];
	if (!limit || limit > c->limits[h->index])
		return;
	c->limits[h->index] = limit;
	note(c, of_host(c, h, HOST_CGROUP), x->ns, x->value[MT_CGROUP_current]);
}

static int take(void *arg, const struct sample *x)
{
	struct courses *c = arg;
	if (x->subject->kind == MT_SUBJECT_PROCESS)
		take_process(c, x);
	else if (x->subject->kind == MT_SUBJECT_MACHINE && !x->gone)
		take_machine(c, x);
	else if (x->subject->kind == MT_SUBJECT_CGROUP && !x->gone)
		take_cgroup(c, x);
	return c->error;
}

/* ---- interface ------------------------------------------------------------------------------------------- */

static void name_courses(struct courses *c)
{
	const struct reader *r = c->view->reader;
	for (unsigned h = 0; h < reader_hosts(r); h++)
		for (int k = 0; k < HOST_COURSES; k++)
			*of_host(c, reader_host(r, h), k) = (struct course){ NULL, reader_host(r, h), host_names[k], { 0 } };
	for (unsigned i = 0; i < reader_processes(r); i++)
		for (int k = 0; k < PROCESS_COURSES; k++)
			*of_process(c, reader_process(r, i), k) =
				(struct course){ reader_process(r, i), reader_process(r, i)->host, process_names[k], { 0 } };
}

static bool is_flat_zero(const struct model_series *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->buckets[i].high)
			return false;
	return true;
}

/* Those that say something; a process's last value holds until it ended. */
static void choose(struct courses *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct course *course = &c->courses[i];
		uint64_t end = course->process ? course->process->end_ns : model_end_ns(c->view->model);
		if (end >= c->view->from_ns && course->series.count) {
			uint32_t last = (uint32_t)((end - c->view->from_ns) / c->width_ns) + 1;
			carry(c, &course->series, last < c->buckets ? last : c->buckets);
		}
		if (!is_flat_zero(&course->series))
			c->shown[c->shown_count++] = course;
	}
}

static int look(struct courses *c)
{
	const struct view *v = c->view;
	unsigned subjects = samples_subjects(c->samples), hosts = reader_hosts(v->reader);
	c->count = hosts * HOST_COURSES + reader_processes(v->reader) * PROCESS_COURSES;
	c->courses = calloc(c->count + 1, sizeof(*c->courses));
	c->shown = calloc(c->count + 1, sizeof(struct course *));
	c->rss = calloc(subjects + 1ul, sizeof(*c->rss));
	c->sums = calloc(hosts + 1ul, sizeof(*c->sums));
	c->limits = calloc(hosts + 1ul, sizeof(*c->limits));
	if (!c->courses || !c->shown || !c->rss || !c->sums || !c->limits)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (unsigned i = 0; i < hosts; i++)
		c->limits[i] = UINT64_MAX;
	name_courses(c);
	if (!c->width_ns)
		return 0;
	uint64_t end = model_end_ns(v->model);
	c->buckets = end >= v->from_ns ? (uint32_t)((end - v->from_ns) / c->width_ns) + 1 : 0;
	int e = samples_each(c->samples, 0, end, take, c);
	if (!e)
		choose(c);
	return e ? e : c->error;
}

int courses_open(struct courses **out, const struct view *v)
{
	struct courses *c = calloc(1, sizeof(*c));
	*out = NULL;
	if (!c)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	c->view = v;
	c->width_ns = model_timeline_width_ns(v->model);
	int e = samples_open(&c->samples, v->reader);
	if (!e)
		e = look(c);
	if (e)
		courses_close(c);
	else
		*out = c;
	return e;
}

void courses_close(struct courses *c)
{
	if (!c)
		return;
	samples_close(c->samples);
	for (size_t i = 0; c->courses && i < c->count; i++)
		free(c->courses[i].series.buckets);
	free(c->courses);
	free(c->shown);
	free(c->rss);
	free(c->sums);
	free(c->limits);
	free(c);
}

unsigned courses_count(const struct courses *c) { return (unsigned)c->shown_count; }
const struct course *courses_get(const struct courses *c, unsigned i) { return c->shown[i]; }
