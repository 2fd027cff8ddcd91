/*
 * Growth of one site on the host: along steps or time (growth.h), in bursts (bursts.h), or, where no steps are known
 * and the machine was too busy for a line over time, along what the process has made on its heap by then.
 */
#ifndef MT_TIMELINE_SITE_GROWTH_H
#define MT_TIMELINE_SITE_GROWTH_H

#include "analyzer/timeline/timeline.h"

/* `x` and `bytes`: low points as of steps_site(), of the process of `p`. */
struct growth site_growth(const struct timeline *c, const struct step_list *p, const double *x, const double *bytes,
			  size_t count);

#endif
