/*
 * Work that left no events: blocks that came and went in a folded block, or young. Of each sum only two moments are
 * known, between which it was done; so it counts as done evenly.
 *
 *   summed_work_add(&l, from_ns, until_ns, sum);          in any order
 *   summed_work_settle(&l, end_ns);
 *   ... summed_work_by(&l, ns), summed_work_all(&l) ...
 *
 * Memory: 32 bytes for each two moments (64 Ki of them: then neighbours become one), 64 KiB once it is settled.
 */
#ifndef MT_TIMELINE_SUMMED_WORK_H
#define MT_TIMELINE_SUMMED_WORK_H

#include <stddef.h>
#include <stdint.h>

/* Of work: what was made. */
struct cohort_sum {
	double bytes, blocks;
};

static inline void cohort_sum_add(struct cohort_sum *to, const struct cohort_sum *s)
{
	to->bytes += s->bytes;
	to->blocks += s->blocks;
}

struct summed_work {
	struct summed_work_span {
		uint64_t from_ns, until_ns;
		struct cohort_sum sum;
	} *spans;
	size_t count, room;
	uint64_t from_ns, until_ns; /* of all */
	/* what was done by the beginning of each of so many parts of equal length, and by the end; NULL = nothing */
	struct cohort_sum *parts;
};

/* What there is no memory for is not counted. */
void summed_work_add(struct summed_work *l, uint64_t from_ns, uint64_t until_ns, struct cohort_sum sum);
/* `end_ns`: what was done until UINT64_MAX was done by then. */
void summed_work_settle(struct summed_work *l, uint64_t end_ns);
struct cohort_sum summed_work_interpolated(const struct summed_work *l, uint64_t ns);
struct cohort_sum summed_work_all(const struct summed_work *l);
void summed_work_fini(struct summed_work *l);

/* Of each event of a trace, most of which have none. */
static inline struct cohort_sum summed_work_by(const struct summed_work *l, uint64_t ns)
{
	return l->parts ? summed_work_interpolated(l, ns) : (struct cohort_sum){ 0, 0 };
}

#endif
