#include "analyzer/growth.h"
#include "tests/unit/test.h"

#define MIB 1048576.0

static uint64_t values[32];

static struct growth of(double (*f)(double x), size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = (uint64_t)(f((double)i / (double)(count - 1)) * MIB);
	return growth_of(values, count, 2);
}

static double flat(double x) { (void)x; return 100; }
static double straight(double x) { return 100 + 60 * x; }
static double parabola(double x) { return 100 + 60 * x * x; }
static double cache(double x) { return 100 + 60 * (1 - (1 - x) * (1 - x) * (1 - x)); }
static double step(double x) { return x < 0.3 ? 100 : 160; }
static double saw(double x) { return 100 + (int)(x * 31) % 4 * 10; }
static double falling(double x) { return 100 - 50 * x; }
static double import(double x) { return x < 0.6 ? 10 + 60 * x / 0.6 : 70 + x; }
static double rare(double x) { return x < 0.3 ? 100 : x < 0.9 ? 130 : 160; }
static double tiny(double x) { return 100 + 0.01 * x; }

TEST(steady_growth_is_linear)
{
	struct growth g = of(straight, 31);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK_EQ(g.certainty, CERTAINTY_HIGH);
	CHECK(g.bytes_per_s > 0.99 * MIB && g.bytes_per_s < 1.01 * MIB);
	CHECK_EQ(g.bytes, 60 * MIB);
}

TEST(growth_that_gets_faster_is_accelerating)
{
	struct growth g = of(parabola, 31);
	CHECK_EQ(g.kind, GROWTH_ACCELERATING);
	CHECK(g.acceleration > 0.03 * MIB && g.acceleration < 0.04 * MIB); /* 2 * 60 MiB / (60 s)^2 */
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

TEST(few_windows_say_little)
{
	CHECK_EQ(of(straight, 5).kind, GROWTH_NONE);
	CHECK_EQ(of(straight, 8).certainty, CERTAINTY_LOW);
	CHECK_EQ(growth_of(values, 0, 2).kind, GROWTH_NONE);
}

TEST_MAIN
