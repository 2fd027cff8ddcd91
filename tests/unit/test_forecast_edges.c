/* Forecasts of growth without noise, whose end can be told by hand: every part that makes an interval wider, one at a
 * time. */
#include "analyzer/diagnosis/growth/forecast.h"
#include "tests/unit/test.h"

#include <math.h>

#define MIB 1048576.0

enum { SEEN = 101 }; /* steps 0 to 100 */

static double xs[SEEN], lows[SEEN], highs[SEEN];
static struct growth growth;

static double line(double x)
{
	return 100 + x;
}
static double parabola(double x)
{
	return 100 + 0.01 * x * x;
}
static double flat(double x)
{
	return 100 + 0 * x;
}

/* Low points on the curve, and high points so many MiB above, every other step. */
static void grow(double (*f)(double x), double even, double odd)
{
	for (int i = 0; i < SEEN; i++) {
		xs[i] = i;
		lows[i] = f(i) * MIB;
		highs[i] = lows[i] + (i % 2 ? odd : even) * MIB;
	}
	growth = growth_of(xs, lows, SEEN);
}

static struct forecast fails(double limit, double doubt)
{
	return forecast_of(&growth,
			   &(struct forecast_room){
				   .limit = limit * MIB, .doubt = doubt * MIB, .x = xs, .high = highs, .count = SEEN });
}

static bool within(double low, double x, double high)
{
	if (!(low <= x && x <= high))
		printf("# %g is not in %g to %g\n", x, low, high);
	return low <= x && x <= high;
}

TEST(a_line_ends_where_it_meets_the_limit)
{
	grow(line, 0, 0);
	struct forecast f = fails(1000, 0);
	CHECK(f.ever && within(880, f.x, 920) && f.low <= f.x && f.x <= f.high);
	CHECK(within(850, f.low, 900) && within(900, f.high, 950));
	/* without high points it is the curve alone */
	f = forecast_of(&growth, &(struct forecast_room){ .limit = 1000 * MIB });
	CHECK(f.ever && within(880, f.x, 920));
}

/* Nobody has seen what it grows by in a second; of steps that is no question. */
TEST(what_is_brief_has_no_end)
{
	grow(line, 0, 0);
	growth.lasted_s = 0.5;
	CHECK(!fails(1000, 0).ever);
	growth.stepped = true;
	CHECK(fails(1000, 0).ever);
}

/* The first high point that doesn't fit ends it. */
TEST(high_points_count)
{
	grow(line, 50, 50);
	struct forecast f = fails(300, 0);
	CHECK(within(148, f.x, 152) && within(145, f.low, 150) && within(150, f.high, 155));
	grow(line, 0, 50); /* every other step is low: that helps nobody */
	f = fails(300, 0);
	CHECK(within(148, f.x, 153) && within(145, f.low, 151) && within(150, f.high, 160));
}

/* One step in fifty rises by 100, the others by 10: if such a one comes at all before the others fail is a matter of
 * luck. */
TEST(rare_high_points_make_it_uncertain)
{
	grow(line, 10, 10);
	highs[30] += 90 * MIB;
	highs[80] += 90 * MIB;
	struct forecast f = fails(400, 0);
	CHECK(within(200, f.low, 215) && within(270, f.high, 297) && within(200, f.x, 291));
}

/* The limit may be lower by up to 200: each amount is as likely. */
TEST(doubt_makes_intervals_wider)
{
	grow(line, 0, 0);
	struct forecast sure = fails(500, 0), f = fails(500, 200);
	CHECK(within(390, sure.low, 400) && within(400, sure.high, 410));
	CHECK(within(205, f.low, 235) && within(365, f.high, 405) && within(220, f.x, 400));
}

TEST(curves_end_where_they_meet_the_limit)
{
	grow(parabola, 0, 0);
	CHECK_EQ(growth.kind, GROWTH_ACCELERATING);
	struct forecast f = fails(500, 0);
	CHECK(f.ever && within(190, f.x, 210));
	CHECK(f.low <= 200 && f.high >= 200 && within(180, f.low, 200) && within(200, f.high, 230));
}

/* Or within a tenth, which a guess is about. */
TEST(what_is_over_the_limit_fails_now)
{
	grow(line, 50, 50);
	struct forecast f = fails(190, 0);
	CHECK(f.ever && f.low == 100 && within(100, f.x, 110) && f.high == f.x);
	f = fails(50, 0);
	CHECK(f.ever && f.low == 100 && within(100, f.x, 110) && f.high == f.x);
}

TEST(some_things_never_end)
{
	grow(flat, 50, 50);
	CHECK(!fails(1000, 0).ever && isinf(fails(1000, 0).x) && isinf(fails(1000, 0).low) &&
	      isinf(fails(1000, 0).high));
	grow(line, 0, 0);
	CHECK(fails(100 + 5000, 0).ever);
	CHECK(!fails(100 + 20000, 0).ever && isinf(fails(100 + 20000, 0).x)); /* 200 times what was seen */
}

/* What was before growth began says nothing of how far steps rise, nor do those of long ago. */
TEST(high_points_of_the_start_do_not_count)
{
	for (int late = 0; late < 2; late++) {
		grow(line, 10, 10);
		for (int i = 0; i < 30; i++)
			highs[i + 70 * late] += 400 * MIB;
		struct forecast f = fails(600, 0);
		CHECK(late ? f.x < 200 : within(470, f.x, 510)); /* 37 of the last 64 do, or none */
	}
}

TEST(how_it_is_said)
{
	char *text = forecast_text(1003.4, 965, 1040.2), *open = forecast_text(1003.4, 965, INFINITY);
	CHECK(text && !strcmp(text, "1003 (95 %: 965 to 1040)"));
	CHECK(open && !strcmp(open, "1003 (95 %: 965 or later)"));
	free(text);
	free(open);
}

TEST_MAIN
