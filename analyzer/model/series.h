/* Values over time in a bounded number of buckets: when time outgrows them, the buckets of all series of one axis are
 * joined in pairs. */
#ifndef MT_MODEL_SERIES_H
#define MT_MODEL_SERIES_H

#include "analyzer/model/model.h"

/* Shared by all series of one use. */
struct axis {
	uint64_t from_ns;
	unsigned shift;   /* a bucket is 2^shift ns */
	uint32_t limit;   /* buckets, at most */
	uint32_t now;     /* the bucket of the current moment */
	uint64_t next_ns; /* where it ends */
};

void axis_init(struct axis *a, uint64_t from_ns, unsigned shift, uint32_t limit);

/* Moves to `ns`. Returns how often all series must be halved (series_halve) before they are touched again. */
unsigned axis_advance(struct axis *a, uint64_t ns);

/* Makes its buckets up to that of now. 0 or -MT_EMEMORY: a picture with a hole is better than no answer. */
int series_reach(struct model_series *s, const struct axis *a, uint64_t before);

/* The value changes from `before` to `value` now. */
static inline void series_note(struct model_series *s, const struct axis *a, uint64_t before, uint64_t value,
			       uint64_t blocks)
{
	if ((!s->count || s->first + s->count <= a->now) && series_reach(s, a, before))
		return;
	struct model_bucket *b = &s->buckets[s->count - 1];
	if (value < b->low)
		b->low = value;
	if (value > b->high)
		b->high = value;
	b->last = value;
	b->blocks = blocks;
}
void series_halve(struct model_series *s);
void series_fini(struct model_series *s);

#endif
