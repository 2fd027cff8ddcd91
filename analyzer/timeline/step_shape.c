#include "analyzer/timeline/step_shape.h"

#include "analyzer/timeline/fit.h"

#include <stdlib.h>

enum { SHAPE_POINTS = 64, SHAPE_LATEST = 16, SHAPE_FEW = 2 /* blocks more or less, now and then */ };

#define SHAPE_LEAST_RISE 0.02 /* of a step's whole rise: with less behind it nothing can be said of its scale */

/* Allocation number i of the step is in point i >> shift. */
struct shape {
	uint64_t begin;               /* live */
	uint64_t first[SHAPE_POINTS]; /* before the point's first allocation */
	uint64_t high[SHAPE_POINTS];
	uint32_t count; /* allocations */
	unsigned shift;
};

struct step_shapes {
	struct shape now, latest[SHAPE_LATEST];
	unsigned steps; /* that are over */
	bool open;
};

struct step_shapes *step_shapes_new(void)
{
	return calloc(1, sizeof(struct step_shapes));
}

void step_shapes_free(struct step_shapes *s)
{
	free(s);
}

void step_shapes_begin(struct step_shapes *s, uint64_t live)
{
	if (s->open)
		s->latest[s->steps++ % SHAPE_LATEST] = s->now;
	s->now = (struct shape){ .begin = live };
	s->open = true;
}

static void halve(struct shape *p)
{
	for (unsigned i = 0; i < SHAPE_POINTS / 2; i++) {
		p->first[i] = p->first[2 * i];
		p->high[i] = p->high[2 * i] > p->high[2 * i + 1] ? p->high[2 * i] : p->high[2 * i + 1];
	}
	p->shift++;
}

void step_shapes_allocation(struct step_shapes *s, uint64_t before, uint64_t live)
{
	struct shape *p = &s->now;
	if (!s->open || p->count == UINT32_MAX)
		return;
	if (p->count >> p->shift == SHAPE_POINTS)
		halve(p);
	uint32_t at = p->count >> p->shift;
	if (at << p->shift == p->count) {
		p->first[at] = before;
		p->high[at] = live;
	}
	p->high[at] = live > p->high[at] ? live : p->high[at];
	p->count++;
}

static uint64_t highest_from(const struct shape *p, uint32_t point)
{
	uint64_t most = 0;
	for (uint32_t i = point; i <= (p->count - 1) >> p->shift; i++)
		most = p->high[i] > most ? p->high[i] : most;
	return most;
}

/* What the step began with is freed in it, as gradients are: its scale is what it has risen by above its lowest. */
static uint64_t lowest_until(const struct shape *p, uint32_t count)
{
	uint64_t least = p->begin;
	for (uint32_t i = 0; p->count && i <= (count < p->count ? count : p->count - 1) >> p->shift; i++)
		least = p->first[i] < least ? p->first[i] : least;
	return least;
}

static double above(double a, uint64_t b)
{
	return a > (double)b ? a - (double)b : 0;
}

/* Live before allocation number i: between two points on a line. */
static double level_at(const struct shape *p, uint32_t i)
{
	uint32_t point = i >> p->shift, last = (p->count - 1) >> p->shift;
	double from = (double)p->first[point], part = (double)(i - (point << p->shift)) / (double)(1u << p->shift);
	return point < last ? from + part * ((double)p->first[point + 1] - from) : from;
}

/* How large its allocation number i was; 0 = not known singly. */
static double size_of(const struct shape *p, uint32_t i)
{
	return p->shift || i >= p->count ? 0 : above((double)p->high[i], p->first[i]);
}

/* What an earlier step rose by from the same allocation on, in this one's scale: by what it has risen so far, or by the
 * request. */
static double rise_as_in(const struct shape *p, const struct shape *now, uint64_t live, uint64_t request, bool scaled)
{
	double then = level_at(p, now->count), high = (double)highest_from(p, now->count >> p->shift),
	       top = (double)highest_from(p, 0);
	const uint64_t base = lowest_until(p, now->count);
	double rise = high > then ? high - then : 0;
	if (!scaled)
		return rise;
	double risen = above(then, base), mine = above((double)live, lowest_until(now, now->count));
	if (risen >= SHAPE_LEAST_RISE * above(top, base) && mine > 0)
		return rise * mine / risen;
	double size = size_of(p, now->count);
	return size > 0 && size >= SHAPE_LEAST_RISE * above(top, base) ? rise * (double)request / size : rise;
}

/* All of the latest steps made about as many blocks as this one has: nothing more was asked for behind them. */
static bool is_at_its_end(const struct step_shapes *s, const struct shape *now)
{
	uint32_t least = UINT32_MAX, most = 0;
	for (unsigned i = 0; i < SHAPE_LATEST && i < s->steps; i++) {
		least = s->latest[i].count < least ? s->latest[i].count : least;
		most = s->latest[i].count > most ? s->latest[i].count : most;
	}
	return s->open && s->steps >= SHAPE_LATEST && now->count && most - least <= SHAPE_FEW &&
	       now->count <= most + SHAPE_FEW;
}

/* Of the steps that were longer than this one is. */
static uint64_t usual_rise(const struct step_shapes *s, const struct shape *now, uint64_t live, uint64_t request,
			   bool scaled)
{
	double rises[SHAPE_LATEST];
	size_t n = 0;
	for (unsigned i = 0; s->open && i < SHAPE_LATEST && i < s->steps; i++)
		if (s->latest[i].count > now->count)
			rises[n++] = rise_as_in(&s->latest[i], now, live, request, scaled);
	return n ? (uint64_t)median_of(rises, n) : STEP_SHAPE_UNKNOWN;
}

static uint64_t rise(const struct step_shapes *s, uint64_t live, uint64_t request, bool next, bool scaled)
{
	uint64_t rise = usual_rise(s, &s->now, live, request, scaled);
	if (rise == STEP_SHAPE_UNKNOWN && next)
		return usual_rise(s, &(struct shape){ .begin = live }, live, request, scaled);
	return rise == STEP_SHAPE_UNKNOWN && is_at_its_end(s, &s->now) ? request : rise;
}

uint64_t step_shapes_rise(const struct step_shapes *s, uint64_t live, uint64_t request, bool next)
{
	return rise(s, live, request, next, true);
}

uint64_t step_shapes_rise_unscaled(const struct step_shapes *s, uint64_t live, uint64_t request, bool next)
{
	return rise(s, live, request, next, false);
}
