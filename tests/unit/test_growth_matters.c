/* Where growth begins to matter: the one measure of report, leaks and live. */
#include "analyzer/diagnosis/growth/growth_matters.h"
#include "tests/unit/test.h"

#define MIB 1048576.0

static struct growth_scale scale(double heap_mib, double bound_mib, double leaking_mib)
{
	return (struct growth_scale){ (uint64_t)(heap_mib * MIB), (uint64_t)(bound_mib * MIB), leaking_mib * MIB };
}

TEST(it_has_cost_8_mib_and_a_twentieth_of_the_peak)
{
	struct growth_scale s = scale(100, 10000, 0);
	CHECK(growth_matters(&s, 8 * MIB, false) && !growth_matters(&s, 8 * MIB - 1, false));
	s = scale(200, 10000, 0);
	CHECK(growth_matters(&s, 10 * MIB, false) && !growth_matters(&s, 10 * MIB - 1, false));
	s.heap_peak = 0; /* nobody knows */
	CHECK(growth_matters(&s, 8 * MIB, false));
}

TEST(or_a_twentieth_of_what_there_is)
{
	struct growth_scale s = scale(1000, 100, 0);
	CHECK(growth_matters(&s, 5 * MIB, false) && !growth_matters(&s, 5 * MIB - 1, false));
	s.bound = UINT64_MAX;
	CHECK(!growth_matters(&s, 5 * MIB, false) && growth_matters(&s, 50 * MIB, false));
}

TEST(or_it_will_be_all)
{
	struct growth_scale s = scale(1000, 100000, 0);
	CHECK(growth_matters(&s, 1, true));
	s.leaking = 20 * MIB;
	CHECK(growth_matters(&s, MIB, true) && !growth_matters(&s, MIB - 1, true)); /* it is of something else */
}

/* 300 KiB are nothing of 100 MiB, but most of a small program. */
TEST(what_is_noise_is_less_than_1_mib_and_no_part_of_the_peak)
{
	struct growth_scale s = scale(100, 10000, 0);
	CHECK(growth_is_noise(&s, MIB - 1) && !growth_is_noise(&s, MIB));
	s = scale(2, 10000, 0);
	CHECK(!growth_is_noise(&s, 0.3 * MIB) && growth_is_noise(&s, 0.09 * MIB));
}

/* Ten lines of 1 MiB each cost as much as one of 10. */
TEST(what_many_lines_leak_counts_together)
{
	struct growth_scale s = scale(100, 10000, 10);
	CHECK(growth_matters(&s, MIB, false) && growth_matters(&s, 0.5 * MIB, false));
	CHECK(!growth_matters(&s, 0.4 * MIB, false)); /* a small part of it */
	s.leaking = 7 * MIB;
	CHECK(!growth_matters(&s, MIB, false));
}

TEST_MAIN
