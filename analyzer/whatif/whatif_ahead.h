/* What memtrace whatif takes from timeline and diagnosis: how a run would have gone on behind its recorded end, and
 * which stacks allocated the blocks of a leak or of copies. */
#ifndef MT_WHATIF_WHATIF_AHEAD_H
#define MT_WHATIF_WHATIF_AHEAD_H

#include "analyzer/diagnosis/growth/forecast.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/replay/pool/replay.h"
#include "analyzer/timeline/steps.h"

struct whatif_ahead;

/* Makes its own passes over the events: afterwards v->reader is at its end, and v->model is there. `copies`: copies of
 * weights are looked for, too. 0 or -MT_E*; whatif_ahead_free() in either case. */
int whatif_ahead_new(struct whatif_ahead **out, struct selection *sel, bool copies);
void whatif_ahead_free(struct whatif_ahead *w); /* NULL is fine */

/* How the blocks of a pool (a track of the replay) grow, and until when they fit under a case. */
struct whatif_growth {
	bool grows, stepped; /* stepped: the rate is per step */
	double rate;         /* bytes a step, or a second */
	struct forecast until;
};

struct whatif_growth whatif_growth_of(const struct whatif_ahead *w, const struct replay_track *t,
				      const struct replay_outcome *o);

/* What the step in which a track's request failed last would still have asked for behind it, in bytes, as earlier steps
 * went (timeline/step_shape.h): in its scale, and as it was in them. UINT64_MAX = not known. */
struct steps_rise whatif_rest_of_step(const struct whatif_ahead *w, const struct replay_track *t);

/* The stacks (ids of the merged tree) of leak `number`, from 1, among leaks in pools, in the order of memtrace leaks. 0
 * with a list, which the caller frees; -MT_EUSAGE if there is no such leak. */
int whatif_leak(struct whatif_ahead *w, unsigned long number, uint32_t **stacks, size_t *count);

/* The calls that made copies of the same weights on a device, except the call whose copy stays. A call is given as the
 * stack up to it. 0 with a list, which the caller frees; -MT_EUSAGE if there are no copies, or one call made them
 * all. */
int whatif_copies(struct whatif_ahead *w, uint32_t **calls, size_t *count);

#endif
