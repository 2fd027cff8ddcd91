/* Growth in bursts: what is told of levels, and what only looks like them. */
#include "analyzer/timeline/bursts.h"
#include "tests/unit/test.h"

#include <math.h>

#define MIB 1048576.0

enum { POINTS = 120 };

static double xs[POINTS], ys[POINTS];

static struct growth of(double (*mib)(double x))
{
	for (int i = 0; i < POINTS; i++) {
		xs[i] = 5 * i;
		ys[i] = mib((double)i / POINTS) * MIB;
	}
	return bursts_growth(xs, ys, POINTS);
}

static bool near(double found, double want)
{
	return fabs(found - want) < 0.05 * want;
}

static double capacity(double contents)
{
	double room = 0.0625;
	while (room < contents)
		room *= 2;
	return room;
}

static double doubling(double x)
{
	return capacity(60 * x);
}
static double by_half(double x)
{
	double room = 1;
	while (room < 60 * x)
		room *= 1.5;
	return room;
}
static double with_start(double x)
{
	return capacity(20 + 60 * x) + 40;
}
static double doubled(double x)
{
	return capacity(60 * fmin(x, 0.25));
}
static double stages(double x)
{
	return 38 * (1 + floor(4 * x));
}
static double stages_at_first(double x)
{
	return 38 * (1 + floor(fmin(16 * x, 3)));
}
static double renewed(double x)
{
	return 38 * (1 + fmod(floor(8 * x), 2));
}
static double unequal(double x)
{
	return x < 0.3 ? 10 : x < 0.6 ? 100 : x < 0.8 ? 104 : 300;
}
static double two(double x)
{
	return x < 0.3 ? 10 : x < 0.6 ? 50 : 90;
}
static double straight(double x)
{
	return 10 + 60 * x;
}
static double late_stages(double x)
{
	return 38 * floor(4 * x + 0.5);
}
static double six_stages(double x)
{
	return 100 + 38 * floor(6 * x + 0.25);
}
static double many_stages(double x)
{
	return 38 * floor(20 * x);
}
static double in_large_pieces(double x)
{
	return 10 + 4 * floor(15 * x);
}
static double noisy(double x)
{
	return 10 + 60 * x + 0.5 * sin(1000 * x * x);
}
static double held_up(double x)
{
	return 10 + 60 * x + 4 * sin(4 * 6.2831853 * x) / 6.2831853;
}
/* A cache whose table doubles now and then: 14 to 30 MiB at once. */
static double lifted(double x)
{
	return 17 + 50 * x + (x > 0.4 ? 30 : 0) + 0.3 * sin(900 * x * x);
}
static double lifted_twice(double x)
{
	return 17 + 60 * x + (x > 0.27 ? 14 : 0) + (x > 0.61 ? 28 : 0) + 0.3 * sin(900 * x * x);
}
static double lifted_and_flat(double x)
{
	return 17 + 30 * fmin(x, 0.4) + (x > 0.3 ? 14 : 0);
}
static double lifted_and_full(double x)
{
	return 17 + 50 * (1 - exp(-5 * x)) + (x > 0.55 ? 14 : 0);
}
static double lifted_most(double x)
{
	return 17 + 10 * x + (x > 0.3 ? 14 : 0) + (x > 0.8 ? 28 : 0);
}
static double freed_at_the_end(double x)
{
	return x < 0.95 ? stages(x) : 1;
}

/* `of` says so though a line through the points is certain. */
static bool at_pace(double (*mib)(double x), unsigned jumps)
{
	struct growth g = of(mib), line = growth_of(xs, ys, POINTS);
	CHECK(growth_is_steady(&line) && line.certainty == CERTAINTY_HIGH);
	return g.kind == GROWTH_LINEAR && g.certainty == CERTAINTY_MEDIUM && g.jumps == jumps &&
	       near(g.rate, jumps * 38 * MIB / (5 * POINTS));
}

TEST(a_block_that_doubles_grows_by_what_is_put_into_it)
{
	struct growth g = of(doubling);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK_EQ(g.certainty, CERTAINTY_MEDIUM);
	CHECK(g.jumps >= 4 && near(g.rate, 60 * MIB / (5 * POINTS)));
	CHECK(g.moved > 30 * MIB && g.moved < 64 * MIB); /* 32 + 16 + ... */
	g = of(by_half);
	CHECK(growth_is_steady(&g) && near(g.rate, 60 * MIB / (5 * POINTS)));
}

TEST(of_one_that_stopped_nothing_is_said)
{
	struct growth g = of(doubled);
	CHECK(!growth_is_steady(&g));
	g = of(with_start); /* it was full twice: that is no line */
	CHECK(!growth_is_steady(&g));
}

TEST(stages_that_leave_the_same_grow)
{
	struct growth g = of(stages);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK_EQ(g.jumps, 3); /* the first one was there */
	CHECK(near(g.bytes, 3 * 38 * MIB) && near(g.rate, 4 * 38 * MIB / (5 * POINTS)) && g.moved == 0);
	g = of(freed_at_the_end);
	CHECK(growth_is_steady(&g) && g.jumps == 3);
}

TEST(stages_on_a_line_are_bursts_all_the_same)
{
	CHECK(at_pace(late_stages, 4));
	CHECK(at_pace(six_stages, 6));
}

TEST(a_line_in_pieces_is_a_line)
{
	static double (*const shapes[])(double) = { many_stages, in_large_pieces, noisy, held_up };
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct growth g = of(shapes[i]);
		CHECK_EQ(g.kind, GROWTH_LINEAR);
		CHECK_EQ(g.certainty, CERTAINTY_HIGH);
		CHECK_EQ(g.jumps, 0);
	}
}

TEST(a_line_that_is_lifted_goes_on)
{
	static double (*const shapes[])(double) = { lifted, lifted_twice };
	for (int i = 0; i < 2; i++) {
		struct growth g = of(shapes[i]), line = growth_of(xs, ys, POINTS);
		CHECK(!growth_is_steady(&line));
		CHECK_EQ(g.kind, GROWTH_LINEAR);
		CHECK_EQ(g.certainty, CERTAINTY_HIGH);
		CHECK(near(g.rate, (50 + 10 * i) * MIB / (5 * POINTS))); /* of what is kept in between */
		CHECK(near(g.bytes, (i ? 60 + 42 : 50 + 30) * MIB));
		CHECK(near(fit_value(&g.shapes[0].fit, 1), ys[POINTS - 1]));
	}
}

TEST(what_is_lifted_and_does_not_go_on)
{
	static double (*const shapes[])(double) = { lifted_and_flat, lifted_and_full, lifted_most };
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct growth g = of(shapes[i]);
		CHECK(!growth_is_steady(&g));
	}
}

TEST(bursts_that_are_no_growth)
{
	static double (*const shapes[])(double) = { stages_at_first, renewed, unequal, two };
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct growth g = of(shapes[i]);
		CHECK(!growth_is_steady(&g));
	}
}

TEST(what_is_certain_stays_as_it_was)
{
	struct growth g = of(straight);
	CHECK_EQ(g.certainty, CERTAINTY_HIGH);
	CHECK_EQ(g.jumps, 0);
}

TEST_MAIN
