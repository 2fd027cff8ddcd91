#include "analyzer/timeline/sample_series.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

enum { HOST_RSS, HOST_SWAP, HOST_AVAILABLE, HOST_CGROUP, HOST_SERIES };
enum { PROCESS_RSS, PROCESS_SWAP, PROCESS_UNSEEN, PROCESS_SERIES };

static const char *const host_names[HOST_SERIES] = { "rss", "swap", "available", "cgroup" };
static const char *const process_names[PROCESS_SERIES] = { "rss", "swap", "unseen" };

struct all_sample_series {
	const struct selection *selection;
	struct samples *samples;
	struct sample_series *list; /* HOST_SERIES of each host, then PROCESS_SERIES of each process */
	size_t count;
	struct sample_series **shown;
	size_t shown_count;
	uint32_t buckets; /* of the whole run */
	uint64_t width_ns;
	uint64_t *rss;    /* by subject: its share of its host's sum */
	uint64_t *sums;   /* by host */
	uint64_t *limits; /* by host: the lowest of its cgroups so far */
	int error;
};

static struct sample_series *of_host(struct all_sample_series *c, const struct reader_host *h, int what)
{
	return &c->list[h->index * HOST_SERIES + (unsigned)what];
}

static struct sample_series *of_process(struct all_sample_series *c, const struct process *p, int what)
{
	return &c->list[reader_hosts(c->selection->reader) * HOST_SERIES + p->id * PROCESS_SERIES + (unsigned)what];
}

/* ---- one value ------------------------------------------------------------------------------------------- */

/* All stretches up to that one have the latest value. */
static void carry(struct all_sample_series *c, struct model_series *s, uint32_t until)
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

static void note(struct all_sample_series *c, struct sample_series *one, uint64_t ns, uint64_t value)
{
	struct model_series *s = &one->series;
	if (ns < c->selection->from_ns || c->error)
		return;
	uint32_t at = (uint32_t)((ns - c->selection->from_ns) / c->width_ns);
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

static bool knows(const struct sample *x, unsigned field)
{
	return x->fields >> field & 1;
}

/* Live mapped bytes in the stretch that holds the moment. */
static uint64_t mapped_at(struct all_sample_series *c, const struct process *p, uint64_t ns)
{
	const struct model_series *s = &model_process(c->selection->model, p->id)->timeline[MODEL_MAP];
	uint32_t at = ns < c->selection->from_ns ? 0 : (uint32_t)((ns - c->selection->from_ns) / c->width_ns);
	if (!s->count || at < s->first)
		return 0;
	at -= s->first;
	return s->buckets[at < s->count ? at : s->count - 1].last;
}

static void take_process(struct all_sample_series *c, const struct sample *x)
{
	const struct sample_subject *d = x->subject;
	if (!d->traced)
		return;
	uint64_t rss = x->gone ? 0 : x->value[MT_PROCESS_rss];
	c->sums[d->host->index] += rss - c->rss[d->index];
	c->rss[d->index] = rss;
	const struct process *p = x->gone ? NULL : samples_process(c->samples, d, x->ns);
	if (!p || !selection_has(c->selection, p))
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
static void take_machine(struct all_sample_series *c, const struct sample *x)
{
	const struct reader_host *h = x->subject->host;
	note(c, of_host(c, h, HOST_RSS), x->ns, c->sums[h->index]);
	if (knows(x, MT_MACHINE_swap_total))
		note(c, of_host(c, h, HOST_SWAP), x->ns,
		     x->value[MT_MACHINE_swap_total] - x->value[MT_MACHINE_swap_free]);
	if (knows(x, MT_MACHINE_available))
		note(c, of_host(c, h, HOST_AVAILABLE), x->ns, x->value[MT_MACHINE_available]);
}

static void take_cgroup(struct all_sample_series *c, const struct sample *x)
{
	const struct reader_host *h = x->subject->host;
	uint64_t limit = x->value[MT_CGROUP_limit];
	if (!limit || limit > c->limits[h->index])
		return;
	c->limits[h->index] = limit;
	note(c, of_host(c, h, HOST_CGROUP), x->ns, x->value[MT_CGROUP_current]);
}

static int add_sample(void *arg, const struct sample *x)
{
	struct all_sample_series *c = arg;
	if (x->subject->kind == MT_SUBJECT_PROCESS)
		take_process(c, x);
	else if (x->subject->kind == MT_SUBJECT_MACHINE && !x->gone)
		take_machine(c, x);
	else if (x->subject->kind == MT_SUBJECT_CGROUP && !x->gone)
		take_cgroup(c, x);
	return c->error;
}

/* ---- interface ------------------------------------------------------------------------------------------- */

static void name_all(struct all_sample_series *c)
{
	const struct reader *r = c->selection->reader;
	for (unsigned h = 0; h < reader_hosts(r); h++)
		for (int k = 0; k < HOST_SERIES; k++)
			*of_host(c, reader_host(r, h), k) =
				(struct sample_series){ NULL, reader_host(r, h), host_names[k], { 0 } };
	for (unsigned i = 0; i < reader_processes(r); i++)
		for (int k = 0; k < PROCESS_SERIES; k++)
			*of_process(c, reader_process(r, i), k) = (struct sample_series){
				reader_process(r, i), reader_process(r, i)->host, process_names[k], { 0 }
			};
}

static bool is_flat_zero(const struct model_series *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->buckets[i].high)
			return false;
	return true;
}

/* Those that say something; a process's last value holds until it ended. */
static void choose(struct all_sample_series *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct sample_series *one = &c->list[i];
		uint64_t end = one->process ? one->process->end_ns : model_end_ns(c->selection->model);
		if (end >= c->selection->from_ns && one->series.count) {
			uint32_t last = (uint32_t)((end - c->selection->from_ns) / c->width_ns) + 1;
			carry(c, &one->series, last < c->buckets ? last : c->buckets);
		}
		if (!is_flat_zero(&one->series))
			c->shown[c->shown_count++] = one;
	}
}

static int read_samples(struct all_sample_series *c)
{
	const struct selection *sel = c->selection;
	unsigned subjects = samples_subjects(c->samples), hosts = reader_hosts(sel->reader);
	c->count = hosts * HOST_SERIES + reader_processes(sel->reader) * PROCESS_SERIES;
	c->list = calloc(c->count + 1, sizeof(*c->list));
	c->shown = calloc(c->count + 1, sizeof(struct sample_series *));
	c->rss = calloc(subjects + 1ul, sizeof(*c->rss));
	c->sums = calloc(hosts + 1ul, sizeof(*c->sums));
	c->limits = calloc(hosts + 1ul, sizeof(*c->limits));
	if (!c->list || !c->shown || !c->rss || !c->sums || !c->limits)
		return error_memory();
	for (unsigned i = 0; i < hosts; i++)
		c->limits[i] = UINT64_MAX;
	name_all(c);
	if (!c->width_ns)
		return 0;
	uint64_t end = model_end_ns(sel->model);
	c->buckets = end >= sel->from_ns ? (uint32_t)((end - sel->from_ns) / c->width_ns) + 1 : 0;
	int e = samples_each(c->samples, 0, end, add_sample, c);
	if (!e)
		choose(c);
	return e ? e : c->error;
}

int sample_series_open(struct all_sample_series **out, const struct selection *sel)
{
	struct all_sample_series *c = calloc(1, sizeof(*c));
	*out = NULL;
	if (!c)
		return error_memory();
	c->selection = sel;
	c->width_ns = model_timeline_width_ns(sel->model);
	int e = samples_open(&c->samples, sel->reader);
	if (!e)
		e = read_samples(c);
	if (e)
		sample_series_close(c);
	else
		*out = c;
	return e;
}

void sample_series_close(struct all_sample_series *c)
{
	if (!c)
		return;
	samples_close(c->samples);
	for (size_t i = 0; c->list && i < c->count; i++)
		free(c->list[i].series.buckets);
	free(c->list);
	free(c->shown);
	free(c->rss);
	free(c->sums);
	free(c->limits);
	free(c);
}

unsigned sample_series_count(const struct all_sample_series *c)
{
	return (unsigned)c->shown_count;
}
const struct sample_series *sample_series_get(const struct all_sample_series *c, unsigned i)
{
	return c->shown[i];
}
