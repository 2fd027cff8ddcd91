/*
 * What single places in a program keep, as far as the stacks that hold most tell without names: stacks are of one place
 * if the innermost frame outside of the C and C++ libraries, or of Python, is the same. As leaks judges owners
 * (owner_growth.h): by their sum; else by those of their stacks that grow, if they have at least half of what came.
 */
#ifndef MT_REPORT_LIVE_SITES_H
#define MT_REPORT_LIVE_SITES_H

#include "analyzer/timeline/timeline.h"

/* Whether some go on growing so that it matters; *g is how the largest does. Of a process without devices. */
bool live_sites_grow(struct growth *g, const struct timeline *c, const struct samples *samples, const struct model *m,
		     const struct step_list *p);

#endif
