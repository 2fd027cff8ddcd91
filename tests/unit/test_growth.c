/* Growth against series whose truth is known: every statistical check is over many seeds, and asks for a rate. */
#include "analyzer/timeline/growth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0
#define GIB 1073741824.0

enum { MOST = 2000, SEEDS = 100 };

static double xs[MOST], ys[MOST];
static uint64_t seed;

static double uniform(void)
{
	return random_uniform(&seed);
}
static double normal(void)
{
	return random_normal(&seed);
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

static double flat(double x)
{
	(void)x;
	return 100;
}
static double straight(double x)
{
	return 100 + 60 * x;
}
static double parabola(double x)
{
	return 100 + 60 * x * x;
}
static double exponential(double x)
{
	return 100 + 10 * exp(3 * x);
}
static double steep(double x)
{
	return 100 + 10 * exp(x / 0.3);
}
static double cache(double x)
{
	return 100 + 60 * (1 - (1 - x) * (1 - x) * (1 - x));
}
static double step(double x)
{
	return x < 0.3 ? 100 : 160;
}
static double loading(double x)
{
	return x < 0.5 ? 100 : x < 0.55 ? 150 : 160;
}
static double saw(double x)
{
	return 100 + (int)(x * 31) % 4 * 10;
}
static double falling(double x)
{
	return 100 - 50 * x;
}
static double import(double x)
{
	return x < 0.6 ? 10 + 60 * x / 0.6 : 70 + x;
}
static double rare(double x)
{
	return x < 0.3 ? 100 : x < 0.9 ? 130 : 160;
}
static double tiny(double x)
{
	return 100 + 0.01 * x;
}
static double late(double x)
{
	return x < 0.4 ? 100 : 100 + 60 * (x - 0.4);
}
static double started(double x)
{
	return x < 0.08 ? 1000 * x : 100 + 30 * x;
}
static double torn_down(double x)
{
	return x < 0.95 ? 100 + 60 * x : 5;
}
static double bit_by_bit(double x)
{
	return x < 0.93 ? 100 + 60 * x : 156 - 150 * (x - 0.93) / 0.07;
}
static double slower(double x)
{
	return x < 0.7 ? 100 + 60 * x : 142 + 40 * (x - 0.7);
}

TEST(growth_that_losses_can_have_made_is_none)
{
	struct growth g = of(straight, 60), little = g, much = g, all = g;
	growth_doubt(&little, 0.05 * g.bytes);
	CHECK(little.kind == GROWTH_LINEAR && little.certainty == g.certainty && !growth_is_doubtful(&little));
	growth_doubt(&much, 0.5 * g.bytes);
	CHECK(much.kind == GROWTH_LINEAR && much.certainty == CERTAINTY_LOW && growth_is_doubtful(&much));
	growth_doubt(&all, 1.1 * g.bytes);
	CHECK(all.kind == GROWTH_NONE && !growth_is_steady(&all) && all.unproven == g.bytes);
}

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
	CHECK(g.from_x > 60 && g.from_x < 100 && g.since_x == g.from_x);
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
	CHECK_EQ(of(bit_by_bit, 101).kind, GROWTH_LINEAR);
}

/* Epochs whose end is anywhere in the run, and a collector of cycles that comes now and then. */
TEST(what_falls_and_rises_again_is_no_growth)
{
	for (double teeth = 1.04; teeth < 6; teeth += 0.02) {
		for (size_t i = 0; i < 300; i++) {
			xs[i] = (double)i;
			ys[i] = fmod((double)i, 300 / teeth) * MIB;
		}
		CHECK(!growth_is_steady((struct growth[]){ growth_of(xs, ys, 300) }));
	}
}

TEST(all_that_grew_is_counted_if_the_rate_has_changed_a_little)
{
	struct growth g = of(slower, 101);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 40 * MIB / 200) < 0.05 * MIB && g.from_x > 100);
	CHECK(g.since_x < 1 && fabs(g.bytes - 54 * MIB) < 2 * MIB);
}

/* What is kept is of any size, so that it bends by chance. */
TEST(a_random_walk_grows_from_its_beginning)
{
	int whole = 0;
	for (int s = 0; s < SEEDS; s++) {
		double sum = 0;
		seed = 1234567u * (uint64_t)(s + 1);
		for (size_t i = 0; i < 300; i++) {
			xs[i] = (double)i;
			ys[i] = sum += 2 * MIB * uniform();
		}
		struct growth g = growth_of(xs, ys, 300);
		whole += growth_is_steady(&g) && fabs(g.bytes - sum) < 0.3 * sum;
	}
	CHECK(whole >= 95);
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

/* half as fast from the middle on */
static double much_slower(double x)
{
	return 100 + (x < 0.5 ? 80 * x : 40 + 40 * (x - 0.5));
}

/* What ends memory is how fast it grows now. */
TEST(growth_that_slowed_down_goes_on_at_its_last_rate)
{
	struct growth g = of(much_slower, 101);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 40 * MIB / 200) < 0.02 * 40 * MIB / 200);
	CHECK(g.from_x >= 80 && g.from_x <= 120);
	CHECK(fabs(g.bytes - 60 * MIB) < 0.6 * MIB && g.since_x == 0); /* all of it is the same growth */
}

TEST(accelerating_growth_is_told_by_its_rate_at_the_end)
{
	struct growth g = of(parabola, 31);
	CHECK(fabs(g.rate - 2 * MIB) < 0.02 * MIB);
	CHECK(fabs(g.bytes - 60 * MIB) < 0.6 * MIB);
	CHECK(g.acceleration_error > 0 && g.acceleration_error < 0.1 * g.acceleration);
	g = of(exponential, 31);
	/* exponentials are tried at few rates */
	CHECK(fabs(g.rate / MIB - 30 * exp(3) / 60) < 0.15 * 30 * exp(3) / 60);
	g = of(steep, 31);
	/* this one is one of them */
	CHECK(fabs(g.rate / MIB - 10 / 0.3 * exp(1 / 0.3) / 60) < 0.01 * 10 / 0.3 * exp(1 / 0.3) / 60);
	CHECK_EQ(of(straight, 31).acceleration, 0);
}

TEST(steady_is_what_meets_any_limit)
{
	for (int kind = GROWTH_NONE; kind <= GROWTH_JUMP; kind++)
		CHECK(growth_is_steady(&(struct growth){ .kind = kind }) ==
		      (kind == GROWTH_LINEAR || kind == GROWTH_ACCELERATING));
}

TEST(jumps_are_as_high_as_they_are)
{
	CHECK(fabs(of(step, 31).bytes - 60 * MIB) < 0.01 * MIB);
	CHECK(fabs(of(rare, 31).bytes - 60 * MIB) < 0.01 * MIB);
	CHECK_EQ(of(step, 31).certainty, CERTAINTY_MEDIUM);
	CHECK_EQ(of(step, 11).kind, GROWTH_JUMP);
	CHECK_EQ(of(step, 11).certainty, CERTAINTY_LOW);
	CHECK_EQ(of(cache, 31).certainty, CERTAINTY_MEDIUM);
}

/* Of what fits but for rounding only the least noise is in doubt, however the rounding hangs together: about 2 * 0.002
 * of what has grown for its rate, times the quantile of Student's. */
TEST(exact_growth_is_known_exactly)
{
	for (double each = 100000; each < 1e8; each *= 1.7) {
		for (size_t i = 0; i < 50; i++) {
			xs[i] = (double)i;
			ys[i] = 123456789 + (double)i * floor(each);
		}
		struct growth g = growth_of(xs, ys, 50);
		CHECK_EQ(g.kind, GROWTH_LINEAR);
		CHECK(fabs(g.rate - floor(each)) < 1);
		CHECK(g.rate_error < 0.004 * g.rate);
	}
}

TEST(the_more_points_the_surer)
{
	CHECK_EQ(of(straight, 5).certainty, CERTAINTY_MEDIUM);
	CHECK_EQ(of(straight, 19).certainty, CERTAINTY_MEDIUM);
	CHECK_EQ(of(straight, 20).certainty, CERTAINTY_HIGH);
	static const double noisy[] = { 100, 108, 105, 113, 109, 120 };
	for (size_t i = 0; i < 6; i++) {
		xs[i] = (double)i;
		ys[i] = noisy[i] * MIB;
	}
	CHECK_EQ(growth_of(xs, ys, 6).kind, GROWTH_LINEAR);
	CHECK_EQ(growth_of(xs, ys, 6).certainty, CERTAINTY_LOW);
}

/* Said of a growth in seconds that lasted for less than one; of a step there is a rate however short it was. */
TEST(growth_of_less_than_a_second_has_no_rate)
{
	static const struct {
		bool stepped;
		double lasted_s;
		bool saw, brief;
	} is[] = { { false, 0.4, false, true }, { false, 0.999, false, true }, { false, 1, true, false },
		   { true, 0.4, false, false }, { true, 2, true, false },      { false, 0, true, false } };
	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		const struct growth g = { .stepped = is[i].stepped, .lasted_s = is[i].lasted_s };
		CHECK_EQ(growth_saw_a_second(&g), is[i].saw);
		CHECK_EQ(growth_is_brief(&g), is[i].brief);
		CHECK(!strcmp(growth_unit(&g), is[i].stepped ? "step" : "second"));
	}
	char *text = growth_brief_text(&(struct growth){ .lasted_s = 0.0712 }, 33.4 * MIB);
	CHECK(!strcmp(text, "33.4 MiB in 0.071 s"));
	free(text);
}

/* Losses take its bytes, and not how long it was looked at. */
TEST(what_losses_can_have_made_keeps_its_time)
{
	struct growth g = of(straight, 20);
	g.stepped = true;
	g.lasted_s = 0.5;
	growth_doubt(&g, g.bytes);
	CHECK(g.kind == GROWTH_NONE && g.unproven > 0 && g.stepped && g.lasted_s == 0.5);
}

/* A page here and there is no leak. */
TEST(little_is_no_growth)
{
	for (size_t i = 0; i < 40; i++) {
		xs[i] = (double)i;
		ys[i] = (double)i * 1600;
	}
	CHECK_EQ(growth_of(xs, ys, 40).kind, GROWTH_NONE);
	for (size_t i = 0; i < 40; i++)
		ys[i] *= 2;
	CHECK_EQ(growth_of(xs, ys, 40).kind, GROWTH_LINEAR);
}

/* More points than are looked at one by one. */
TEST(long_series_keep_their_rate)
{
	for (size_t i = 0; i < MOST; i++) {
		xs[i] = 5 + 3 * (double)i;
		ys[i] = (double)i * MIB + (i % 40 == 7 ? GIB : 0); /* some stick out */
	}
	struct growth g = growth_of(xs, ys, MOST);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK_EQ(g.certainty, CERTAINTY_HIGH);
	CHECK(fabs(g.rate - MIB / 3) < 0.001 * MIB);
	CHECK(g.rate_error < 0.01 * g.rate);
	CHECK(fabs(g.x + g.span - (5 + 3 * (MOST - 1))) < 3 * MOST / 128.0);
	CHECK(fabs(g.bytes - g.rate * (g.x + g.span - g.from_x)) < 0.01 * g.bytes);
}

TEST(moments_that_are_one_say_nothing)
{
	for (size_t i = 0; i < 30; i++) {
		xs[i] = 7;
		ys[i] = (double)i * MIB;
	}
	CHECK_EQ(growth_of(xs, ys, 30).kind, GROWTH_NONE);
}

static double weight_of(const struct growth *g, enum fit_shape shape)
{
	double weight = 0, all = 0;
	for (unsigned i = 0; i < g->shape_count; i++) {
		CHECK(g->shapes[i].weight >= 0);
		all += g->shapes[i].weight;
		weight += g->shapes[i].fit.shape == shape ? g->shapes[i].weight : 0;
	}
	CHECK(fabs(all - 1) < 1e-9);
	return weight;
}

TEST(how_it_goes_on_is_most_likely_as_it_went)
{
	struct growth g = of(straight, 31);
	CHECK_EQ(g.shape_count, 4);
	CHECK(weight_of(&g, FIT_LINE) > 0.5);
	g = of(parabola, 31);
	CHECK(weight_of(&g, FIT_CURVE) > 0.8);
	g = of(steep, 31);
	CHECK(weight_of(&g, FIT_DECAY) > 0.9);
	g = of(straight, 11); /* too few for a place of a bend */
	CHECK_EQ(g.shape_count, 2);
	CHECK(weight_of(&g, FIT_LINE) > 0.5);
	g = of(late, 101); /* since growth began it is a line */
	CHECK(weight_of(&g, FIT_LINE) > 0.5);
	CHECK_EQ(of(flat, 31).shape_count, 0);
}

/* ---- with noise ------------------------------------------------------------------------------------------ */

static void noisy(double (*f)(double x), size_t count, double noise)
{
	for (size_t i = 0; i < count; i++) {
		xs[i] = 2 * (double)i;
		ys[i] = (f((double)i / (double)(count - 1)) + noise * normal()) * MIB;
	}
}

/* Intervals of 95 % hold the truth in about so many of 200 runs; wider ones do no harm. */
TEST(errors_hold_the_truth)
{
	int rates = 0, accelerations = 0, lines = 0, curves = 0;
	double width = 0;
	for (int s = 0; s < 2 * SEEDS; s++) {
		seed = 5150u * (uint64_t)(s + 1);
		noisy(straight, 60, 3);
		struct growth g = growth_of(xs, ys, 60);
		lines += g.kind == GROWTH_LINEAR;
		rates += g.kind == GROWTH_LINEAR && fabs(g.rate - 60 * MIB / 118) <= g.rate_error;
		width += g.kind == GROWTH_LINEAR ? g.rate_error : 0;
		noisy(parabola, 60, 2);
		g = growth_of(xs, ys, 60);
		bool curve = g.kind == GROWTH_ACCELERATING && g.fit.shape == FIT_CURVE;
		curves += curve;
		accelerations += curve && fabs(g.acceleration - 2 * 60 * MIB / 118 / 118) <= g.acceleration_error;
	}
	CHECK(lines > 190 && rates >= 0.91 * lines);
	CHECK(width / lines < 0.035 * MIB); /* least squares alone have 0.022 */
	CHECK(curves > 100 && accelerations >= 0.91 * curves);
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
