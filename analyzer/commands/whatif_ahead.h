/* What memtrace whatif needs of the rest of the program: what a run would have come to behind its recorded end, and
 * which blocks a leak or copies are. */
#ifndef MT_COMMANDS_WHATIF_AHEAD_H
#define MT_COMMANDS_WHATIF_AHEAD_H

#include "analyzer/model/selection.h"
#include "analyzer/replay/replay.h"
#include "analyzer/timeline/forecast.h"

struct whatif_ahead;

/* Passes of their own over the events: v->reader is used up, and v->model is there afterwards. `copies`: these are
 * looked for, too. */
int whatif_ahead_new(struct whatif_ahead **out, struct selection *v, bool copies);
void whatif_ahead_free(struct whatif_ahead *w); /* NULL is fine */

/* How a pool's blocks grow, and until when they fit under a case. */
struct whatif_growth {
	bool grows, stepped;
	double rate; /* bytes a step, or a second */
	struct forecast until;
};

struct whatif_growth whatif_growth_of(const struct whatif_ahead *w, const struct replay_track *t,
				      const struct replay_outcome *o);

/* Stacks (ids of the merged tree, whole) of the N-th of the leaks in pools, in the order in which memtrace leaks has
 * them. 0 with an allocated list, -MT_EUSAGE if there is none. */
int whatif_leak(struct whatif_ahead *w, unsigned long number, uint32_t **stacks, size_t *count);

/* The calls (stacks that end there) that made copies of the same weights on a device, but for those of the one that
 * stays. -MT_EUSAGE if there are none, or if one call made them all. */
int whatif_copies(struct whatif_ahead *w, uint32_t **calls, size_t *count);

#endif
