/* What the rest of a step asks for, as earlier ones went. */
#include "analyzer/timeline/step_shape.h"
#include "tests/unit/test.h"

static struct step_shapes *shapes;
static uint64_t live;

static void take(uint64_t bytes)
{
	step_shapes_allocation(shapes, live, live + bytes);
	live += bytes;
}

/* 1000 bytes are there; `blocks` blocks of each layer are kept until the end, one more is freed at once. */
static void step_of(unsigned blocks, uint64_t bytes)
{
	step_shapes_begin(shapes, live = 1000);
	for (unsigned i = 0; i < blocks; i++) {
		take(bytes);
		take(bytes / 2);
		live -= bytes / 2;
	}
	live = 1000;
}

static void begin_as(unsigned blocks, uint64_t bytes)
{
	step_shapes_begin(shapes, live = 1000);
	for (unsigned i = 0; i < blocks; i++) {
		take(bytes);
		take(bytes / 2);
		live -= bytes / 2;
	}
}

TEST(a_step_like_the_others)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 5; i++)
		step_of(20, 100);
	begin_as(5, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 0, false), 15 * 100 + 50);
	begin_as(20, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 0, false), STEP_SHAPE_UNKNOWN); /* as long as the others were */
	step_shapes_free(shapes);
}

/* Sixteen steps of as many blocks, one more or less: behind so many nothing but the request was asked for. Where steps
 * differ nobody knows. */
TEST(a_step_that_is_over)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 16; i++)
		step_of(20 + (i == 7), 100);
	begin_as(21, 300);
	CHECK_EQ(step_shapes_rise(shapes, live, 70, false), 70);
	begin_as(24, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 70, false), STEP_SHAPE_UNKNOWN);
	step_shapes_free(shapes);
	shapes = step_shapes_new();
	for (int i = 0; i < 16; i++)
		step_of(18 + i % 3, 100);
	begin_as(20, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 70, false), STEP_SHAPE_UNKNOWN);
	step_shapes_free(shapes);
}

/* Three times the length: what is still to come is three times as much. */
TEST(a_longer_input)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 20; i++)
		step_of(20, 100);
	begin_as(5, 300);
	CHECK_EQ(step_shapes_rise(shapes, live, 0, false), 3 * (15 * 100 + 50));
	CHECK_EQ(step_shapes_rise_unscaled(shapes, live, 0, false), 15 * 100 + 50);
	step_shapes_free(shapes);
}

/* Each step begins with the gradients of the one before, and drops them: it has risen by what is above that. */
TEST(a_step_that_drops_what_was_there)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 6; i++) {
		step_shapes_begin(shapes, 9000);
		live = 1000;
		for (unsigned k = 0; k < 20; k++)
			take(100);
	}
	step_shapes_begin(shapes, 9000);
	live = 1000;
	for (unsigned k = 0; k < 5; k++)
		take(300);
	CHECK_EQ(step_shapes_rise(shapes, live, 300, false), 3 * 15 * 100);
	step_shapes_free(shapes);
}

/* Nothing of it is there yet: the request says how long it is. Steps that nobody marked begin with an allocation, which
 * failed. */
TEST(a_request_that_begins_a_step)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 5; i++)
		step_of(20, 100);
	begin_as(0, 0);
	CHECK_EQ(step_shapes_rise(shapes, live, 100, false), 20 * 100 + 50);
	CHECK_EQ(step_shapes_rise(shapes, live, 700, false), 7 * (20 * 100 + 50));
	step_of(20, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 700, false), STEP_SHAPE_UNKNOWN);
	CHECK_EQ(step_shapes_rise(shapes, live, 700, true), 7 * (20 * 100 + 50));
	begin_as(5, 100); /* in the middle of a step it is what comes there */
	CHECK_EQ(step_shapes_rise(shapes, live, 700, true), 15 * 100 + 50);
	step_shapes_free(shapes);
}

/* A few bytes come first: they say nothing of a large request in their place. */
TEST(a_little_at_the_beginning_is_no_scale)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 5; i++) {
		begin_as(0, 0);
		take(1);
		for (int k = 0; k < 5; k++)
			take(1000);
		live -= 5001;
	}
	begin_as(0, 0);
	CHECK_EQ(step_shapes_rise(shapes, live, 1000000, false), 5001);
	step_shapes_free(shapes);
}

/* More allocations than there are points: what one stands for is a little more or less. */
TEST(a_long_step)
{
	shapes = step_shapes_new();
	for (int i = 0; i < 3; i++)
		step_of(10000, 100);
	begin_as(2500, 100);
	uint64_t rise = step_shapes_rise(shapes, live, 0, false);
	CHECK(rise > 7500 * 100 * 0.97 && rise < 7500 * 100 * 1.03);
	step_shapes_free(shapes);
}

TEST(a_first_step)
{
	shapes = step_shapes_new();
	CHECK_EQ(step_shapes_rise(shapes, 0, 0, false), STEP_SHAPE_UNKNOWN);
	begin_as(5, 100);
	CHECK_EQ(step_shapes_rise(shapes, live, 0, false), STEP_SHAPE_UNKNOWN);
	step_shapes_free(shapes);
}

TEST_MAIN
