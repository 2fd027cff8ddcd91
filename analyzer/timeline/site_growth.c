#include "analyzer/timeline/site_growth.h"

#include "analyzer/timeline/bursts.h"

#include <stdlib.h>

enum { LEAST_POINTS = 20, QUARTERS = 4 };
#define HELD_UP 0.25 /* of the mean rise: less in a quarter of the time, and it levels off, or began late */

static bool rises_all_the_time(const double *bytes, size_t count)
{
	const double mean = (bytes[count - 1] - bytes[0]) / QUARTERS;
	for (size_t q = 0; q < QUARTERS; q++)
		if (bytes[(q + 1) * (count - 1) / QUARTERS] - bytes[q * (count - 1) / QUARTERS] < HELD_UP * mean)
			return false;
	return mean > 0;
}

/* The moment of a place on the axis of what was made. */
static double moment_of(const double *x, const double *at, size_t count, double place)
{
	size_t i = 0;
	while (i + 1 < count && at[i] < place)
		i++;
	return x[i];
}

static double made_at(const struct work *w, const struct process *p, double seconds)
{
	return work_made_until(w, p->id, p->start_ns + (uint64_t)(seconds * 1e9));
}

/* As if it had worked at one pace: `at` is where it had come by then, in as many seconds. */
static struct growth at_one_pace(const struct work *w, const struct process *p, const double *x, const double *bytes,
				 size_t count, double *at)
{
	double *times = at + count, *ys = times + count;
	const double first = made_at(w, p, x[0]), all = made_at(w, p, x[count - 1]) - first;
	size_t n = 0;
	for (size_t i = 0; i < count && all > 0; i++) {
		double made = made_at(w, p, x[i]) - first;
		at[n] = x[0] + (x[count - 1] - x[0]) * made / all;
		if (n && at[n] <= at[n - 1])
			continue;
		times[n] = x[i];
		ys[n++] = bytes[i];
	}
	struct growth g = growth_of(at, ys, n);
	g.since_x = n ? moment_of(times, at, n, g.since_x) : 0;
	g.from_x = n ? moment_of(times, at, n, g.from_x) : 0;
	return g;
}

struct growth site_growth(const struct timeline *c, const struct step_list *p, const double *x, const double *bytes,
			  size_t count)
{
	const struct growth g = bursts_growth(x, bytes, count);
	const size_t n = growth_without_end(bytes, count);
	if (p->source != LOOP_NONE || growth_is_steady(&g) || n < LEAST_POINTS || !rises_all_the_time(bytes, n))
		return g;
	double *room = malloc(3 * n * sizeof(*room));
	const struct growth paced =
		room ? at_one_pace(timeline_work(c), p->process, x, bytes, n, room) : (struct growth){ 0 };
	free(room);
	return growth_is_steady(&paced) && paced.certainty == CERTAINTY_HIGH ? paced : g;
}
