/*
 * Does a series of live bytes grow, how, and when does it meet a limit? The series are low points of steps or of
 * windows of time: whatever comes and goes within one is not in them.
 *
 *   linear        at a steady rate
 *   accelerating  ever faster
 *   saturating    ever slower, or it has stopped: a cache that fills
 *   jump          at few moments, flat between them: a first step, a table that doubles
 *   none          nothing that could be told from its noise
 *
 * The first points are left out where they don't belong to what follows (start-up), and single points that stick out
 * (an evaluation) count little. All errors are half-widths of 95 % intervals.
 */
#ifndef MT_TIMELINE_GROWTH_H
#define MT_TIMELINE_GROWTH_H

#include "analyzer/timeline/fit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum growth_kind { GROWTH_NONE, GROWTH_LINEAR, GROWTH_ACCELERATING, GROWTH_SATURATING, GROWTH_JUMP };
enum growth_certainty { CERTAINTY_LOW, CERTAINTY_MEDIUM, CERTAINTY_HIGH };

enum { GROWTH_LEAST_POINTS = 5, GROWTH_SHAPES = 4 };

struct growth {
	enum growth_kind kind;
	enum growth_certainty certainty;
	double rate, rate_error;                 /* bytes per unit of x, at the end of the series */
	double acceleration, acceleration_error; /* bytes per unit of x squared; 0 unless accelerating */
	double bytes;                            /* grown since `since_x` */
	double since_x;                          /* what was before is start-up */
	double from_x;                           /* since when it has this rate: not before `since_x` */
	bool stepped;                            /* its x are steps, not seconds */
	double lasted_s;                         /* while it grew; 0 = it has no rate, or nobody asks */
	unsigned jumps;                          /* number of jumps; 0 for other growth */
	double doubt;                            /* part of `bytes` that lost events may have made: growth_doubt() */
	double unproven; /* bytes of a growth that lost events may have made altogether; 0 = it is proven */
	double x, span;  /* `fit` is over t = (its x - x) / span */
	struct fit fit;
	/* How it may go on (forecast.h): shapes that were fitted to the points since `from_x`, and how likely each is,
	 * in all 1. */
	struct growth_shape {
		struct fit fit;
		double weight;
	} shapes[GROWTH_SHAPES];
	unsigned shape_count;
};

/* `x` rises: numbers of steps, or seconds. */
struct growth growth_of(const double *x, const double *bytes, size_t count);

/* The straight line from the first point to the last, where it is known that it grows: in bursts, or briefly. */
struct growth growth_in_the_mean(const double *x, const double *bytes, size_t count);

/* Tells that lost events may have made up to `bytes` of it. If they may have made all of it, there is no growth. If
 * they may have made more than a little, its shape is not to be trusted. */
void growth_doubt(struct growth *g, double bytes);
bool growth_is_doubtful(const struct growth *g);

/* A line whose rate may be 0 a step: no better is it known, with 95 % certainty. A rate a second is no reason to doubt:
 * it varies with the load of the machine. */
static inline bool growth_may_be_none(const struct growth *g)
{
	return g->stepped && g->kind == GROWTH_LINEAR && g->rate > 0 && g->rate_error >= g->rate;
}

/* Linear or accelerating: what goes on will meet any limit. */
bool growth_is_steady(const struct growth *g);

/* Of less than a second nobody has seen what it grows by in one. */
static inline bool growth_saw_a_second(const struct growth *g)
{
	return g->lasted_s <= 0 || g->lasted_s >= 1;
}

/* Its rate would be one of seconds, but it did not grow for one: it has no rate, and no moment when memory ends. */
static inline bool growth_is_brief(const struct growth *g)
{
	return !g->stepped && !growth_saw_a_second(g);
}

/* What is said of one that is brief, in place of a rate: "33.4 MiB in 0.07 s". The caller frees it. */
char *growth_brief_text(const struct growth *g, double bytes);

/* "step" or "second" */
const char *growth_unit(const struct growth *g);

const char *growth_name(enum growth_kind kind);
const char *certainty_name(enum growth_certainty certainty);

#endif
