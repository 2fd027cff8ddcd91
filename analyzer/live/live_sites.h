/*
 * What single places in a program keep, as far as the stacks that hold most tell without names: stacks are of one place
 * if the innermost frame outside of the C and C++ libraries, or of Python, is the same.
 */
#ifndef MT_LIVE_LIVE_SITES_H
#define MT_LIVE_LIVE_SITES_H

#include "analyzer/diagnosis/growth/owner_growth.h"

/* Whether some go on growing so that it matters; *g is the judgement of the largest. Of a process without devices. */
bool live_sites_grow(struct owner_growth *g, const struct timeline *timeline, const struct samples *samples,
		     const struct selection *sel, const struct step_list *steps);

#endif
