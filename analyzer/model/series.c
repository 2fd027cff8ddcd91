#include "analyzer/model/series.h"

#include "analyzer/util/vec.h"

static void set_next(struct axis *a)
{
	uint64_t end = ((uint64_t)a->now + 1) << a->shift;
	a->next_ns = end >> a->shift == (uint64_t)a->now + 1 && a->from_ns + end >= end ? a->from_ns + end : UINT64_MAX;
}

void axis_init(struct axis *a, uint64_t from_ns, unsigned shift, uint32_t limit)
{
	*a = (struct axis){ .from_ns = from_ns, .shift = shift, .limit = limit };
	set_next(a);
}

unsigned axis_advance(struct axis *a, uint64_t ns)
{
	unsigned halvings = 0;
	if (ns < a->next_ns)
		return 0;
	for (; (ns - a->from_ns) >> a->shift >= a->limit; a->shift++)
		halvings++;
	a->now = (uint32_t)((ns - a->from_ns) >> a->shift);
	set_next(a);
	return halvings;
}

static struct model_bucket *push(struct model_series *s, uint64_t value, uint64_t blocks)
{
	if (s->count == s->room) {
		size_t room = s->room;
		if (vec_reserve_raw(s->buckets, room, s->count + 1u))
			return NULL;
		s->room = (uint32_t)room;
	}
	s->buckets[s->count] = (struct model_bucket){ value, value, value, blocks };
	return &s->buckets[s->count++];
}

int series_reach(struct model_series *s, const struct axis *a, uint64_t before)
{
	if (!s->count) {
		s->first = a->now;
		if (!push(s, before, 0))
			return -MT_EMEMORY;
	}
	while (s->first + s->count <= a->now)
		if (!push(s, before, s->buckets[s->count - 1].blocks))
			return -MT_EMEMORY;
	return 0;
}

/* Bucket k of the new series is the old ones 2k and 2k + 1, of which one may not exist at either end. */
void series_halve(struct model_series *s)
{
	if (!s->count)
		return;
	uint32_t first = s->first / 2, n = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct model_bucket b = s->buckets[i];
		uint32_t k = (s->first + i) / 2 - first;
		if (k == n) {
			s->buckets[n++] = b;
			continue;
		}
		struct model_bucket *to = &s->buckets[k];
		to->low = b.low < to->low ? b.low : to->low;
		to->high = b.high > to->high ? b.high : to->high;
		to->last = b.last;
		to->blocks = b.blocks;
	}
	s->first = first;
	s->count = n;
}

void series_fini(struct model_series *s)
{
	free(s->buckets);
	*s = (struct model_series){ 0 };
}
