#include "analyzer/diagnosis/growth/forecast.h"

#include "analyzer/util/output.h"

#include <math.h>
#include <stdlib.h>

#define FORECAST_MOST_T 100.0 /* times what was seen */
#define FORECAST_LATEST 64    /* high points, at least; else the later half */
#define FORECAST_RISES  8     /* equally likely ones */
#define CEILINGS        4
/* of what is in doubt: the least and the most of it that may be of no use come as near to nothing and to all */
#define ENDS            0.03
#define FORECAST_PLACES 256 /* on the way from the first step that can fail to the last that can fit */
/* standard deviation of how far a curve leaves the line it was on, of how far its shape says it does */
#define BENDING       0.34
#define CAUTION       0.3 /* of curves against lines, in the best guess */
#define FORECAST_NEAR 0.1 /* of the step that fails: where the best guess is to be */
#define SHARP         200 /* a guess with a chance that is less by a part of this one counts a third */
#define NORMAL        30  /* degrees of freedom from which on Student's distribution is nearly normal */

const struct forecast forecast_never = { false, INFINITY, INFINITY, INFINITY };

/* ---- how far steps rise above the curve ------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double forecast_ahead(const struct forecast *f, const struct growth *g)
{
	return f->ever && g->span > 0 ? (f->x - g->x - g->span) / g->span : INFINITY;
}

/* Sorted; *every is the distance of two. The caller frees it. */
static double *rises_of(const struct growth *g, const struct forecast_room *room, size_t *count, double *every)
{
	size_t from = 0;
	while (from < room->count && room->x[from] < g->from_x)
		from++;
	size_t n = room->count - from, taken = n / 2 > FORECAST_LATEST ? n / 2
					       : n < FORECAST_LATEST   ? n
								       : FORECAST_LATEST;
	from = room->count - taken;
	double *rises = calloc(taken + 1, sizeof(*rises));
	for (size_t i = 0; rises && i < taken; i++)
		rises[i] = room->high[from + i] - fit_value(&g->fit, (room->x[from + i] - g->x) / g->span);
	*every = taken > 1 ? (room->x[room->count - 1] - room->x[from]) / (double)(taken - 1) : g->span;
	*count = taken ? taken : 1; /* 0 */
	if (rises)
		qsort(rises, *count, sizeof(*rises), compare);
	return rises;
}

/* How many are at most that. */
static double part_below(const double *rises, size_t count, double room)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (rises[middle] <= room)
			low = middle + 1;
		else
			high = middle;
	}
	return (double)low / (double)count;
}

/*
 * How far below the limit the curve is when a step fails, as FORECAST_RISES equally likely figures. The curve climbs by
 * `slope` a step, so there are many steps at which the highest rises would do, and hardly ever does it come as far as
 * the usual one. /
 */
static void failing_rises(const double *rises, size_t count, double slope, double out[FORECAST_RISES])
{
	double left = 1, room = rises[count - 1], way = room - rises[0];
	double stride = fmax(slope, way / FORECAST_PLACES), steps = slope > 0 ? stride / slope : 1;
	int n = 0;
	for (; n < FORECAST_RISES && room > rises[0] && stride > 0; room -= stride) {
		left *= pow(part_below(rises, count, room), steps);
		while (n < FORECAST_RISES && left < 1 - (n + 0.5) / FORECAST_RISES)
			out[n++] = room;
	}
	while (n < FORECAST_RISES)
		out[n++] = rises[0];
}

/* ---- chances --------------------------------------------------------------------------------------------- */

/* That Student's t is at most x. */
static double student(double x, size_t freedom)
{
	double nu = (double)freedom;
	if (freedom >= NORMAL)
		return 0.5 * erfc(-x * (1 - 1 / (4 * nu)) / sqrt(1 + x * x / (2 * nu)) / sqrt(2));
	double angle = atan(x / sqrt(nu)), c = cos(angle), sum = 0, term = freedom % 2 ? c : 1;
	for (size_t k = freedom % 2 ? 3 : 2; k <= freedom; k += 2) { /* the odd and the even series of its integral */
		sum += term;
		term *= c * c * (double)(k - 1) / (double)k;
	}
	return 0.5 + 0.5 * (freedom % 2 ? 2 / acos(-1) * (angle + sin(angle) * sum) : sin(angle) * sum);
}

struct ahead {
	const struct growth *growth;
	double weights[GROWTH_SHAPES];
	double levels[CEILINGS * FORECAST_RISES]; /* of the curve, at which it may fail; equally likely */
};

static double chance_of(const struct fit *f, double t, double level)
{
	double value = fit_value(f, t), far = value - level, bent = value - fit_value(f, 1) - (t - 1) * fit_slope(f, 1);
	double error = hypot(fit_value_error(f, t), BENDING * bent);
	size_t freedom = f->points > (size_t)f->terms ? f->points - (size_t)f->terms : 1;
	if (!isfinite(far) || !isfinite(error) || error <= 0)
		return far >= 0 ? 1 : 0;
	return student(far / error, freedom);
}

/* That it has failed by then. */
static double chance(const struct ahead *a, double t)
{
	double sum = 0;
	for (unsigned s = 0; s < a->growth->shape_count; s++) {
		for (size_t i = 0; a->weights[s] > 1e-4 && i < CEILINGS * FORECAST_RISES; i++)
			sum += a->weights[s] * chance_of(&a->growth->shapes[s].fit, t, a->levels[i]);
	}
	return sum / (CEILINGS * FORECAST_RISES);
}

/* The first t after 1, the end of what was seen, by which it has failed with that chance. */
static double quantile(const struct ahead *a, double wanted)
{
	double t = 1, step = 0.01;
	if (chance(a, t) >= wanted)
		return t;
	while (chance(a, t + step) < wanted) {
		t += step;
		step *= 1.05;
		if (t > FORECAST_MOST_T)
			return INFINITY;
	}
	for (int i = 0; i < 20; i++) {
		step /= 2;
		t += chance(a, t + step) < wanted ? step : 0;
	}
	return t;
}

/* ---- interface ------------------------------------------------------------------------------------------- */

/* What the curve climbs in a step where it meets that level. */
static double slope_at(const struct growth *g, double level, double every)
{
	double t = 1, step = 0.01;
	for (; fit_value(&g->fit, t) < level && t < FORECAST_MOST_T; step *= 1.05)
		t += step;
	return fit_slope(&g->fit, t) * every / g->span;
}

/* A curve has more to choose from than a line: the single best guess doesn't follow it as soon as the interval allows
 * for it. */
static void set_weights(struct ahead *a, double of_curves)
{
	const struct growth *g = a->growth;
	double sum = 0;
	for (unsigned s = 0; s < g->shape_count; s++)
		sum += a->weights[s] = g->shapes[s].weight * (g->shapes[s].fit.shape == FIT_LINE ? 1 : of_curves);
	for (unsigned s = 0; s < g->shape_count; s++)
		a->weights[s] /= sum;
}

/*
 * What has the greatest chance to be within FORECAST_NEAR of the step that fails. Not the median: a line and a curve
 * that explain equally much often end far apart, and it would be near neither, or too late where one of them never
 * ends. Of many that are as good, the middle. /
 */
static double best_guess(const struct ahead *a)
{
	const struct growth *g = a->growth;
	double ever = chance(a, FORECAST_MOST_T), before = 0, most = 0, sum = 0, weights = 0;
	for (double x = g->x + g->span; ever - before > 0.9 * most; x *= 1 + FORECAST_NEAR / 10) {
		before = x / (1 + FORECAST_NEAR) > g->x + g->span
				 ? chance(a, (x / (1 + FORECAST_NEAR) - g->x) / g->span)
				 : 0;
		double held = chance(a, (x / (1 - FORECAST_NEAR) - g->x) / g->span) - before, weight = pow(held, SHARP);
		most = fmax(most, held);
		sum += x * weight;
		weights += weight;
	}
	return ever < 0.5 ? INFINITY : sum / weights;
}

/* Parts of what is in doubt, each as likely as the other. That nothing of it is of use is what happens where growth is
 * steady and nothing else moves. */
static double useless(size_t i)
{
	return ENDS + (1 - 2 * ENDS) * (double)i / (CEILINGS - 1);
}

struct forecast forecast_of(const struct growth *g, const struct forecast_room *room)
{
	struct ahead a = { .growth = g };
	size_t count;
	double every, rises[FORECAST_RISES];
	const bool may = growth_is_steady(g) && !growth_is_doubtful(g) && !growth_is_brief(g);
	double *seen = may ? rises_of(g, room, &count, &every) : NULL;
	if (!seen)
		return forecast_never;
	failing_rises(seen, count, slope_at(g, room->limit - room->doubt / 2 - seen[count / 2], every), rises);
	free(seen);
	for (size_t i = 0; i < CEILINGS * FORECAST_RISES; i++)
		a.levels[i] = room->limit - room->doubt * useless(i % CEILINGS) - rises[i / CEILINGS];
	set_weights(&a, CAUTION);
	struct forecast f = { .x = best_guess(&a) };
	set_weights(&a, 1);
	f.low = fmin(f.x, g->x + g->span * quantile(&a, (1 - FORECAST_LEVEL) / 2));
	f.high = fmax(f.x, g->x + g->span * quantile(&a, (1 + FORECAST_LEVEL) / 2));
	f.ever = isfinite(f.x);
	return f.ever ? f : forecast_never;
}

char *forecast_text(double x, double low, double high)
{
	const double percent = 100 * FORECAST_LEVEL;
	const int digits = x < 10 ? 2 : 0; /* seconds of a short run */
	return isfinite(high)
		       ? output_format("%.*f (%.0f %%: %.*f to %.*f)", digits, x, percent, digits, low, digits, high)
		       : output_format("%.*f (%.0f %%: %.*f or later)", digits, x, percent, digits, low);
}
