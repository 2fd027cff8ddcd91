/*
 * When growth meets a limit: the first step whose high point doesn't fit.
 *
 * Three things are not known. The interval covers all of them together:
 *
 *   how growth goes on    a line, a parabola, an exponential or the last rate, each with its errors; each is as likely
 *                         as it explains what was seen
 *   how high steps rise   above the curve: as those that were seen, each of them equally likely. The first step that is
 *                         too high ends the run
 *   the pool's holes      how much of the memory that the allocator holds unused it will be able to use
 */
#ifndef MT_DIAGNOSIS_GROWTH_FORECAST_H
#define MT_DIAGNOSIS_GROWTH_FORECAST_H

#include "analyzer/timeline/growth.h"

#define FORECAST_LEVEL 0.95 /* of the interval */

struct forecast {
	bool ever; /* it meets the limit at all, within a hundred times what was seen */
	double x;  /* the best guess: most likely within a tenth of it. Infinite if it never does, as low and high */
	double low, high; /* interval with FORECAST_LEVEL; high is infinite where it may never meet the limit */
};

struct forecast_room {
	double limit;           /* bytes that no high point may exceed */
	double doubt;           /* bytes by which the limit may be lower; each amount up to that is equally likely */
	const double *x, *high; /* the high points that were seen; x as the growth's, rising */
	size_t count;           /* 0: steps end on the curve */
};

/* .ever is false if `g` is not steady, or brief. */
struct forecast forecast_of(const struct growth *g, const struct forecast_room *room);
extern const struct forecast forecast_never;

/* How far ahead that is, in what was seen: 2 = after twice as long again. Infinite: never. */
double forecast_ahead(const struct forecast *f, const struct growth *g);

/* "1003 (95 %: 965 to 1040)", "1003 (95 %: 965 or later)". The caller frees it; NULL where there is no memory. */
char *forecast_text(double x, double low, double high);

#endif
