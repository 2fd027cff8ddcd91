#include "analyzer/diagnosis/copies.h"
#include "tests/unit/test.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define KIB      1024ull

static const uint64_t model[] = { 4000 * KIB, 16 * KIB,   900 * KIB, 900 * KIB,
				  16 * KIB,   3600 * KIB, 900 * KIB, 4000 * KIB };
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

/* A checkpoint is loaded in the order of its file. */
TEST(another_order_is_a_copy)
{
	size_t n = times(1);
	for (size_t i = 0; i < n; i++)
		other[i] = model[(i * 3 + 2) % n];
	CHECK_EQ(copies_match(model, COUNT(model), other, n).blocks, n);
	other[1] = other[0]; /* but each as often */
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
}

/* A pool leaves a block of several MiB up to 1 MiB larger than it was asked for, rather than to split it. */
TEST(blocks_that_were_not_split)
{
	size_t n = times(1);
	other[0] += 1000 * KIB;
	CHECK_EQ(copies_match(model, COUNT(model), other, n).blocks, n);
	other[0] += 25 * KIB;
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
	n = times(1);
	other[2] += 400 * KIB; /* of one below 1 MiB it would be another size */
	other[3] += 400 * KIB;
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
	for (size_t i = 0; i < 12; i++)
		other[i] = (3000 + 300 * (i % 4)) * KIB, other[12 + i] = other[i] + (i < 4 ? 500 * KIB : 0);
	CHECK_EQ(copies_match(other, 12, other + 12, 12).blocks, 12);
	other[16] += 500 * KIB; /* a third of them at most */
	CHECK(!copies_match(other, 12, other + 12, 12).blocks);
}

/* What was put together from shards has several times their sizes, in each block. */
TEST(shards_and_the_whole)
{
	size_t n = times(4);
	CHECK_EQ(copies_match(model, COUNT(model), other, n).factor, 4);
	other[1] += 64 * KIB; /* more than a tenth of the blocks, though few bytes: a model of another width */
	CHECK(!copies_match(model, COUNT(model), other, n).blocks);
	CHECK_EQ(copies_match(model, COUNT(model), other, times(16)).factor, 16);
	CHECK(!copies_match(model, COUNT(model), other, times(17)).blocks);
}

/* Batches, pages of a cache: one size, however often. */
TEST(equal_blocks_are_no_copy)
{
	for (size_t i = 0; i < 40; i++)
		other[i] = 2048 * KIB;
	CHECK(!copies_match(other, 20, other + 20, 20).blocks);
	CHECK_EQ(copies_period(other, 40, 1, true), 0);
}

TEST(few_blocks_are_no_copy)
{
	CHECK(!copies_match(model, 4, model, 4).blocks);
}

TEST(layers_are_no_copies)
{
	for (size_t i = 0; i < 64; i++)
		other[i] = (1 + i % 8) * 100 * KIB;
	CHECK_EQ(copies_period(other, 64, 0, true), 0);
}

TEST(a_model_made_twice_by_one_call)
{
	for (size_t i = 0; i < 60; i++)
		other[i] = (i % 30 == 0 ? 4000 : (1 + i % 30 % 8) * 100) * KIB;
	CHECK_EQ(copies_period(other, 60, 0, false), 30);
	CHECK_EQ(copies_period(other, 59, 0, false), 0);
	CHECK_EQ(copies_period(other, 30, 0, false), 0);
	CHECK_EQ(copies_period(other, 0, 0, false), 0);
}

/* It failed in the middle of one. */
TEST(the_last_one_may_be_cut_off)
{
	for (size_t i = 0; i < 64; i++)
		other[i] = (i % 30 == 0 ? 4000 : (1 + i % 30 % 8) * 100) * KIB;
	CHECK_EQ(copies_period(other, 60, 0, true), 30);
	CHECK_EQ(copies_period(other, 61, 0, true), 30);
	CHECK_EQ(copies_period(other, 61, 0, false), 0);
	CHECK_EQ(copies_period(other, 36, 0, true), 30);
	CHECK_EQ(copies_period(other, 35, 0, true), 0); /* five blocks are a coincidence */
}

/* Of what a pool leaves unsplit a block of hardly more than a MiB may have one more: it is at the same place all the
 * same. The period is the state, and no such block makes all states but the last one a copy. */
TEST(a_period_of_blocks_that_were_not_split)
{
	uint64_t states[200];
	for (size_t i = 0; i < 200; i++)
		states[i] = (i % 30 == 0 && i % 4 == 2 ? 2000 : 1100 + 300 * (i % 30)) * KIB;
	CHECK_EQ(copies_period(states, 200, 0, true), 30);
}

/* Five blocks are enough where they are large, and a pool did not split some of them. */
TEST(a_few_large_blocks_again_and_again)
{
	for (size_t i = 0; i < 23; i++)
		other[i] = (60000 + 2000 * (i % 5) + (i % 7 == 6 ? 800 : 0)) * KIB;
	CHECK_EQ(copies_period(other, 20, 310000 * KIB, false), 5);
	CHECK_EQ(copies_period(other, 20, 330000 * KIB, false), 0);
	CHECK_EQ(copies_period(other, 20, 0, false), 0);
	CHECK_EQ(copies_period(other, 23, 300000 * KIB, true), 5);
	CHECK_EQ(copies_period(other, 23, 300000 * KIB, false), 0);
	for (size_t i = 0; i < 20; i++)
		other[i] = (60000 + 2000 * (i % 4)) * KIB;
	CHECK_EQ(copies_period(other, 20, 1, false), 0); /* four are not */
}

/* ---- edges ------------------------------------------------------------------------------------------------- */

static struct copy_match match(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
	struct copy_match there = copies_match(a, a_count, b, b_count), back = copies_match(b, b_count, a, a_count);
	CHECK_EQ(there.blocks, back.blocks);
	return there;
}

TEST(a_match_is_all_its_blocks)
{
	struct copy_match m = match(model, COUNT(model), other, times(2));
	uint64_t sum = 0;
	for (size_t i = 0; i < COUNT(model); i++)
		sum += model[i];
	CHECK_EQ(m.blocks, COUNT(model));
	CHECK_EQ(m.bytes, sum);
	CHECK_EQ(m.factor, 2);
	CHECK_EQ(copies_match(model, COUNT(model), other, times(1)).factor, 1);
}

TEST(six_blocks_of_three_sizes_are_a_copy)
{
	static const uint64_t six[] = { 900 * KIB, 100 * KIB, 300 * KIB, 900 * KIB, 100 * KIB, 300 * KIB };
	static const uint64_t two[] = { 900 * KIB, 100 * KIB, 900 * KIB, 900 * KIB, 100 * KIB, 900 * KIB, 900 * KIB };
	CHECK_EQ(match(six, 6, six, 6).blocks, 6);
	CHECK_EQ(match(six, 5, six, 5).blocks, 0);
	CHECK_EQ(match(two, 7, two, 7).blocks, 0);
}

/* A pool rounds by less than 1 KiB, and that must be little of the block. */
TEST(sizes_that_a_pool_rounded)
{
	size_t n = times(1);
	other[0] += 1023;
	CHECK_EQ(match(model, COUNT(model), other, n).blocks, COUNT(model));
	other[0] -= 2046;
	CHECK_EQ(match(model, COUNT(model), other, n).blocks, COUNT(model));
	other[2] += 1024; /* other blocks: they are an eighth of all */
	other[3] += 1024;
	CHECK_EQ(match(model, COUNT(model), other, n).blocks, 0);
	uint64_t small[] = { 4096, 4608, 5120, 4096, 4608, 5120 }, rounded[6];
	for (size_t i = 0; i < 6; i++)
		rounded[i] = small[i] + 500;
	rounded[0] = rounded[3] = 4096 + 512; /* an eighth of it is too much */
	CHECK_EQ(match(small, 6, rounded, 6).blocks, 0);
	for (size_t i = 0; i < 6; i++)
		rounded[i] = small[i] + 64;
	CHECK_EQ(match(small, 6, rounded, 6).blocks, 6);
}

TEST(nineteen_twentieths_of_the_bytes_are_a_copy)
{
	uint64_t a[20], b[20], sum = 0;
	for (size_t i = 0; i < 19; i++)
		sum += a[i] = b[i] = (900 + 40 * (i % 3)) * KIB;
	a[19] = sum / 19 + 40 * KIB; /* a little more than a twentieth of all */
	b[19] = a[19] + 2 * KIB;
	CHECK_EQ(match(a, 20, b, 20).blocks, 0);
	a[19] = sum / 19 - 40 * KIB; /* a little less */
	b[19] = a[19] + 2 * KIB;
	CHECK_EQ(match(a, 20, b, 20).blocks, 19);
}

TEST(how_often_and_how_long_one_call_repeats)
{
	for (size_t i = 0; i < 48; i++)
		other[i] = (i % 24 == 0 ? 4000 : 100 + i % 24 % 5) * KIB;
	CHECK_EQ(copies_period(other, 48, 0, false), 24);
	for (size_t i = 0; i < 46; i++)
		other[i] = (i % 23 == 0 ? 4000 : 100 + i % 23 % 5) * KIB;
	CHECK_EQ(copies_period(other, 46, 0, false), 0);
	for (size_t i = 0; i < 48; i++)
		other[i] = (i % 24 == 0 ? 4000 : 100) * KIB; /* of two sizes */
	CHECK_EQ(copies_period(other, 48, 0, false), 0);
	uint64_t many[24 * (COPY_OWNERS + 1)];
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (i % 24 == 0 ? 4000 : 100 + i % 24 % 5) * KIB;
	CHECK_EQ(copies_period(many, 24 * COPY_OWNERS, 0, false), 24);
	CHECK_EQ(copies_period(many, COUNT(many), 0, false), 0); /* a batch, rather */
}

TEST(what_is_too_small_is_counted)
{
	struct copy_block blocks[] = { { .size = 1023, .order = 1, .stack = 1 },
				       { .size = 512, .order = 2, .stack = 1 } };
	struct copies c;
	CHECK_EQ(copies_find(&c, NULL, blocks, COUNT(blocks), 1024, 1, NULL, 0), 0);
	CHECK_EQ(c.left_blocks, 2);
	CHECK_EQ(c.left_bytes, 1023 + 512);
	copies_fini(&c);
}

TEST_MAIN
