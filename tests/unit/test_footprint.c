/* Where blocks of a heap ever lay. */
#include "analyzer/model/heap_footprint.h"
#include "tests/unit/test.h"

#define MIB (1ull << 20)

TEST(addresses_count_once)
{
	struct heap_footprint f = { 0 };
	for (int round = 0; round < 3; round++)
		for (uint64_t at = 0; at < 100 * MIB; at += 4096) {
			heap_footprint_move(&f, 0x7f0000000000 + at, 4000, 1);
			if (round < 2)
				heap_footprint_move(&f, 0x7f0000000000 + at, 4000, -1);
		}
	CHECK_EQ(f.bytes, 100 * MIB);
	CHECK_EQ(f.live, 100 * MIB / 4096 * 4000);
	heap_footprint_fini(&f);
}

TEST(blocks_across_parts)
{
	struct heap_footprint f = { 0 };
	heap_footprint_move(&f, 63 * MIB, 130 * MIB, 1); /* 63 to 192, in four words */
	CHECK_EQ(f.bytes, 130 * MIB);
	heap_footprint_move(&f, 192 * MIB, 1, 1);
	CHECK_EQ(f.bytes, 130 * MIB);
	heap_footprint_move(&f, 10 * MIB - 1, 2, 1);
	CHECK_EQ(f.bytes, 132 * MIB);
	heap_footprint_fini(&f);
}

TEST(mappings_of_their_own_are_left_out)
{
	struct heap_footprint f = { 0 };
	heap_footprint_move(&f, 0x7f0000000010, 4 * MIB, 1);
	CHECK_EQ(f.bytes + f.live, 0);
	heap_footprint_fini(&f);
}

TEST(copies_are_apart)
{
	struct heap_footprint f = { 0 }, child;
	for (uint64_t i = 0; i < 1000; i++)
		heap_footprint_move(&f, i * 1024 * MIB, 16, 1);
	heap_footprint_copy(&child, &f);
	heap_footprint_move(&child, 5 * MIB, 16, 1);
	CHECK_EQ(f.bytes, 1000 * MIB);
	CHECK_EQ(child.bytes, 1001 * MIB);
	heap_footprint_fini(&f);
	heap_footprint_fini(&child);
}

/* Sizes and addresses of a damaged trace take neither memory nor time without bound. */
TEST(nonsense_is_bounded)
{
	struct heap_footprint f = { 0 };
	heap_footprint_move(&f, UINT64_MAX - 10, 1ull << 47, 1);
	heap_footprint_move(&f, 3, 1ull << 47, 1);
	for (uint64_t i = 0; i < 2000000; i++)
		heap_footprint_move(&f, (i * 0x9E3779B97F4A7C15ull) >> 8, 16, 1);
	CHECK(f.unknown);
	CHECK(f.mask <= 1u << 19);
	heap_footprint_fini(&f);
}

TEST_MAIN
