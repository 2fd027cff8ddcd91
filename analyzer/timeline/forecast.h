/*
 * When growth meets a limit: the first step whose high point doesn't fit.
 *
 * Three things are not known, and the interval is of all three together: how growth goes on (a line, a parabola, an
 * exponential or the last rate, each as likely as it explains what was seen, and the errors of each); how far the steps
 * to come rise above the curve (as those that were seen did, one as likely as the other; the first one that is too high
 * ends it); and how much of what an allocator has and does not use it can use when it needs it.
 */
#ifndef MT_TIMELINE_FORECAST_H
#define MT_TIMELINE_FORECAST_H

#include "analyzer/timeline/growth.h"

#define FORECAST_LEVEL 0.95 /* of the interval */

struct forecast {
	bool ever;        /* it meets the limit at all, within a hundred times what was seen */
	double x;         /* when, most likely within a tenth. Infinite, as are the others, if it never does */
	double low, high; /* from when to when, with FORECAST_LEVEL; high is infinite where it may never */
};

struct forecast_room {
	double limit;           /* no high point may be above */
	double doubt;           /* or it is lower, by up to that much; each amount is as likely */
	const double *x, *high; /* the high points that were seen; x as the growth's, rising */
	size_t count;           /* 0: steps end on the curve */
};

/* Of what does not grow steadily .ever is false. */
struct forecast forecast_of(const struct growth *g, const struct forecast_room *room);
extern const struct forecast forecast_never;

/* "1003 (95 %: 965 to 1040)", "1003 (95 %: 965 or later)". The caller frees it; NULL where there is no memory. */
char *forecast_text(double x, double low, double high);

#endif
