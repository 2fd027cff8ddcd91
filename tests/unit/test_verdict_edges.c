/* Where the rules of verdicts change their minds: each figure on both sides of its edge, and what they say then. */
#include "tests/unit/verdicts.h"

/* 24 GiB, 1 GiB asked, 0.2 free, a pool without holes: short by 0.8 GiB. 5 % of it are 1.2 GiB. */
static void short_of_800_mib(void)
{
	begin(24, 1, 0.2, 20, 20);
}

static bool in(const struct verdict *list, size_t count, enum verdict_kind kind, const char *part)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].kind == kind)
			return says(list[i].evidence, part);
	printf("# no such verdict\n");
	return false;
}

static bool ruled_out_since(enum verdict_kind kind, const char *part)
{
	return in(found.ruled_out, found.ruled_out_count, kind, part);
}

static bool unknown(enum verdict_kind kind)
{
	for (size_t i = 0; i < found.unknown_count; i++)
		if (found.unknown[i].kind == kind)
			return true;
	return false;
}

static bool nothing(enum verdict_kind kind)
{
	return !held(kind) && !out(kind) && !unknown(kind);
}

/* Asked once more: does it hold now? */
static bool now(enum verdict_kind kind)
{
	judge();
	return held(kind) != NULL;
}

static bool lacks(const char *text, const char *part)
{
	return text && !strstr(text, part);
}

static enum growth_certainty certainty(enum verdict_kind kind)
{
	return held(kind) ? verdict_certainty(held(kind)->confidence) : CERTAINTY_LOW;
}

/* ---- what is short --------------------------------------------------------------------------------------- */

TEST(a_cause_is_a_twentieth_of_the_device)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 1.21);
	CHECK(now(VERDICT_LEAK));
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 1.19);
	CHECK(!now(VERDICT_LEAK) && ruled_out_since(VERDICT_LEAK, "is not what was missing"));
	growths[0].bytes = (uint64_t)(0.05 * (double)device.total);
	CHECK(now(VERDICT_LEAK));
	growths[0].bytes--;
	CHECK(!now(VERDICT_LEAK));
}

TEST(a_cause_is_all_that_was_missing)
{
	begin(24, 4, 0.5, 20, 20);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 3.5);
	CHECK(now(VERDICT_LEAK));
	growths[0].bytes--;
	CHECK(!now(VERDICT_LEAK) && held(VERDICT_CAPACITY));
}

TEST(shortage_is_a_range_where_the_pool_has_unused_memory)
{
	begin(24, 5, 0.5, 18, 18.5);
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "short by 4.00 GiB to 4.50 GiB"));
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(4.5));
	begin(24, 5, 0.5, 18.42, 18.5); /* less than 2 % between them */
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "short by 4.50 GiB with"));
}

/* What the pool asks the driver for may be more than it was asked for. */
TEST(a_block_is_larger_than_the_request)
{
	short_of_800_mib();
	device.request.block_bytes = G(2);
	judge();
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(2) - G(0.2));
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "asked 1.00 GiB"));
	CHECK(ruled_out_since(VERDICT_LIMIT, "2.00 GiB asked for"));
	device.request.block_bytes = G(0.5); /* not told */
	judge();
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(1) - G(0.2));
}

TEST(what_was_free_must_be_known)
{
	short_of_800_mib();
	device.free = EVIDENCE_UNKNOWN;
	judge();
	CHECK(unknown(VERDICT_CAPACITY) && nothing(VERDICT_LIMIT));
	short_of_800_mib();
	device.total = EVIDENCE_UNKNOWN;
	judge();
	CHECK(unknown(VERDICT_CAPACITY));
	begin(24, 1, 2, 20, 20); /* refused although it was free */
	judge();
	CHECK(unknown(VERDICT_CAPACITY) && out(VERDICT_FRAGMENTATION));
}

TEST(certainty_of_capacity)
{
	short_of_800_mib();
	judge();
	double best = held(VERDICT_CAPACITY)->confidence;
	CHECK(best <= 1);
	device.growth_known = false;
	judge();
	CHECK(held(VERDICT_CAPACITY)->confidence < best && certainty(VERDICT_CAPACITY) == CERTAINTY_HIGH);
	CHECK(unknown(VERDICT_LEAK));
	device.neighbours_known = false;
	judge();
	CHECK_EQ(certainty(VERDICT_CAPACITY), CERTAINTY_MEDIUM);
	device.explained = true; /* all that there is, is ours or free */
	judge();
	CHECK_EQ(certainty(VERDICT_CAPACITY), CERTAINTY_HIGH);
}

/* ---- limit ----------------------------------------------------------------------------------------------- */

TEST(a_cap_leaves_less_than_is_free)
{
	begin(24, 1, 14, 9.2, 9.5);
	device.request.limit_bytes = G(10);
	judge(); /* the driver refused something, too */
	CHECK(ruled_out_since(VERDICT_LIMIT, "device that was full"));
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "free 512.0 MiB"));
	begin(24, 1, 0.2, 9.2, 9.5);
	device.request.limit_bytes = G(20);
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "free 204.8 MiB"));
}

TEST(a_limit_is_met_where_what_was_asked_for_is_free)
{
	begin(24, 1, 1, 9.5, 9.5);
	device.request.driver_failures = 0;
	CHECK(now(VERDICT_LIMIT));
	neighbour(0, 200, 13, 0); /* whoever has the rest */
	judge();
	CHECK(only(VERDICT_LIMIT) && nothing(VERDICT_OTHER_PROCESS) && nothing(VERDICT_FRAGMENTATION));
	device.free--;
	judge();
	CHECK(nothing(VERDICT_LIMIT));
	device.request.limit_bytes = device.total; /* no cap at all */
	judge();
	CHECK(nothing(VERDICT_LIMIT));
	device.request.limit_bytes = device.total - 1;
	judge();
	CHECK(out(VERDICT_LIMIT));
	device.request.limit_bytes = EVIDENCE_UNKNOWN;
	device.request.driver_failures = 1;
	judge();
	CHECK(out(VERDICT_LIMIT));
	device.request.caller = CALLER_COMM;
	judge();
	CHECK(nothing(VERDICT_LIMIT));
}

/* ---- leak ------------------------------------------------------------------------------------------------ */

TEST(the_largest_that_goes_on_is_named)
{
	short_of_800_mib();
	growth(0, GROWTH_SATURATING, CERTAINTY_HIGH, 9);
	growth(1, GROWTH_LINEAR, CERTAINTY_MEDIUM, 2);
	growth(2, GROWTH_LINEAR, CERTAINTY_HIGH, 3);
	growths[0].site = "cache";
	growths[1].site = "small";
	growths[2].site = "large";
	judge();
	CHECK_EQ(held(VERDICT_LEAK)->bytes, G(5));
	CHECK(says(held(VERDICT_LEAK)->evidence, "more of cuda:0 stays, made by large:") &&
	      says(held(VERDICT_LEAK)->evidence, "others grow too"));
	CHECK_EQ(certainty(VERDICT_LEAK), CERTAINTY_HIGH);
	CHECK(!strcmp(held(VERDICT_LEAK)->sites[0], "small") && !strcmp(held(VERDICT_LEAK)->sites[1], "large") &&
	      !held(VERDICT_LEAK)->sites[2]);
	device.growth.count = 2;
	judge();
	CHECK(only(VERDICT_LEAK) && says(held(VERDICT_LEAK)->evidence, "made by small:"));
	CHECK(lacks(held(VERDICT_LEAK)->evidence, "others grow too"));
	CHECK_EQ(certainty(VERDICT_LEAK), CERTAINTY_MEDIUM);
	evidence.complete = false; /* something was lost */
	CHECK(now(VERDICT_LEAK) && certainty(VERDICT_LEAK) == CERTAINTY_MEDIUM);
	static const char *const names[] = { "one", "two", "three", "four", "five", "six" };
	for (int i = 0; i < 6; i++) {
		growth(i, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
		growths[i].site = names[i];
	}
	judge();
	CHECK_EQ(held(VERDICT_LEAK)->bytes, G(12));
	CHECK(held(VERDICT_LEAK)->sites[VERDICT_SITES - 1]);
}

TEST(why_nothing_leaks)
{
	short_of_800_mib();
	growth(0, GROWTH_SATURATING, CERTAINTY_HIGH, 9);
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "while it began, and not since"));
	growths[0].outlook = OUTLOOK_SHORT;
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "too seldom to say"));
	growths[0].outlook = OUTLOOK_BACKLOG;
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "by blocks that wait ever longer"));
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 9);
	growths[0].is_copy = true;
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "is one of the copies"));
	growths[0].is_copy = growths[0].works = false;
	growths[0].outlook = OUTLOOK_GROWS;
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "while hardly anything else was freed"));
	growth(0, GROWTH_LINEAR, CERTAINTY_LOW, 9);
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "what grows (train.py:73 save, 9.00 GiB) is too uncertain"));
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 9);
	growths[0].file_backed = true;
	judge();
	CHECK(out(VERDICT_LEAK));
}

TEST(a_leak_says_its_pace_and_its_end)
{
	begin(24, 0, 5, 18.6, 18.7);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growths[0].per_step = 3 * MIB;
	judge();
	const char *text = held(VERDICT_LEAK)->evidence;
	CHECK(says(text, "3.0 MiB more each step"));
	CHECK(lacks(text, "second") && lacks(text, "runs out") && lacks(text, "same pace") && lacks(text, "others"));
	growths[0].per_step = 0;
	growths[0].sites = 2;
	growths[0].per_second = 3 * MIB;
	judge();
	CHECK(says(held(VERDICT_LEAK)->evidence, "MiB more each second") &&
	      lacks(held(VERDICT_LEAK)->evidence, "each step"));
	CHECK(says(held(VERDICT_LEAK)->evidence, "and 1 more site at the same pace"));
	growths[0].per_second = 0;
	judge();
	CHECK(lacks(held(VERDICT_LEAK)->evidence, "more each") &&
	      says(held(VERDICT_LEAK)->evidence, "since the start"));
	growths[0].late = true;
	growths[0].since = 7.45;
	judge();
	CHECK(says(held(VERDICT_LEAK)->evidence, "since second 7.5"));
	growths[0].since = 188.5; /* the middle of two steps */
	growths[0].per_step = 3 * MIB;
	judge();
	CHECK(says(held(VERDICT_LEAK)->evidence, "since step 188"));
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growths[0].fails_step = 900; /* it has failed: nothing to forecast */
	judge();
	CHECK(lacks(held(VERDICT_LEAK)->evidence, "runs out"));
}

TEST(a_little_leak_matters_if_it_will_meet_the_limit)
{
	begin(24, 0, 5, 18.6, 18.7);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 1.19);
	CHECK(!now(VERDICT_LEAK) && ruled_out_since(VERDICT_LEAK, "little and far from the limit"));
	growths[0].fails_step = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[0].fails_step = 0;
	growths[0].fails_ns = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[0].fails_in = 5.01; /* later than five times the run */
	CHECK(!now(VERDICT_LEAK) && ruled_out_since(VERDICT_LEAK, "little and far from the limit"));
	growths[0].fails_in = 5;
	CHECK(now(VERDICT_LEAK));
	growths[1] = growths[2] = growths[0]; /* the forecast is of all three */
	device.growth.count = 3;
	growths[0].bytes = (uint64_t)(0.04 * (double)growths[1].bytes);
	growths[1].bytes = growths[2].bytes = growths[0].bytes - 1;
	CHECK(now(VERDICT_LEAK));
	device.growth.count = 1;
	growths[0].fails_ns = 0;
	growths[0].bytes = G(1.21);
	CHECK(now(VERDICT_LEAK));
	growths[0].bytes = (uint64_t)(0.05 * (double)device.total);
	CHECK(now(VERDICT_LEAK));
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

TEST(copies_say_what_to_drop)
{
	short_of_800_mib();
	copied(3, 2, 15);
	judge();
	CHECK(says(held(VERDICT_COPIES)->advice, "drop one of them"));
	CHECK_EQ(certainty(VERDICT_COPIES), CERTAINTY_MEDIUM);
	CHECK(held(VERDICT_COPIES)->sites[1] && !held(VERDICT_COPIES)->sites[2]);
	copied(3, 3, 16);
	copies[0].owners[2] = "c";
	copies[0].owners[3] = "d";
	judge();
	CHECK(says(held(VERDICT_COPIES)->advice, "drop all but one of them"));
	CHECK_EQ(certainty(VERDICT_COPIES), CERTAINTY_HIGH);
	CHECK(!strcmp(held(VERDICT_COPIES)->sites[3], "d"));
	device.copies_known = false;
	judge();
	CHECK(nothing(VERDICT_COPIES));
}

/* A model and another one: nobody but the program knows whether it needs both. */
TEST(copies_that_may_both_be_needed)
{
	short_of_800_mib();
	copied(3, 2, 40);
	judge();
	CHECK(lacks(held(VERDICT_COPIES)->evidence, "if one can go"));
	copies[0].used = true;
	judge();
	CHECK(says(held(VERDICT_COPIES)->evidence, "copies, if one can go: 2 sets of 40 blocks"));
	CHECK(says(held(VERDICT_COPIES)->advice, "if one can go, drop one of them"));
}

/* What the request was for is the cause, however little is there of it, and whatever is unused. */
TEST(a_copy_that_was_begun)
{
	begin(24, 2, 0.5, 17.4, 20); /* 2.6 GiB in holes */
	device.pool.largest_hole = G(1);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	copied(3, 2, 12);
	copies[0].extra_bytes = copies[0].there = 40 << 20;
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	copies[0].missing = G(2.9);
	copies[0].times[1] = 2;
	judge();
	CHECK(only(VERDICT_COPIES) &&
	      ruled_out_since(VERDICT_FRAGMENTATION, "what failed was one more copy, which needed 2.90 GiB"));
	CHECK_EQ(held(VERDICT_COPIES)->bytes, G(2.9) + (40 << 20));
	CHECK_EQ(certainty(VERDICT_COPIES), CERTAINTY_HIGH);
	CHECK(says(held(VERDICT_COPIES)->evidence,
		   "being made when it failed: 40.0 MiB of it were there, 2.90 GiB were missing"));
	CHECK(says(held(VERDICT_COPIES)->evidence, "(2 of them)"));
	CHECK(says(held(VERDICT_COPIES)->advice, "make it on the host"));
}

/* ---- other processes --------------------------------------------------------------------------------------- */

TEST(a_neighbour_that_did_not_change)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 9);
	neighbour(0, 200, 10 + 0.22, 10); /* by less than 1 % of the device */
	CHECK(!now(VERDICT_OTHER_PROCESS) && out(VERDICT_OTHER_PROCESS));
	neighbour(0, 200, 10 + 0.26, 10);
	CHECK(now(VERDICT_OTHER_PROCESS));
	neighbour(0, 200, 10, 10);
	neighbours[0].bytes_before = EVIDENCE_UNKNOWN;
	CHECK(now(VERDICT_OTHER_PROCESS));
	neighbour(0, 200, 10, 12); /* it gave some back */
	CHECK(!now(VERDICT_OTHER_PROCESS));
}

TEST(neighbours_are_named)
{
	short_of_800_mib();
	neighbour(0, 200, 3, 0);
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "200 holds 12.5 %"));
	CHECK(says(held(VERDICT_OTHER_PROCESS)->advice, "2 were on it") &&
	      lacks(held(VERDICT_OTHER_PROCESS)->advice, "hold less"));
	neighbours[0].site = "serve.py:12 load";
	neighbours[0].site_bytes = G(1.1); /* less than a twentieth of the device is not worth the name */
	judge();
	CHECK(lacks(held(VERDICT_OTHER_PROCESS)->evidence, "serve.py"));
	neighbours[0].site_bytes = G(2);
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "; serve.py:12 load of 200 holds 2.00 GiB"));
	CHECK(says(held(VERDICT_OTHER_PROCESS)->advice, "2 were on it, or let serve.py:12 load of 200 hold less"));
	CHECK(!strcmp(held(VERDICT_OTHER_PROCESS)->sites[0], "serve.py:12 load"));
	CHECK_EQ(certainty(VERDICT_OTHER_PROCESS), CERTAINTY_HIGH);
	double alone = held(VERDICT_OTHER_PROCESS)->confidence;
	device.self_listed = true; /* who lists them lists us, too */
	CHECK(now(VERDICT_OTHER_PROCESS) && held(VERDICT_OTHER_PROCESS)->confidence > alone);
	neighbours[0].pid = 0;
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "others hold 12.5 %"));
	neighbour(0, 200, 1.5, 0);
	neighbour(1, 300, 0.6, 0); /* too little by itself */
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "200 most (1.50 GiB); without the largest it fits"));
	neighbour(0, 200, 0.7, 0);
	neighbour(1, 0, 1, 0);
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "without all of them it fits"));
	neighbour(2, 400, 0.1, 0);
	neighbours[0].bytes = neighbours[1].bytes = neighbours[2].bytes = G(2);
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "without any one of them it fits"));
}

TEST(a_process_that_nobody_saw)
{
	short_of_800_mib();
	device.explained = true;
	device.unexplained = (int64_t)G(1.3);
	CHECK(now(VERDICT_OTHER_PROCESS)); /* the others were sampled: it is none of them */
	device.unexplained = -(int64_t)G(1.3);
	CHECK(!now(VERDICT_OTHER_PROCESS));
	device.neighbours_known = false;
	CHECK(!now(VERDICT_OTHER_PROCESS) && ruled_out_since(VERDICT_OTHER_PROCESS, "but 0 B was ours or free"));
	device.unexplained = (int64_t)G(1.19); /* contexts may take a twentieth */
	CHECK(!now(VERDICT_OTHER_PROCESS) && out(VERDICT_OTHER_PROCESS));
	device.unexplained = (int64_t)G(1.21);
	CHECK(!now(VERDICT_OTHER_PROCESS) && unknown(VERDICT_OTHER_PROCESS));
	device.unexplained = (int64_t)G(4.7); /* a fifth is more than contexts take */
	CHECK(!now(VERDICT_OTHER_PROCESS) && unknown(VERDICT_OTHER_PROCESS));
	device.unexplained = (int64_t)G(4.9);
	CHECK(now(VERDICT_OTHER_PROCESS));
	begin(24, 0, 5, 18, 18);
	device.unexplained = (int64_t)G(4.9);
	judge();
	CHECK(nothing(VERDICT_OTHER_PROCESS));
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

TEST(a_phase_is_compared_with_what_it_asked_for)
{
	begin(24, 3, 1, 20, 20);
	phase(0, "train", 100, 8, 16, false);
	phase(1, "evaluate", 100, 8, 16.5, true);
	judge();
	CHECK_EQ(held(VERDICT_PHASE_PEAK)->bytes, G(3.5));
	CHECK_EQ(certainty(VERDICT_PHASE_PEAK), CERTAINTY_HIGH);
	CHECK(says(held(VERDICT_PHASE_PEAK)->evidence,
		   "evaluate needs 19.50 GiB, no other phase more than 16.00 GiB (train)"));
	CHECK(lacks(held(VERDICT_PHASE_PEAK)->advice, "no_grad"));
	device.most_for = CATEGORY_activations;
	judge();
	CHECK(says(held(VERDICT_PHASE_PEAK)->advice, "no_grad"));
	device.no_graph = true;
	judge();
	CHECK(lacks(held(VERDICT_PHASE_PEAK)->advice, "no_grad"));
	phase(2, "other's", 999, 0, 23, false); /* of another process */
	CHECK(now(VERDICT_PHASE_PEAK));
	phases[2].pid = 100;
	CHECK(!now(VERDICT_PHASE_PEAK));
	phase(0, "evaluate", 100, 8, 23, false); /* it ran before */
	phase(2, "other's", 999, 0, 1, false);
	CHECK(!now(VERDICT_PHASE_PEAK) && nothing(VERDICT_PHASE_PEAK));
}

TEST(one_phase_is_none)
{
	begin(24, 3, 1, 20, 20);
	phase(0, "train", 100, 8, 16, true);
	judge();
	CHECK(nothing(VERDICT_PHASE_PEAK));
	phases[0].failing = false;
	judge();
	CHECK(nothing(VERDICT_PHASE_PEAK));
}

TEST(a_phase_must_stand_out)
{
	begin(24, 2, 0.5, 20, 20);
	phase(0, "train", 100, 8, 16, false);
	phase(1, "evaluate", 100, 8, 16.3, true); /* 14 % more */
	CHECK(!now(VERDICT_PHASE_PEAK) && out(VERDICT_PHASE_PEAK));
	phases[1].peak_bytes = G(16.5);
	CHECK(now(VERDICT_PHASE_PEAK));
	phases[0].begin_bytes = G(4); /* 12 added by training, 10.5 by this */
	CHECK(!now(VERDICT_PHASE_PEAK));
	phases[0].begin_bytes = EVIDENCE_UNKNOWN; /* all of it, perhaps */
	CHECK(!now(VERDICT_PHASE_PEAK));
	begin(24, 0.3, 0.1, 20, 20);
	phase(0, "train", 100, 0, 4, false);
	phase(1, "evaluate", 100, 0, 4.85, true); /* by 1.15 GiB, less than a twentieth of the device */
	CHECK(!now(VERDICT_PHASE_PEAK));
	phases[1].peak_bytes = G(4.95);
	CHECK(now(VERDICT_PHASE_PEAK));
	begin(24, 10, 0, 20, 20); /* would not fit at the height of training, either */
	phase(0, "train", 100, 0, 12, false);
	phase(1, "evaluate", 100, 0, 6, true);
	CHECK(!now(VERDICT_PHASE_PEAK) && held(VERDICT_CAPACITY));
}

TEST(what_grew_is_no_phase)
{
	begin(24, 3, 1, 20, 20);
	phase(0, "train", 100, 8, 16, false);
	phase(1, "evaluate", 100, 8, 16.5, true);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 4);
	judge();
	CHECK(only(VERDICT_LEAK) && ruled_out_since(VERDICT_PHASE_PEAK, "what grew was there before"));
}

TEST(a_line_of_the_loop_runs_often)
{
	begin(24, 3, 1, 22.5, 22.6);
	phase(0, "train.py:31", 100, 8, 9, false);
	phase(1, "train.py:30", 100, 8, 22.5, true);
	phases[1].line = phases[1].after_steps = true;
	phases[1].times = 8;
	phases[1].steps = 16;
	CHECK(now(VERDICT_PHASE_PEAK));
	phases[1].steps = 15;
	CHECK(!now(VERDICT_PHASE_PEAK));
	phases[1].steps = 100;
	CHECK(now(VERDICT_PHASE_PEAK));
	phases[1].steps_run = true;
	CHECK(!now(VERDICT_PHASE_PEAK));
	phases[1].steps_run = false;
	phases[1].times = 9;
	CHECK(!now(VERDICT_PHASE_PEAK));
}

TEST(two_runs_that_do_not_fit_beside_each_other)
{
	begin(23.52, 0.03, 0.01, 7.63, 7.63);
	neighbour(0, 300, 11.44, 4.0);
	neighbours[0].traced = true;
	phase(0, "train", 300, 2, 9, false);
	phase(1, "evaluate", 300, 2, 15, false);
	CHECK(now(VERDICT_PHASE_PEAK));
	CHECK_EQ(held(VERDICT_PHASE_PEAK)->bytes, G(6));
	CHECK_EQ(certainty(VERDICT_PHASE_PEAK), CERTAINTY_MEDIUM);
	phases[1].failing = true;
	CHECK(now(VERDICT_PHASE_PEAK) && certainty(VERDICT_PHASE_PEAK) == CERTAINTY_HIGH);
	device.phases.items++; /* nothing to compare it with */
	device.phases.count--;
	CHECK(!now(VERDICT_PHASE_PEAK));
	device.phases.items = phases;
	device.phases.count = 2;
	phases[0].peak_bytes = G(8.5); /* 23.5: they do */
	CHECK(!now(VERDICT_PHASE_PEAK));
	phases[0].peak_bytes = G(9);
	neighbours[0].traced = false;
	CHECK(!now(VERDICT_PHASE_PEAK));
	neighbours[0].traced = true;
	phases[1].line = true; /* of its loop */
	phases[1].times = 40;
	CHECK(!now(VERDICT_PHASE_PEAK));
}

/* ---- fragmentation ----------------------------------------------------------------------------------------- */

TEST(holes_so_far)
{
	begin(100, 0, 8, 55, 80);
	device.pool.free_segments = G(0.8); /* 30.25 % in holes */
	CHECK(now(VERDICT_FRAGMENTATION));
	CHECK_EQ(held(VERDICT_FRAGMENTATION)->bytes, G(25) - G(0.8));
	CHECK_EQ(certainty(VERDICT_FRAGMENTATION), CERTAINTY_MEDIUM);
	device.pool.free_segments = G(1.2); /* 29.75 % */
	CHECK(!now(VERDICT_FRAGMENTATION) && ruled_out_since(VERDICT_FRAGMENTATION, "a cache"));
	device.pool.free_segments = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_FRAGMENTATION) && nothing(VERDICT_FRAGMENTATION));
	device.pool.free_segments = 0;
	device.free = G(9.9);
	CHECK(now(VERDICT_FRAGMENTATION));
	device.free = G(10.1); /* far from full */
	CHECK(!now(VERDICT_FRAGMENTATION));
	begin(100, 0, 8, 10.1, 15); /* most of it is somebody else's */
	device.pool.free_segments = 0;
	CHECK(!now(VERDICT_FRAGMENTATION) && nothing(VERDICT_FRAGMENTATION));
	begin(100, 0, 8, 10, 15);
	device.pool.free_segments = 0;
	CHECK(now(VERDICT_FRAGMENTATION));
}

TEST(holes_are_a_fiftieth_of_the_device)
{
	begin(24, 0.5, 0.2, 20 - 0.49, 20);
	device.pool.largest_hole = G(0.1);
	CHECK(now(VERDICT_FRAGMENTATION));
	device.pool.allocated = G(20 - 0.47);
	CHECK(!now(VERDICT_FRAGMENTATION) &&
	      ruled_out_since(VERDICT_FRAGMENTATION, "are unused and could serve this request"));
}

TEST(a_hole_that_is_large_enough_is_no_hole_too_small)
{
	begin(24, 2, 0.5, 17, 20);
	device.pool.largest_hole = G(2);
	CHECK(!now(VERDICT_FRAGMENTATION) && ruled_out_since(VERDICT_FRAGMENTATION, "is large enough, but"));
	device.pool.largest_hole--;
	CHECK(now(VERDICT_FRAGMENTATION) && certainty(VERDICT_FRAGMENTATION) == CERTAINTY_HIGH);
	device.pool.largest_hole = EVIDENCE_UNKNOWN;
	CHECK(now(VERDICT_FRAGMENTATION) && certainty(VERDICT_FRAGMENTATION) == CERTAINTY_MEDIUM);
}

TEST(holes_beside_what_grew)
{
	begin(24, 2, 0.5, 17.4, 20); /* 2.6 GiB in holes */
	device.pool.largest_hole = G(1);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 5);
	judge();
	CHECK(held(VERDICT_FRAGMENTATION) && held(VERDICT_LEAK));
	growths[0].bytes = G(5.4);
	judge();
	CHECK(only(VERDICT_LEAK) && ruled_out_since(VERDICT_FRAGMENTATION, "would have filled them soon"));
	device.growth.count = 0;
	copied(5, 2, 40);
	judge();
	CHECK(held(VERDICT_FRAGMENTATION) && held(VERDICT_COPIES));
	copied(5.4, 2, 40);
	judge();
	CHECK(only(VERDICT_COPIES) && ruled_out_since(VERDICT_FRAGMENTATION, "little beside the copies"));
	begin(24, 0.5, 0.1, 20 - 0.5, 20); /* what is no cause itself explains no hole away */
	device.pool.largest_hole = G(0.1);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 1.1);
	copied(1.1, 2, 40);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

TEST(only_who_asks_a_pool_meets_its_holes)
{
	begin(24, 2, 0.5, 17.4, 20);
	device.request.caller = CALLER_COMM;
	judge();
	CHECK(nothing(VERDICT_FRAGMENTATION));
	device.pool.known = false;
	judge();
	CHECK(nothing(VERDICT_FRAGMENTATION));
	device.request.caller = CALLER_POOL;
	judge();
	CHECK(unknown(VERDICT_FRAGMENTATION));
}

/* ---- what others keep, what is outside ---------------------------------------------------------------------- */

TEST(certainty_of_what_is_kept_or_not_mapped)
{
	begin(24, 0.5, 0.1, 8, 20);
	device.request.caller = CALLER_COMM;
	CHECK(now(VERDICT_RETAINED) && certainty(VERDICT_RETAINED) == CERTAINTY_HIGH);
	begin(24, 3, 0.5, 20, 23);
	device.pool.graphs = (struct evidence_graphs){ .captures = 2, .pools = 2, .reserved = G(4), .unused = G(3) };
	CHECK(now(VERDICT_RETAINED) && certainty(VERDICT_RETAINED) == CERTAINTY_HIGH);
	CHECK(says(held(VERDICT_RETAINED)->advice, "graph_pool_handle"));
	short_of_800_mib();
	device.unmapped = G(3);
	CHECK(now(VERDICT_OUTSIDE_POOL) && certainty(VERDICT_OUTSIDE_POOL) == CERTAINTY_HIGH);
	begin(24, 1, 14, 9.2, 9.5);
	device.request.driver_failures = 0;
	device.request.limit_bytes = G(10);
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_HIGH);
}

TEST(neighbours_caches_count_together)
{
	begin(24, 2, 0.2, 9.9, 10);
	neighbour(0, 200, 6, 6);
	neighbour(1, 300, 6, 6);
	for (int i = 0; i < 2; i++) {
		neighbours[i].traced = true;
		neighbours[i].pool_unused = G(1);
	}
	CHECK(now(VERDICT_RETAINED));
	CHECK_EQ(held(VERDICT_RETAINED)->bytes, G(2));
	CHECK_EQ(certainty(VERDICT_RETAINED), CERTAINTY_HIGH);
	neighbours[1].pool_unused = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_RETAINED));
}

TEST(a_tenth_of_the_device_outside_the_pool)
{
	begin(24, 1, 0.2, 18, 18);
	device.own_other = G(3);
	parts[0] = (struct evidence_part){ "NCCL", G(1.5), false };
	parts[1] = (struct evidence_part){ "cuBLAS", G(1), false };
	parts[2] = (struct evidence_part){ "context", G(3), true };
	device.parts.items = parts;
	device.parts.count = 3;
	judge();
	CHECK(only(VERDICT_OUTSIDE_POOL) &&
	      says(held(VERDICT_OUTSIDE_POOL)->evidence, "2.50 GiB of ours lie outside the pool (NCCL 1.50 GiB)"));
	CHECK_EQ(certainty(VERDICT_OUTSIDE_POOL), CERTAINTY_HIGH);
	parts[0].bytes = G(1.3); /* 9.6 % */
	CHECK(!now(VERDICT_OUTSIDE_POOL) && out(VERDICT_OUTSIDE_POOL));
	parts[1].bytes = G(2);
	CHECK(now(VERDICT_OUTSIDE_POOL) && says(held(VERDICT_OUTSIDE_POOL)->evidence, "(cuBLAS 2.00 GiB)"));
	device.request.bytes = device.request.block_bytes = G(4); /* it would not do */
	CHECK(!now(VERDICT_OUTSIDE_POOL));
	device.parts.count = 0;
	CHECK(!now(VERDICT_OUTSIDE_POOL) && out(VERDICT_OUTSIDE_POOL));
	device.pool.known = false;
	CHECK(!now(VERDICT_OUTSIDE_POOL) && nothing(VERDICT_OUTSIDE_POOL));
	begin(24, 0, 0.2, 18, 18);
	judge();
	CHECK(nothing(VERDICT_OUTSIDE_POOL));
}

/* ---- advice where nothing else helps ------------------------------------------------------------------------- */

static const char *advice(void)
{
	judge();
	return held(VERDICT_CAPACITY) ? held(VERDICT_CAPACITY)->advice : NULL;
}

TEST(advice_is_by_what_most_is_for)
{
	static const struct {
		enum category category;
		const char *says;
	} all[] = {
		{ CATEGORY_activations, "activation checkpointing" },
		{ CATEGORY_parameters, "smaller model or type" },
		{ CATEGORY_gradients, "shard them" },
		{ CATEGORY_optimizer, "shard or offload its state" },
		{ CATEGORY_checkpoint, "load it to the host" },
		{ CATEGORY_kv_cache, "fewer or shorter sequences" },
		{ CATEGORY_workspace, "CUBLAS_WORKSPACE_CONFIG" },
	};
	short_of_800_mib();
	CHECK(says(advice(), "need at least 819.2 MiB less: a smaller batch or model"));
	device.holder.site = "model.py:7 build";
	device.holder.bytes = G(10);
	device.holder.blocks = 40;
	CHECK(says(advice(), "model.py:7 build holds most, 10.00 GiB in 40 blocks: if it must"));
	device.holder.blocks = 1;
	CHECK(says(advice(), "in 1 block:"));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		device.most_for = all[i].category;
		device.most_for_bytes = 0; /* nothing is known of it */
		CHECK(lacks(advice(), all[i].says));
		device.most_for_bytes = G(12);
		CHECK(says(advice(), all[i].says) &&
		      says(advice(), "(12.00 GiB); of all kinds model.py:7 build holds most (10.00 GiB)"));
	}
}

TEST(equal_blocks_of_one_line_are_kept_by_something)
{
	short_of_800_mib();
	device.most_for = CATEGORY_activations;
	device.most_for_bytes = G(12);
	device.holder.site = "train.py:9 step";
	device.holder.bytes = G(9.1); /* three quarters of them */
	device.holder.blocks = 16;
	device.holder.each = G(9.1) / 16;
	CHECK(says(advice(), "16 blocks of 582.4 MiB: find what keeps them"));
	device.holder.blocks = 15;
	CHECK(lacks(advice(), "find what keeps them"));
	device.holder.blocks = 16;
	device.holder.bytes = G(8.9);
	CHECK(lacks(advice(), "find what keeps them"));
	device.holder.bytes = G(9.1);
	device.holder.each = 0; /* of many sizes */
	CHECK(lacks(advice(), "find what keeps them"));
	device.holder.each = G(9.1) / 16;
	device.most_for = CATEGORY_workspace; /* one for each stream */
	CHECK(lacks(advice(), "find what keeps them") && says(advice(), "CUBLAS_WORKSPACE_CONFIG"));
}

TEST(an_input_that_is_larger_than_all_is_said_to_be)
{
	short_of_800_mib();
	device.most_for = CATEGORY_activations;
	device.most_for_bytes = G(12);
	device.holder.site = "train.py:9 step";
	device.most_before = G(14); /* it has 20, and asks for 1 */
	CHECK(says(advice(), "It is this input: no step before needed more than 14.00 GiB"));
	device.most_before = G(14.01);
	CHECK(lacks(advice(), "this input"));
	device.most_before = 0;
	CHECK(lacks(advice(), "this input"));
	device.most_before = G(14);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 0.5); /* not what was missing, but no step was like those before */
	CHECK(lacks(advice(), "this input"));
}

/* None of it stays, but ever more of it is there at once. */
TEST(what_needs_more_and_more_is_told_as_exactly_as_it_is_known)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growths[0].works = false;
	growths[0].outlook = OUTLOOK_PASSES;
	judge();
	CHECK(ruled_out_since(VERDICT_LEAK, "did so by blocks that come and go: next to none of them stays"));
	growths[0].outlook = OUTLOOK_NEEDS_MORE;
	judge();
	CHECK(ruled_out_since(
		VERDICT_LEAK,
		"did so by blocks that come and go: next to none stays, but there are more of them, or larger ones"));
}

/* Attempts that failed and were caught, and what they made is still there. */
TEST(what_failed_attempts_left_is_the_cause_where_it_would_have_done)
{
	short_of_800_mib();
	device.attempts = (struct evidence_attempts){ .count = 5, .bytes = G(1.21), .site = "fit.py:22 forward" };
	CHECK(now(VERDICT_LEAK) && !held(VERDICT_CAPACITY));
	CHECK(says(
		held(VERDICT_LEAK)->evidence,
		"5 requests failed before and were caught, and 1.21 GiB of what those attempts made (fit.py:22 forward)"));
	CHECK(says(held(VERDICT_LEAK)->advice, "or the next attempt runs in its except block") &&
	      !strcmp(held(VERDICT_LEAK)->sites[0], "fit.py:22 forward"));
	device.growth_known = false; /* such runs are short */
	CHECK(now(VERDICT_LEAK));
	device.attempts.bytes = G(1.19); /* less than a twentieth */
	CHECK(!now(VERDICT_LEAK) && now(VERDICT_CAPACITY));
	device.growth_known = true;
	device.attempts.bytes = G(1.21);
	device.attempts.count = 1;
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	CHECK(now(VERDICT_LEAK) && says(held(VERDICT_LEAK)->evidence, "made by train.py:73 save:"));
	growths[0].bytes = G(0.1);
	CHECK(now(VERDICT_LEAK) &&
	      says(held(VERDICT_LEAK)->evidence,
		   "1 request failed before and was caught, and 1.21 GiB of what that attempt made"));
}

static const char *leak_advice(void)
{
	judge();
	return held(VERDICT_LEAK) ? held(VERDICT_LEAK)->advice : NULL;
}

/* Several tensors of a forward pass are kept by a graph; one is a result. */
TEST(a_graph_that_is_kept_is_to_be_detached)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growth(1, GROWTH_LINEAR, CERTAINTY_HIGH, 1);
	growths[0].category = growths[1].category = CATEGORY_activations;
	growths[0].tensors = 1;
	CHECK(says(leak_advice(), "find what holds the blocks of"));
	growths[1].tensors = 1;
	CHECK(says(leak_advice(), "detach() what is stored"));
	growths[0].category = CATEGORY_unknown;
	CHECK(says(leak_advice(), "find what holds the blocks of"));
	growths[0].category = growths[1].category = CATEGORY_workspace; /* kept for each stream */
	CHECK(!now(VERDICT_LEAK));
	verdicts_fini(&found);
}

TEST_MAIN
