/*
 * Several shapes are fitted to the points - constant, line, parabola, two lines that meet, an exponential, levels with
 * up to three jumps - and the one that explains most for its number of parameters wins (Bayes' information criterion,
 * with a scale of noise that is the same for all: that of the best of them). What it is called follows from its slopes
 * at both ends.
 */
#include "analyzer/timeline/growth.h"

#include "analyzer/util/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define A_LITTLE            0.1   /* of what grew */
#define GROWTH_POINTS       128   /* more are joined by medians */
#define GROWTH_STEADY_BYTES 65536 /* in all; less is noise even where it is steady */
#define GROWTH_FEW          12    /* points: too few for shapes with a place of their own */
#define TRIM_POINTS         16    /* from here on a start-up can be told from the rest */
#define TRIM_PART           4     /* at most 1/4 is start-up ... */
#define END_PART            8     /* ... and 1/8 the end of the program */
#define GROWTH_FLOOR        0.002 /* least noise, of the range: allocations come in blocks */
#define PENALTY             1.5   /* times log(points), a parameter */
#define SATURATED           0.35  /* slope at the end against that at the beginning */
#define FASTER              1.25
#define GROWTH_LEAST_T      3.5 /* slope in standard errors */
#define BENT_T              2.0 /* curvature: in doubt a forecast from a curve errs less than one from a line */
#define JUMPS               3
#define OTHER_RATE          3 /* times as fast or as slow: no longer the same growth */
/* how much better what grows slower must explain than what grows faster, in squares of the noise */
#define SLOWER 2

static const double bends[] = { 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8 };
static const double growths[] = { -0.15, -0.2, -0.3, -0.4, -0.6, -1, -2 }; /* of exponentials */

const char *growth_name(enum growth_kind kind)
{
	static const char *const names[] = { "none", "linear", "accelerating", "saturating", "jump" };
	return names[kind];
}

const char *certainty_name(enum growth_certainty certainty)
{
	static const char *const names[] = { "low", "medium", "high" };
	return names[certainty];
}

char *growth_brief_text(const struct growth *g, double bytes)
{
	return output_format("%s in %.2g s", BYTES((uint64_t)bytes), g->lasted_s);
}

const char *growth_unit(const struct growth *g)
{
	return g->stepped ? "step" : "second";
}

bool growth_is_doubtful(const struct growth *g)
{
	return g->doubt > A_LITTLE * g->bytes;
}

void growth_doubt(struct growth *g, double bytes)
{
	if (g->kind == GROWTH_NONE)
		return;
	if (bytes >= g->bytes) {
		*g = (struct growth){ .kind = GROWTH_NONE,
				      .unproven = growth_is_steady(g) ? g->bytes : 0,
				      .stepped = g->stepped,
				      .lasted_s = g->lasted_s };
		return;
	}
	g->doubt = bytes;
	if (growth_is_doubtful(g))
		g->certainty = CERTAINTY_LOW;
}

bool growth_is_steady(const struct growth *g)
{
	return g->kind == GROWTH_LINEAR || g->kind == GROWTH_ACCELERATING;
}

/* ---- points -------------------------------------------------------------------------------------------- */

/* The points that are looked at: t is (x - x0) / span. */
struct points {
	double x[GROWTH_POINTS], t[GROWTH_POINTS], y[GROWTH_POINTS];
	size_t n;
	double x0, span;
};

static void set_scale(struct points *p, size_t from)
{
	memmove(p->x, p->x + from, (p->n - from) * sizeof(*p->x));
	memmove(p->y, p->y + from, (p->n - from) * sizeof(*p->y));
	p->n -= from;
	p->x0 = p->x[0];
	p->span = p->x[p->n - 1] - p->x[0];
	for (size_t i = 0; i < p->n; i++)
		p->t[i] = (p->x[i] - p->x0) / p->span;
}

/* Medians of equal groups of points, so that a few that stick out are gone already. */
static bool take_points(struct points *p, const double *x, const double *bytes, size_t count)
{
	size_t groups = count < GROWTH_POINTS ? count : GROWTH_POINTS;
	double *ys = malloc((count + 1) * sizeof(*ys));
	p->n = 0;
	for (size_t g = 0; ys && g < groups; g++) {
		size_t from = g * count / groups, to = (g + 1) * count / groups;
		memcpy(ys, bytes + from, (to - from) * sizeof(*ys));
		p->x[g] = (x[from] + x[to - 1]) / 2;
		p->y[g] = median_of(ys, to - from);
		p->n++;
	}
	free(ys);
	if (p->n < GROWTH_LEAST_POINTS || p->x[p->n - 1] <= p->x[0])
		return false;
	set_scale(p, 0);
	return true;
}

static double lowest(const double *y, size_t from, size_t to)
{
	double low = y[from];
	for (size_t i = from; i < to; i++)
		low = y[i] < low ? y[i] : low;
	return low;
}

static double highest(const struct points *p)
{
	double high = p->y[0];
	for (size_t i = 0; i < p->n; i++)
		high = p->y[i] > high ? p->y[i] : high;
	return high;
}

static double range_of(const struct points *p)
{
	return highest(p) - lowest(p->y, 0, p->n);
}

/* Only what lifts the low points counts: waves of any amplitude come back to theirs. */
static double lifted(const struct points *p)
{
	size_t quarter = p->n / 4 ? p->n / 4 : 1;
	return lowest(p->y, p->n - quarter, p->n) - lowest(p->y, 0, quarter);
}

/* Whether the points from `fall` on rise as those before did: what was freed (by a cycle collector, at an epoch's end)
 * is made anew. */
static bool rises_again(const struct points *p, size_t fall)
{
	size_t half = p->n / 2, low = fall, high;
	while (low + 1 < p->n && p->y[low + 1] < p->y[low])
		low++;
	high = low;
	for (size_t i = low; i < p->n; i++)
		high = p->y[i] > p->y[high] ? i : high;
	if (high < low + 2)
		return false;
	double before = (p->y[fall - 1] - p->y[half]) / (p->x[fall - 1] - p->x[half]);
	double after = (p->y[high] - p->y[low]) / (p->x[high] - p->x[low]);
	return after > 0.5 * before && after < 2 * before;
}

/* Drops the last points if they are a fall: the program frees what it has before it ends. */
static void drop_end(struct points *p)
{
	size_t most = p->n / END_PART, to = p->n;
	if (p->n < TRIM_POINTS)
		return;
	double before = lowest(p->y, p->n / 2, p->n - most);
	for (; most > 0 && p->y[to - 1] < before; most--)
		to--;
	for (; most > 0 && to < p->n && p->y[to - 1] < p->y[to - 2]; most--)
		to--; /* what leads down to it */
	if (to == p->n || rises_again(p, to))
		return;
	p->n = to;
	set_scale(p, 0);
}

/* Drops the first points as far as a curve through the others doesn't lead back to them. */
static void drop_start(struct points *p)
{
	if (p->n < TRIM_POINTS)
		return;
	size_t from = p->n / TRIM_PART, outside = 0;
	struct fit f;
	double least = GROWTH_FLOOR * range_of(p);
	fit_make(&f, FIT_CURVE, 0, p->t + from, p->y + from, p->n - from, least);
	double noise = fmax(f.scale, least);
	for (size_t i = from; i-- > 0 && outside < 2;) {
		double error = fit_value_error(&f, p->t[i]), far = fabs(p->y[i] - fit_value(&f, p->t[i]));
		bool fits = far <= 4 * sqrt(noise * noise + error * error);
		outside = fits ? 0 : outside + 1;
		if (fits)
			from = i;
	}
	if (from)
		set_scale(p, from);
}

/* ---- levels -------------------------------------------------------------------------------------------- */

/* Constant between jumps: segment i is the points [from[i], from[i + 1]). */
struct levels {
	size_t from[JUMPS + 2];
	double level[JUMPS + 1];
	int count;
};

static double squares(const struct points *p, size_t from, size_t to, double *mean)
{
	double sum = 0, all = 0;
	for (size_t i = from; i < to; i++)
		sum += p->y[i];
	*mean = sum / (double)(to - from);
	for (size_t i = from; i < to; i++)
		all += (p->y[i] - *mean) * (p->y[i] - *mean);
	return all;
}

/* What the best split of [from, to) wins, and where it is. */
static double best_split(const struct points *p, size_t from, size_t to, size_t *at)
{
	double mean, whole = squares(p, from, to, &mean), best = 0;
	for (size_t i = from + 1; i < to; i++) {
		double left, right, won = whole - squares(p, from, i, &left) - squares(p, i, to, &right);
		if (won > best) {
			best = won;
			*at = i;
		}
	}
	return best;
}

static bool split_best(struct levels *l, const struct points *p)
{
	double best = 0;
	size_t at = 0, found = 0;
	int where = -1;
	for (int s = 0; s < l->count; s++) {
		double won = best_split(p, l->from[s], l->from[s + 1], &found);
		if (won > best) {
			best = won;
			at = found;
			where = s;
		}
	}
	if (where < 0)
		return false;
	memmove(&l->from[where + 2], &l->from[where + 1], (size_t)(l->count - where) * sizeof(*l->from));
	l->from[where + 1] = at;
	l->count++;
	return true;
}

static double levels_loss(struct levels *l, const struct points *p, double scale)
{
	double loss = 0;
	for (int s = 0; s < l->count; s++) {
		squares(p, l->from[s], l->from[s + 1], &l->level[s]);
		for (size_t i = l->from[s]; i < l->from[s + 1]; i++) {
			double r = (p->y[i] - l->level[s]) / scale;
			loss += r * r > 9 ? 9 : r * r;
		}
	}
	return loss;
}

/* What a level was at: a mean has of what came before it, too. */
static double middle(const struct points *p, const struct levels *l, int segment)
{
	double ys[GROWTH_POINTS];
	size_t n = l->from[segment + 1] - l->from[segment];
	memcpy(ys, p->y + l->from[segment], n * sizeof(*ys));
	return median_of(ys, n);
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

struct choice {
	const struct points *p;
	struct fit line, curve, best;
	double scale, cost; /* noise; of `best` */
	int jumps;          /* levels are better than all that: between so many */
	double jump_bytes;
};

static double cost_of(const struct choice *c, const struct fit *f, double parameters)
{
	return fit_loss(f, c->p->t, c->p->y, c->p->n, c->scale) + PENALTY * parameters * log((double)c->p->n);
}

static void consider(struct choice *c, const struct fit *f, double parameters, double margin)
{
	double cost = cost_of(c, f, parameters) + margin;
	if (cost < c->cost) {
		c->cost = cost;
		c->best = *f;
	}
}

/* The place (of a bend, or of a decay) that leaves least. */
static struct fit best_place(const struct points *p, enum fit_shape shape, const double *places, size_t count,
			     double scale)
{
	struct fit best = { 0 }, f;
	double least = INFINITY;
	for (size_t i = 0; i < count; i++) {
		fit_make(&f, shape, places[i], p->t, p->y, p->n, GROWTH_FLOOR * range_of(p));
		double loss = fit_loss(&f, p->t, p->y, p->n, scale);
		if (loss < least) {
			least = loss;
			best = f;
		}
	}
	return best;
}

static void consider_levels(struct choice *c)
{
	struct levels l = { .from = { 0, c->p->n }, .count = 1 };
	for (int jumps = 1; jumps <= (c->p->n < GROWTH_FEW ? 1 : JUMPS) && split_best(&l, c->p); jumps++) {
		double cost = levels_loss(&l, c->p, c->scale) + PENALTY * (2 * jumps + 1) * log((double)c->p->n);
		if (cost >= c->cost)
			continue;
		c->cost = cost;
		c->jumps = jumps;
		c->jump_bytes = middle(c->p, &l, l.count - 1) - middle(c->p, &l, 0);
	}
}

static void choose(struct choice *c, const struct points *p)
{
	static const double decays[] = { 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6 };
	struct fit constant, bend, decay, growth;
	double least = GROWTH_FLOOR * range_of(p);
	*c = (struct choice){ .p = p, .cost = INFINITY };
	fit_make(&constant, FIT_CONSTANT, 0, p->t, p->y, p->n, least);
	fit_make(&c->line, FIT_LINE, 0, p->t, p->y, p->n, least);
	fit_make(&c->curve, FIT_CURVE, 0, p->t, p->y, p->n, least);
	c->scale = fmax(least, fmin(c->line.scale, c->curve.scale));
	if (p->n >= GROWTH_FEW) {
		bend = best_place(p, FIT_BEND, bends, sizeof(bends) / sizeof(*bends), c->scale);
		decay = best_place(p, FIT_DECAY, decays, sizeof(decays) / sizeof(*decays), c->scale);
		growth = best_place(p, FIT_DECAY, growths, sizeof(growths) / sizeof(*growths), c->scale);
		c->scale = fmax(least, fmin(fmin(c->scale, bend.scale), fmin(decay.scale, growth.scale)));
	}
	consider(c, &constant, 1, 0);
	consider(c, &c->line, 2, 0);
	consider(c, &c->curve, 3, c->curve.beta[2] > 0 ? -SLOWER : 0);
	if (p->n >= GROWTH_FEW) {
		consider(c, &bend, 4, 2);
		consider(c, &decay, 3, 2);
		consider(c, &growth, 3, 6);
	}
	consider_levels(c);
}

/* ---- naming -------------------------------------------------------------------------------------------- */

static bool is_certain(double value, double error, const struct fit *f, double least)
{
	double wanted = fit_quantile(f->points, f->terms);
	return value > (f->points >= GROWTH_FEW && wanted < least ? least : wanted) * error;
}

/* A straight line through the points from t on: what goes on after a bend. */
static void name_line(struct growth *g, const struct points *p, double t)
{
	size_t from = 0;
	while (from + GROWTH_LEAST_POINTS < p->n && p->t[from] < t)
		from++;
	fit_make(&g->fit, FIT_LINE, 0, p->t + from, p->y + from, p->n - from, GROWTH_FLOOR * range_of(p));
	g->from_x = g->since_x = p->x[from];
	if (is_certain(g->fit.beta[1], fit_slope_error(&g->fit, 1), &g->fit, GROWTH_LEAST_T))
		g->kind = GROWTH_LINEAR;
}

static void name_curve(struct growth *g, const struct choice *c)
{
	const struct fit *f = &c->curve;
	double first = fit_slope(f, 0), last = fit_slope(f, 1), error = sqrt(f->cov[2][2]);
	if (f->beta[2] < 0 && last < SATURATED * first)
		g->kind = GROWTH_SATURATING;
	else if (f->beta[2] < 0)
		name_line(g, c->p, 0.4);
	else if (last > FASTER * first && first > -0.2 * last && is_certain(f->beta[2], error, f, BENT_T))
		g->kind = GROWTH_ACCELERATING;
	else if (first > -0.2 * last)
		name_line(g, c->p, 0);
}

static void name_other(struct growth *g, const struct choice *c)
{
	const struct fit *f = &c->best;
	double first = fit_slope(f, 0), last = fit_slope(f, 1);
	if (f->shape == FIT_DECAY && f->p < 0 && last > 0)
		g->kind = GROWTH_ACCELERATING;
	else if (first > 0 && last < SATURATED * first)
		g->kind = GROWTH_SATURATING;
	else if (last > 0)
		name_line(g, c->p, f->shape == FIT_BEND ? f->p : 0.4);
}

static double slope_in_errors(const struct fit *f)
{
	double error = fit_slope_error(f, 1);
	return error > 0 ? fit_slope(f, 1) / error : INFINITY;
}

static enum growth_certainty how_certain(const struct growth *g, const struct choice *c)
{
	double t = slope_in_errors(&g->fit);
	size_t points = c->p->n;
	if (g->since_x < g->from_x) /* that it grows may be clearer from all of it than how fast it does now */
		t = fmax(t, slope_in_errors(&c->line));
	if (g->kind == GROWTH_NONE || g->kind == GROWTH_JUMP || g->kind == GROWTH_SATURATING)
		return points < GROWTH_FEW ? CERTAINTY_LOW : CERTAINTY_MEDIUM;
	if (points >= 20 && t >= 8)
		return CERTAINTY_HIGH;
	return t >= 4 && points >= 8 ? CERTAINTY_MEDIUM : t >= 8 ? CERTAINTY_MEDIUM : CERTAINTY_LOW;
}

/* What grew before a bend, too, is one growth whose rate has changed. */
static double level_since(struct growth *g, const struct choice *c)
{
	double first = fit_slope(&c->best, 0), last = fit_slope(&g->fit, 1);
	if (g->from_x > c->p->x0 && first > last / OTHER_RATE && first < last * OTHER_RATE) {
		g->since_x = c->p->x0;
		return fit_value(&c->best, 0);
	}
	return fit_value(&g->fit, (g->from_x - c->p->x0) / c->p->span);
}

static void set_rates(struct growth *g, const struct choice *c)
{
	double quantile = fit_quantile(g->fit.points, g->fit.terms);
	g->rate = fit_slope(&g->fit, 1) / g->span;
	g->rate_error = quantile * fit_slope_error(&g->fit, 1) / g->span;
	g->bytes = fmin(fit_value(&g->fit, 1) - level_since(g, c), highest(c->p)); /* no more than there is */
	if (g->kind != GROWTH_ACCELERATING)
		return;
	double a = (fit_slope(&g->fit, 1) - fit_slope(&g->fit, 0)) / g->span / g->span;
	g->acceleration = a;
	g->acceleration_error =
		g->fit.shape == FIT_CURVE ? 2 * quantile * sqrt(g->fit.cov[2][2]) / g->span / g->span : a;
}

/* What residuals that hang together say about a shape is less than so many points would; and growth seldom changes its
 * rate at once. */
static void weigh(struct growth *g, const struct points *p, double scale)
{
	static const double rare[] = { [FIT_LINE] = 0, [FIT_CURVE] = 1, [FIT_DECAY] = 3, [FIT_BEND] = 8 };
	double costs[GROWTH_SHAPES], least = INFINITY, all = 0;
	for (unsigned i = 0; i < g->shape_count; i++) {
		const struct fit *f = &g->shapes[i].fit;
		double loss = fit_loss(f, p->t, p->y, p->n, scale) / (g->fit.inflation * g->fit.inflation);
		costs[i] = loss + rare[f->shape] + (f->beta[2] < 0 ? SLOWER : 0);
		least = fmin(least, costs[i]);
	}
	for (unsigned i = 0; i < g->shape_count; i++)
		all += g->shapes[i].weight = exp((least - costs[i]) / 2);
	for (unsigned i = 0; i < g->shape_count; i++)
		g->shapes[i].weight /= all;
}

/* A line, a parabola, an exponential and two lines that meet, through the points since growth began. */
static void set_shapes(struct growth *g, const struct points *all)
{
	struct points p = *all;
	while (p.n > GROWTH_LEAST_POINTS && p.x[0] < g->from_x) {
		p.n--;
		memmove(p.x, p.x + 1, p.n * sizeof(*p.x));
		memmove(p.t, p.t + 1, p.n * sizeof(*p.t));
		memmove(p.y, p.y + 1, p.n * sizeof(*p.y));
	}
	double least = GROWTH_FLOOR * range_of(&p), scale;
	fit_make(&g->shapes[0].fit, FIT_LINE, 0, p.t, p.y, p.n, least);
	fit_make(&g->shapes[1].fit, FIT_CURVE, 0, p.t, p.y, p.n, least);
	scale = fmax(least, fmin(g->shapes[0].fit.scale, g->shapes[1].fit.scale));
	g->shape_count = 2;
	if (p.n >= GROWTH_FEW) {
		g->shapes[g->shape_count++].fit =
			best_place(&p, FIT_DECAY, growths, sizeof(growths) / sizeof(*growths), scale);
		g->shapes[g->shape_count++].fit =
			best_place(&p, FIT_BEND, bends, sizeof(bends) / sizeof(*bends), scale);
	}
	weigh(g, &p, scale);
}

static void name(struct growth *g, const struct choice *c)
{
	g->fit = c->best;
	if (c->jumps)
		g->kind = c->jump_bytes > 4 * c->scale ? GROWTH_JUMP : GROWTH_NONE;
	else if (c->best.shape == FIT_LINE)
		name_line(g, c->p, 0);
	else if (c->best.shape == FIT_CURVE)
		name_curve(g, c);
	else if (c->best.shape != FIT_CONSTANT)
		name_other(g, c);
	if (g->kind == GROWTH_JUMP) {
		g->bytes = c->jump_bytes;
		g->jumps = (unsigned)c->jumps;
	} else if (g->kind != GROWTH_NONE)
		set_rates(g, c);
}

struct growth growth_in_the_mean(const double *x, const double *bytes, size_t count)
{
	struct growth g = { .kind = GROWTH_LINEAR, .since_x = x[0], .from_x = x[0], .x = x[0] };
	double t[GROWTH_POINTS] = { 0 };
	g.span = x[count - 1] > x[0] ? x[count - 1] - x[0] : 1;
	for (size_t i = 0; i < count; i++)
		t[i] = (x[i] - g.x) / g.span;
	fit_make(&g.fit, FIT_LINE, 0, t, bytes, count, GROWTH_FLOOR * (bytes[count - 1] - bytes[0]));
	g.rate = fit_slope(&g.fit, 1) / g.span;
	g.rate_error =
		count > 2 ? fit_quantile(g.fit.points, g.fit.terms) * fit_slope_error(&g.fit, 1) / g.span : g.rate;
	g.shapes[0] = (struct growth_shape){ g.fit, 1 };
	g.shape_count = 1;
	return g;
}

struct growth growth_of(const double *x, const double *bytes, size_t count)
{
	struct growth g = { .kind = GROWTH_NONE };
	struct points p;
	struct choice c;
	if (count < GROWTH_LEAST_POINTS || !take_points(&p, x, bytes, count))
		return g;
	drop_end(&p);
	if (lifted(&p) < GROWTH_STEADY_BYTES)
		return g;
	drop_start(&p);
	g.from_x = g.since_x = g.x = p.x0;
	g.span = p.span;
	if (lifted(&p) < GROWTH_STEADY_BYTES)
		return g;
	choose(&c, &p);
	name(&g, &c);
	if (growth_is_steady(&g) && lifted(&p) < 0.3 * g.bytes)
		g.kind = GROWTH_NONE;
	if (growth_is_steady(&g))
		set_shapes(&g, &p);
	g.certainty = how_certain(&g, &c);
	return g;
}
