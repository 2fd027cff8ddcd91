#include "analyzer/timeline/summed_work.h"

#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

enum { SPANS = 65536, PARTS = 4096 };

static void join_neighbours(struct summed_work *l)
{
	for (size_t i = 0; i < l->count / 2; i++) {
		const struct summed_work_span *a = &l->spans[2 * i], *b = a + 1;
		struct summed_work_span both = { lower(a->from_ns, b->from_ns), higher(a->until_ns, b->until_ns),
						 a->sum };
		cohort_sum_add(&both.sum, &b->sum);
		l->spans[i] = both;
	}
	l->count /= 2;
}

void summed_work_add(struct summed_work *l, uint64_t from_ns, uint64_t until_ns, struct cohort_sum sum)
{
	struct summed_work_span *last = l->count ? &l->spans[l->count - 1] : NULL;
	if (last && last->from_ns == from_ns && last->until_ns == until_ns) { /* another stack's, told with it */
		cohort_sum_add(&last->sum, &sum);
		return;
	}
	if (l->count == SPANS)
		join_neighbours(l);
	if (vec_reserve(l->spans, l->room, l->count + 1) == 0)
		l->spans[l->count++] = (struct summed_work_span){ from_ns, until_ns, sum };
}

/* Where in all parts that moment is, from 0 to PARTS. */
static double place_of(const struct summed_work *l, uint64_t ns)
{
	const uint64_t since = lower(less(ns, l->from_ns), l->until_ns - l->from_ns);
	return (double)since / (double)(l->until_ns - l->from_ns) * PARTS;
}

static void add_part(struct cohort_sum *to, const struct cohort_sum *s, double part)
{
	to->bytes += part * s->bytes;
	to->blocks += part * s->blocks;
}

static void spread(struct summed_work *l, const struct summed_work_span *s)
{
	const double from = place_of(l, s->from_ns), until = place_of(l, s->until_ns);
	for (unsigned i = (unsigned)from; i < PARTS && i < until; i++) {
		const double begin = from > i ? from : i, end = until < i + 1 ? until : i + 1;
		add_part(&l->parts[i + 1], &s->sum, (end - begin) / (until - from));
	}
}

void summed_work_settle(struct summed_work *l, uint64_t end_ns)
{
	if (l->count)
		l->parts = calloc(PARTS + 1, sizeof(*l->parts));
	if (l->parts) {
		l->from_ns = UINT64_MAX;
		for (size_t i = 0; i < l->count; i++) {
			struct summed_work_span *s = &l->spans[i];
			s->until_ns = higher(s->until_ns < UINT64_MAX ? s->until_ns : end_ns, s->from_ns + 1);
			l->from_ns = lower(l->from_ns, s->from_ns);
			l->until_ns = higher(l->until_ns, s->until_ns);
		}
		for (size_t i = 0; i < l->count; i++)
			spread(l, &l->spans[i]);
		for (unsigned i = 0; i < PARTS; i++)
			cohort_sum_add(&l->parts[i + 1], &l->parts[i]);
	}
	free(l->spans);
	l->spans = NULL;
	l->count = l->room = 0;
}

struct cohort_sum summed_work_interpolated(const struct summed_work *l, uint64_t ns)
{
	struct cohort_sum sum = { 0, 0 };
	const double place = place_of(l, ns);
	const unsigned part = place < PARTS ? (unsigned)place : PARTS - 1;
	add_part(&sum, &l->parts[part], 1 - (place - part));
	add_part(&sum, &l->parts[part + 1], place - part);
	return sum;
}

struct cohort_sum summed_work_all(const struct summed_work *l)
{
	return l->parts ? l->parts[PARTS] : (struct cohort_sum){ 0, 0 };
}

void summed_work_fini(struct summed_work *l)
{
	free(l->spans);
	free(l->parts);
	*l = (struct summed_work){ 0 };
}
