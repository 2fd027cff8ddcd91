#include "analyzer/timeline/bursts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a line fits, too: FEW bursts are no points of a line, if WIDE apart, in points. */
enum { MOST = 64, POINTS = 128, LEAST_EQUAL = 3, LEAST_FULL = 4, MOST_FULL = 8, FEW = 7, WIDE = 8, MOST_LIFTS = 3 };

#define LEAST_BYTES  (1u << 20) /* of a burst: less is noise */
#define LEVEL        0.01       /* of the whole range: so flat is a level */
#define RISING       0.34       /* of the points: more, and it is no growth in bursts */
#define SAME         1.5        /* times as much: still the same */
#define LIKE         2.5        /* times as far apart: by time a busy machine makes it so */
#define OVERDUE      2          /* times the usual distance, in which no burst came */
#define LARGER       1.2        /* by so much at least a table grows when it is full ... */
#define LARGEST      3.0        /* ... and at most */
#define IN_LINE      0.1        /* of what was in it: so far from the line */
#define STANDS_OUT   8          /* times the mean of the other rises: no part of a line */
#define MOST_AT_ONCE 0.5        /* of what came in all */

struct burst {
	double x, before, after;
};

struct bursts {
	struct burst list[MOST];
	size_t count, points, rising; /* points that were looked at; of these within bursts */
	double x0, end, every;        /* first, last, and distance of the points */
};

/* False: it falls, or there are too many. */
static bool find(struct bursts *b, const double *x, const double *bytes, size_t count)
{
	const size_t n = growth_without_end(bytes, count);
	bool open = false;
	if (n < GROWTH_LEAST_POINTS || x[n - 1] <= x[0])
		return false;
	*b = (struct bursts){ .points = n, .x0 = x[0], .end = x[n - 1], .every = (x[n - 1] - x[0]) / (double)(n - 1) };
	const double flat = fmax(LEVEL * (bytes[n - 1] - bytes[0]), LEAST_BYTES / 16.0);
	for (size_t i = 1; i < n; i++) {
		double more = bytes[i] - bytes[i - 1];
		if (more < -flat || (more > flat && !open && b->count == MOST))
			return false;
		if (more > flat && !open)
			b->list[b->count++] = (struct burst){ x[i - 1], bytes[i - 1], 0 };
		open = more > flat;
		b->rising += open;
		if (open)
			b->list[b->count - 1].after = bytes[i];
	}
	return (double)b->rising <= RISING * (double)n || b->rising <= b->count;
}

/* Small ones before the first one that counts are its beginning. */
static void drop_small(struct bursts *b)
{
	size_t kept = 0;
	for (size_t i = 0; i < b->count; i++)
		if (b->list[i].after - b->list[i].before >= LEAST_BYTES)
			b->list[kept++] = b->list[i];
	b->count = kept;
}

static bool alike(double a, double b, double times)
{
	return a <= times * b && b <= times * a;
}

/* *slope of what is kept, by the first and the last of them. */
static bool are_equal(const struct bursts *b, double *slope)
{
	const struct burst *first = &b->list[0], *last = &b->list[b->count - 1];
	if (b->count < LEAST_EQUAL)
		return false;
	const double distance = (last->x - first->x) / (double)(b->count - 1),
		     mean = (last->after - first->before) / (double)b->count;
	for (size_t i = 0; i < b->count; i++)
		if (!alike(b->list[i].after - b->list[i].before, mean, SAME) ||
		    (i && !alike(b->list[i].x - b->list[i - 1].x, distance, LIKE)))
			return false;
	*slope = mean / distance;
	return b->end - last->x <= OVERDUE * distance + b->every;
}

/* Bursts at an exact pace lie on a line, too: these have most of what came, with long levels in between, and are too
 * few to be sure of a line. */
static bool are_few(const struct bursts *b)
{
	return b->count <= FEW && b->list[b->count - 1].x - b->list[0].x >= (double)(b->count - 1) * WIDE * b->every;
}

/* Each time it was full, so what was in it is known: does that lie on a line, and would it still do? The latest ones,
 * which are seen best. */
static bool are_full(struct bursts *b, double *slope)
{
	double ts[MOST_FULL], ys[MOST_FULL];
	struct fit f;
	size_t from = b->count;
	while (from > 0 && b->count - from < MOST_FULL &&
	       b->list[from - 1].after >= LARGER * b->list[from - 1].before &&
	       b->list[from - 1].after <= LARGEST * b->list[from - 1].before)
		from--;
	const size_t n = b->count - from;
	const double span = b->end - b->x0;
	if (n < LEAST_FULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		ts[i] = (b->list[from + i].x - b->x0) / span;
		ys[i] = b->list[from + i].before;
	}
	fit_make(&f, FIT_LINE, 0, ts, ys, n, LEAST_BYTES);
	*slope = f.beta[1] / span;
	for (size_t i = 0; i < n; i++)
		if (fabs(fit_value(&f, ts[i]) - ys[i]) > IN_LINE * ys[i] + 1.5 * *slope * b->every)
			return false;
	return *slope > 0 && fit_value(&f, 1) <= (1 + IN_LINE) * b->list[b->count - 1].after + *slope * b->every;
}

/* What is kept lies on a line of that slope, which a forecast goes on along. */
static struct growth growth_along(const struct bursts *b, double slope, double moved, const double *x,
				  const double *bytes)
{
	struct growth g = { .kind = GROWTH_LINEAR,
			    .certainty = CERTAINTY_MEDIUM,
			    .rate = slope,
			    .jumps = (unsigned)b->count,
			    .x = b->x0,
			    .since_x = b->x0,
			    .from_x = b->x0,
			    .span = b->end - b->x0,
			    .bytes = b->list[b->count - 1].after - b->list[0].before,
			    .moved = moved };
	double t[POINTS], y[POINTS];
	size_t n = b->points < POINTS ? b->points : POINTS;
	for (size_t i = 0; i < n; i++) {
		t[i] = (x[i * b->points / n] - b->x0) / g.span;
		y[i] = bytes[i * b->points / n];
	}
	fit_make(&g.fit, FIT_LINE, 0, t, y, n, LEAST_BYTES);
	g.fit.beta[0] += (g.fit.beta[1] - slope * g.span) / 2; /* through the middle of the points, at its own slope */
	g.fit.beta[1] = slope * g.span;
	g.rate_error = fit_quantile(g.fit.points, g.fit.terms) * fit_slope_error(&g.fit, 1) / g.span;
	g.shapes[0] = (struct growth_shape){ g.fit, 1 };
	g.shape_count = 1;
	return g;
}

/* What was in all of them, when they were full. */
static double moved_by(const struct bursts *b)
{
	double sum = 0;
	for (size_t i = 0; i < b->count; i++)
		sum += b->list[i].before;
	return sum;
}

/* The points at which it rises at once by far more than it does otherwise, MOST_LIFTS at most. */
static size_t find_lifts(const double *bytes, size_t n, size_t *at, double *sum)
{
	size_t count = 0;
	for (*sum = 0; count < MOST_LIFTS && n > count + 2; count++) {
		size_t most = 0;
		for (size_t i = 1; i < n; i++) {
			bool taken = false;
			for (size_t k = 0; k < count; k++)
				taken = taken || at[k] == i;
			if (!taken && (!most || bytes[i] - bytes[i - 1] > bytes[most] - bytes[most - 1]))
				most = i;
		}
		const double up = bytes[most] - bytes[most - 1], others = bytes[n - 1] - bytes[0] - *sum - up;
		if (up < LEAST_BYTES || up * (double)(n - count - 2) < STANDS_OUT * others)
			break;
		at[count] = most;
		*sum += up;
	}
	return count;
}

/* A line that is lifted a few times, as a cache is whose table doubles: what is kept between that lies on a line. */
static struct growth between_lifts(const double *x, const double *bytes, size_t count, struct growth otherwise)
{
	const size_t n = growth_without_end(bytes, count);
	size_t at[MOST_LIFTS];
	double all = 0, *rest = malloc((count + 1) * sizeof(*rest));
	const size_t ups = rest && n > FEW ? find_lifts(bytes, n, at, &all) : 0;
	struct growth g = otherwise;
	if (ups && all <= MOST_AT_ONCE * (bytes[n - 1] - bytes[0])) {
		memcpy(rest, bytes, count * sizeof(*rest));
		for (size_t k = 0; k < ups; k++)
			for (size_t i = at[k]; i < count; i++)
				rest[i] -= bytes[at[k]] - bytes[at[k] - 1];
		g = growth_of(x, rest, count);
	}
	free(rest);
	if (!growth_is_steady(&g) || g.certainty < CERTAINTY_HIGH)
		return otherwise;
	for (size_t k = 0; k < ups; k++)
		g.bytes += x[at[k]] > g.since_x ? bytes[at[k]] - bytes[at[k] - 1] : 0;
	g.fit.beta[0] += all;
	for (unsigned i = 0; i < g.shape_count; i++)
		g.shapes[i].fit.beta[0] += all;
	return g;
}

struct growth bursts_growth(const double *x, const double *bytes, size_t count)
{
	struct growth g = growth_of(x, bytes, count);
	const bool on_line = growth_is_steady(&g) && g.certainty == CERTAINTY_HIGH;
	struct bursts b;
	double slope;
	if (!find(&b, x, bytes, count))
		b.count = 0;
	drop_small(&b);
	if (b.count && (!on_line || are_few(&b)) && are_equal(&b, &slope))
		return growth_along(&b, slope, 0, x, bytes);
	if (b.count && !on_line && are_full(&b, &slope))
		return growth_along(&b, slope, moved_by(&b), x, bytes);
	return growth_is_steady(&g) ? g : between_lifts(x, bytes, count, g);
}
