#include "analyzer/growth.h"

#define LEAST_WINDOWS 6
#define LEAST_BYTES 65536  /* in all; less is noise even where it is steady */
#define LEAST_PART 0.02    /* of what was there already */
#define LEAST_RISES 4      /* fewer are single events */
#define JUMP_PART 0.7      /* of the growth in one window */
#define FALLING_PART 0.4   /* of the windows are below the one before: no growth */

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

/* Slope of the least-squares line, in bytes a window; *fit is its r squared. */
static double line(const uint64_t *values, size_t count, double *fit)
{
	double n = (double)count, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
	for (size_t i = 0; i < count; i++) {
		double x = (double)i, y = (double)values[i];
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
		syy += y * y;
	}
	double xx = n * sxx - sx * sx, xy = n * sxy - sx * sy, yy = n * syy - sy * sy;
	*fit = xx > 0 && yy > 0 ? xy * xy / (xx * yy) : 0;
	return xx > 0 ? xy / xx : 0;
}

static double rise(const uint64_t *values, size_t from, size_t to)
{
	return (double)values[to] - (double)values[from];
}

static double largest_rise(const uint64_t *values, size_t count)
{
	double most = 0;
	for (size_t i = 1; i < count; i++)
		most = rise(values, i - 1, i) > most ? rise(values, i - 1, i) : most;
	return most;
}

static size_t falling_windows(const uint64_t *values, size_t count)
{
	size_t falling = 0;
	for (size_t i = 1; i < count; i++)
		falling += values[i] < values[i - 1];
	return falling;
}

static size_t rising_windows(const uint64_t *values, size_t count)
{
	size_t rising = 0;
	for (size_t i = 1; i < count; i++)
		rising += values[i] > values[i - 1];
	return rising;
}

static uint64_t lowest(const uint64_t *values, size_t from, size_t to)
{
	uint64_t low = values[from];
	for (size_t i = from; i < to; i++)
		low = values[i] < low ? values[i] : low;
	return low;
}

/* Only what lifts the low points counts: waves of any amplitude come back to theirs. */
static double lifted(const uint64_t *values, size_t count)
{
	size_t quarter = count / 4;
	return (double)lowest(values, count - quarter, count) - (double)lowest(values, 0, quarter);
}

static enum growth_kind classify(const uint64_t *values, size_t count)
{
	size_t last = count - 1, middle = last / 2;
	double all = rise(values, 0, last), early = rise(values, 0, middle), late = rise(values, middle, last);
	double low = lifted(values, count);
	if (all < LEAST_BYTES || low < LEAST_BYTES || low < LEAST_PART * (double)values[0])
		return GROWTH_NONE;
	if (largest_rise(values, count) > JUMP_PART * all)
		return GROWTH_JUMP;
	if ((double)falling_windows(values, count) > FALLING_PART * (double)last)
		return GROWTH_NONE;
	if (late < 0.4 * early || rise(values, last - last / 4, last) < 0.3 * all / 4)
		return GROWTH_SATURATING;
	if (rising_windows(values, count) < LEAST_RISES)
		return GROWTH_JUMP;
	return late > 1.8 * early ? GROWTH_ACCELERATING : GROWTH_LINEAR;
}

/* A straight line fits growth of any steady kind well enough to tell it from steps and noise. */
static enum growth_certainty how_certain(enum growth_kind kind, size_t count, double fit)
{
	double wanted = kind == GROWTH_LINEAR ? 0.98 : 0.85;
	if (kind == GROWTH_NONE || kind == GROWTH_JUMP || count < 2 * LEAST_WINDOWS)
		return count < 2 * LEAST_WINDOWS ? CERTAINTY_LOW : CERTAINTY_MEDIUM;
	return fit >= wanted ? CERTAINTY_HIGH : fit >= wanted - 0.15 ? CERTAINTY_MEDIUM : CERTAINTY_LOW;
}

struct growth growth_of(const uint64_t *values, size_t count, double window_s)
{
	struct growth g = { .kind = GROWTH_NONE };
	double fit, half_fit;
	if (count < LEAST_WINDOWS || window_s <= 0)
		return g;
	size_t middle = count / 2;
	line(values, count, &fit);
	g.kind = classify(values, count);
	g.certainty = how_certain(g.kind, count, fit);
	if (g.kind == GROWTH_NONE)
		return g;
	double late = line(values + middle, count - middle, &half_fit), early = line(values, middle, &half_fit);
	g.bytes = values[count - 1] - values[0];
	g.bytes_per_s = late / window_s;
	if (g.kind == GROWTH_ACCELERATING)
		g.acceleration = (late - early) / ((double)count / 2) / (window_s * window_s);
	return g;
}
