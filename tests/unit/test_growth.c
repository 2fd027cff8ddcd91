/* Growth and forecasts against series whose truth is known: every statistical check is over many seeds, and asks for a rate. */
#include "analyzer/growth.h"
#include "tests/unit/test.h"

#include <math.h>

#define MIB 1048576.0
#define GIB 1073741824.0

enum { MOST = 2000, SEEDS = 100 };

static double xs[MOST], ys[MOST];
static uint64_t seed;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- without noise --------------------------------------------------------------------------------------- */

static struct growth of(double (*f)(double x), size_t count)
{
	for (size_t i = 0; i < count; i++) {
		xs[i] = 2 * (double)i;
		ys[i] = f((double)i / (double)(count - 1)) * MIB;
	}
	return growth_of(xs, ys, count);
}

static double flat(double x) { (void)x; return 100; }
static double straight(double x) { return 100 + 60 * x; }
static double parabola(double x) { return 100 + 60 * x * x; }
static double exponential(double x) { return 100 + 10 * exp(3 * x); }
static double cache(double x) { return 100 + 60 * (1 - (1 - x) * (1 - x) * (1 - x)); }
static double step(double x) { return x < 0.3 ? 100 : 160; }
static double saw(double x) { return 100 + (int)(x * 31) % 4 * 10; }
static double falling(double x) { return 100 - 50 * x; }
static double import(double x) { return x < 0.6 ? 10 + 60 * x / 0.6 : 70 + x; }
static double rare(double x) { return x < 0.3 ? 100 : x < 0.9 ? 130 : 160; }
static double tiny(double x) { return 100 + 0.01 * x; }
static double late(double x) { return x < 0.4 ? 100 : 100 + 60 * (x - 0.4); }
static double started(double x) { return x < 0.08 ? 1000 * x : 100 + 30 * x; }
static double torn_down(double x) { return x < 0.95 ? 100 + 60 * x : 5; }

TEST(steady_growth_is_linear)
{
	struct growth g = of(straight, 31);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK_EQ(g.certainty, CERTAINTY_HIGH);
	CHECK(fabs(g.rate - MIB) < 0.01 * MIB);
	CHECK(fabs(g.bytes - 60 * MIB) < 0.01 * MIB);
}

TEST(growth_that_gets_faster_is_accelerating)
{
	struct growth g = of(parabola, 31);
	CHECK_EQ(g.kind, GROWTH_ACCELERATING);
	CHECK(fabs(g.acceleration / MIB - 2 * 60 / 3600.0) < 0.001);
	CHECK_EQ(of(exponential, 31).kind, GROWTH_ACCELERATING);
}

TEST(a_cache_that_fills_is_saturating)
{
	CHECK_EQ(of(cache, 31).kind, GROWTH_SATURATING);
}

TEST(what_stopped_growing_is_saturating)
{
	CHECK_EQ(of(import, 31).kind, GROWTH_SATURATING);
}

TEST(few_steps_are_jumps)
{
	CHECK_EQ(of(step, 31).kind, GROWTH_JUMP);
	CHECK_EQ(of(rare, 31).kind, GROWTH_JUMP);
}

TEST(what_does_not_grow_is_none)
{
	CHECK_EQ(of(flat, 31).kind, GROWTH_NONE);
	CHECK_EQ(of(saw, 32).kind, GROWTH_NONE);
	CHECK_EQ(of(falling, 31).kind, GROWTH_NONE);
	CHECK_EQ(of(tiny, 31).kind, GROWTH_NONE);
}

TEST(growth_that_begins_late_is_told_by_its_own_rate)
{
	struct growth g = of(late, 101);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 60 * MIB / 200) < 0.02 * MIB);
	CHECK(g.from_x > 60 && g.from_x < 100);
}

TEST(a_start_is_no_growth)
{
	struct growth g = of(started, 101);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 30 * MIB / 200) < 0.01 * MIB);
	CHECK(g.from_x >= 14);
}

TEST(an_end_hides_no_growth)
{
	CHECK_EQ(of(torn_down, 101).kind, GROWTH_LINEAR);
}

TEST(few_points_say_little)
{
	CHECK_EQ(of(straight, 4).kind, GROWTH_NONE);
	CHECK_EQ(growth_of(xs, ys, 0).kind, GROWTH_NONE);
	CHECK(of(straight, 6).certainty < CERTAINTY_HIGH);
}

TEST(evaluations_are_no_growth)
{
	for (size_t i = 0; i < 500; i++) {
		xs[i] = (double)i;
		ys[i] = (i % 50 == 49 ? 400 : 100) * MIB;
	}
	CHECK_EQ(growth_of(xs, ys, 500).kind, GROWTH_NONE);
	for (size_t i = 0; i < 500; i++)
		ys[i] += (double)i * MIB / 10;
	struct growth g = growth_of(xs, ys, 500);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - MIB / 10) < MIB / 100);
}

/* ---- the incident ---------------------------------------------------------------------------------------- */

/* 18.2, 18.5, 18.9, 19.4, 20.1 GB at steps 100 to 500 of a 24 GiB card with 0.3 GiB outside the pool: out at about 1000. */
TEST(a_leak_of_a_thousand_steps_is_forecast_from_its_first_half)
{
	static const double steps[] = { 100, 200, 300, 400, 500 }, gb[] = { 18.2e9, 18.5e9, 18.9e9, 19.4e9, 20.1e9 };
	double limit = (24 - 0.3) * GIB;
	struct growth g = growth_of(steps, gb, 5);
	struct forecast f = growth_forecast(&g, limit, 0), straight_on = growth_straight(steps, gb, 5, limit);
	CHECK_EQ(g.kind, GROWTH_ACCELERATING);
	CHECK(f.ever && f.x > 940 && f.x < 1090);
	CHECK(f.low < f.x && f.x < f.high);
	CHECK(straight_on.x > 1500);
}

/* ---- with noise ------------------------------------------------------------------------------------------ */

/* A leak of a random rate that gets `faster` times as fast until it fails at step 2 * half; noise of 5 % of what grew in the
 * first half, which is what is seen. */
struct trial { double fails, limit; struct growth growth; struct forecast forecast, straight; };

static struct trial try(size_t half, double faster, double noise)
{
	struct trial t = { .fails = 2 * (double)half };
	double rate = MIB * (1 + 3 * uniform()), base = GIB * (1 + 9 * uniform()), grown;
	double more = rate * (faster - 1) / (2 * t.fails), amplitude = GIB * uniform();
	grown = rate * (double)half + more * (double)half * (double)half;
	t.limit = base + rate * t.fails + more * t.fails * t.fails + amplitude;
	for (size_t i = 0; i < half; i++) {
		double x = (double)(i + 1);
		xs[i] = x;
		ys[i] = base + rate * x + more * x * x + noise * grown * normal();
	}
	t.growth = growth_of(xs, ys, half);
	t.forecast = growth_forecast(&t.growth, t.limit, amplitude);
	t.straight = growth_straight(xs, ys, half, t.limit - amplitude);
	return t;
}

static bool is_near(const struct forecast *f, double truth)
{
	return f->ever && fabs(f->x - truth) <= 0.1 * truth;
}

/* Of SEEDS leaks, how many are of that kind, forecast within 10 %, within their interval, and missed by a straight line. */
struct rates { int kind, near, within, straight_missed; };

static struct rates rates_of(size_t half, double faster, enum growth_kind kind)
{
	struct rates r = { 0 };
	for (int s = 0; s < SEEDS; s++) {
		seed = 0x9E3779B97F4A7C15ull * (uint64_t)(s + 1) + half;
		struct trial t = try(half, faster, 0.05);
		r.kind += t.growth.kind == kind;
		r.near += is_near(&t.forecast, t.fails);
		r.within += t.forecast.low <= t.fails && t.fails <= t.forecast.high;
		r.straight_missed += !is_near(&t.straight, t.fails);
	}
	return r;
}

TEST(linear_leaks_are_forecast_from_half_of_a_run)
{
	static const size_t halves[] = { 100, 300, 1000 };
	for (size_t i = 0; i < 3; i++) {
		struct rates r = rates_of(halves[i], 1, GROWTH_LINEAR);
		CHECK(r.kind >= 96);
		CHECK(r.near >= 98);
		CHECK(r.within >= 90);
	}
}

TEST(accelerating_leaks_are_forecast_where_a_straight_line_fails)
{
	static const size_t halves[] = { 150, 300, 500, 1000 };
	for (size_t i = 0; i < 4; i++) {
		struct rates r = rates_of(halves[i], 3, GROWTH_ACCELERATING);
		CHECK(r.kind >= 98);
		CHECK(r.near >= 97);
		CHECK(r.within >= 88);
		CHECK_EQ(r.straight_missed, SEEDS);
	}
}

TEST(noise_is_no_growth)
{
	int grows = 0;
	for (int s = 0; s < SEEDS; s++) {
		seed = 77777u * (uint64_t)(s + 1);
		for (size_t i = 0; i < 300; i++) {
			xs[i] = (double)i;
			ys[i] = GIB + 50 * MIB * normal();
		}
		struct growth g = growth_of(xs, ys, 300);
		grows += g.kind != GROWTH_NONE;
	}
	CHECK(grows <= 2);
}

/* Each value remembers the one before: slow waves, as of a cache that is trimmed now and then. */
TEST(waves_are_no_steady_growth)
{
	int grows = 0;
	for (int s = 0; s < SEEDS; s++) {
		double wave = 0;
		seed = 31337u * (uint64_t)(s + 1);
		for (size_t i = 0; i < 600; i++) {
			wave = 0.9 * wave + normal();
			xs[i] = (double)i;
			ys[i] = GIB + 20 * MIB * wave;
		}
		struct growth g = growth_of(xs, ys, 600);
		grows += growth_is_steady(&g);
	}
	CHECK(grows <= 3);
}

TEST(noisy_caches_are_no_leak)
{
	int steady = 0;
	for (int s = 0; s < SEEDS; s++) {
		seed = 4242u * (uint64_t)(s + 1);
		double fills = 20 + 60 * uniform();
		for (size_t i = 0; i < 400; i++) {
			xs[i] = (double)i;
			ys[i] = GIB + 300 * MIB * (1 - exp(-(double)i / fills)) + 15 * MIB * normal();
		}
		struct growth g = growth_of(xs, ys, 400);
		steady += growth_is_steady(&g);
	}
	CHECK(steady <= 2);
}

TEST(first_steps_and_doubling_tables_are_no_leak)
{
	int steady = 0;
	for (int s = 0; s < SEEDS; s++) {
		seed = 999u * (uint64_t)(s + 1);
		size_t at = 1 + (size_t)(uniform() * 150), second = 150 + (size_t)(uniform() * 40);
		for (size_t i = 0; i < 200; i++) {
			xs[i] = (double)i;
			ys[i] = GIB + (i >= at ? 200 * MIB : 0) + (i >= second ? 100 * MIB : 0) + 5 * MIB * normal();
		}
		struct growth g = growth_of(xs, ys, 200);
		steady += growth_is_steady(&g);
	}
	CHECK(steady <= 2);
}

TEST_MAIN
