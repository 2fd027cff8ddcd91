/* Growth against series whose truth is known: every statistical check is over many seeds, and asks for a rate. */
#include "analyzer/growth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <math.h>

#define MIB 1048576.0
#define GIB 1073741824.0

enum { MOST = 2000, SEEDS = 100 };

static double xs[MOST], ys[MOST];
static uint64_t seed;

static double uniform(void) { return random_uniform(&seed); }
static double normal(void) { return random_normal(&seed); }

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
static double loading(double x) { return x < 0.5 ? 100 : x < 0.55 ? 150 : 160; }
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
	struct growth once = of(step, 31), twice = of(rare, 31), slow = of(loading, 31);
	CHECK_EQ(once.kind, GROWTH_JUMP);
	CHECK_EQ(once.jumps, 1);
	CHECK_EQ(twice.kind, GROWTH_JUMP);
	CHECK_EQ(twice.jumps, 2);
	CHECK_EQ(slow.kind, GROWTH_JUMP);
	CHECK(once.bytes == 60 * MIB && twice.bytes == 60 * MIB && slow.bytes == 60 * MIB);
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

/* ---- with noise ------------------------------------------------------------------------------------------ */

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
