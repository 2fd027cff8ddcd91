#include "analyzer/copies.h"
#include "tests/unit/test.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define KIB 1024ull

static const uint64_t model[] = { 4000 * KIB, 16 * KIB, 900 * KIB, 900 * KIB, 16 * KIB, 3600 * KIB, 900 * KIB, 4000 * KIB };
static uint64_t other[64];

static size_t times(double factor)
{
	for (size_t i = 0; i < COUNT(model); i++)
		other[i] = (uint64_t)((double)model[i] * factor);
	return COUNT(model);
}

TEST(the_same_is_a_copy)
{
	CHECK(copies_match(model, COUNT(model), other, times(1)).blocks);
}

TEST(casts_are_copies)
{
	CHECK(copies_match(model, COUNT(model), other, times(2)).blocks);
	CHECK(copies_match(model, COUNT(model), other, times(0.5)).blocks);
	CHECK(!copies_match(model, COUNT(model), other, times(3)).blocks);
	CHECK(!copies_match(model, COUNT(model), other, times(1.4)).blocks);
}

TEST(a_pool_rounds)
{
	size_t n = times(1);
	for (size_t i = 0; i < n; i++)
		other[i] = (other[i] + 511) / 512 * 512 + (i % 2 ? 512 : 0);
	CHECK(copies_match(model, COUNT(model), other, n).blocks);
}

/* A buffer more, and one that only the other has. */
TEST(a_few_blocks_may_differ)
{
	size_t n = 0;
	for (size_t i = 0; i < COUNT(model); i++) {
		if (i == 3)
			other[n++] = 100 * KIB;
		other[n++] = model[i];
	}
	CHECK(copies_match(model, COUNT(model), other, n).blocks);
}

TEST(other_sizes_are_no_copy)
{
	size_t n = times(1);
	other[0] = 1000 * KIB;
	other[5] = 6600 * KIB;
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
}

TEST(another_order_is_no_copy)
{
	size_t n = times(1);
	for (size_t i = 0; i < n; i++)
		other[i] = model[(i * 3 + 2) % n];
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
}

/* Batches, pages of a cache: one size, however often. */
TEST(equal_blocks_are_no_copy)
{
	for (size_t i = 0; i < 40; i++)
		other[i] = 2048 * KIB;
	CHECK(!copies_match(other, 20, other + 20, 20).blocks);
	CHECK_EQ(copies_period(other, 40), 0);
}

TEST(few_blocks_are_no_copy)
{
	CHECK(!copies_match(model, 4, model, 4).blocks);
}

TEST(layers_are_no_copies)
{
	for (size_t i = 0; i < 64; i++)
		other[i] = (1 + i % 8) * 100 * KIB;
	CHECK_EQ(copies_period(other, 64), 0);
}

TEST(a_model_made_twice_by_one_call)
{
	for (size_t i = 0; i < 60; i++)
		other[i] = (i % 30 == 0 ? 4000 : (1 + i % 30 % 8) * 100) * KIB;
	CHECK_EQ(copies_period(other, 60), 30);
	CHECK_EQ(copies_period(other, 59), 0);
	CHECK_EQ(copies_period(other, 30), 0);
	CHECK_EQ(copies_period(other, 0), 0);
}

TEST(what_is_too_small_is_counted)
{
	struct copy_block blocks[] = { { .size = 1023, .order = 1, .stack = 1 }, { .size = 512, .order = 2, .stack = 1 } };
	struct copies c;
	CHECK_EQ(copies_find(&c, NULL, blocks, COUNT(blocks), 1024, 1), 0);
	CHECK_EQ(c.left_blocks, 2);
	CHECK_EQ(c.left_bytes, 1023 + 512);
	copies_fini(&c);
}

TEST_MAIN
