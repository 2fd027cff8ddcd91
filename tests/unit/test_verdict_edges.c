/* Where the rules of verdicts change their minds: each figure on both sides of its edge, and what they say then. */
#include "tests/unit/verdicts.h"

/* 24 GiB, 1 GiB asked, 0.2 free, a pool without holes: short by 0.8 GiB. 5 % of it are 1.2 GiB. */
static void short_of_800_mib(void)
{
	begin(24, 1, 0.2, 20, 20);
}

static bool unknown(enum verdict_kind kind)
{
	return of_kind(found.unknown, found.unknown_count, kind) != NULL;
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
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, not_missing));
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
	CHECK(SAYS(CAPACITY, short_by_range, .least = G(4), .missing = G(4.5)));
	CHECK(SAYS(CAPACITY, need_up_to, .missing = G(4.5)));
	device.request.rise = EVIDENCE_UNKNOWN;
	CHECK(now(VERDICT_CAPACITY) && SAYS(CAPACITY, need_less, .missing = G(4)) && SAYS(CAPACITY, and_what_comes));
	device.request.rise = device.request.bytes;
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(4.5));
	begin(24, 5, 0.5, 18.42, 18.5); /* less than 2 % between them */
	judge();
	CHECK(SAYS(CAPACITY, short_by, .missing = G(4.5)));
}

/* What the pool asks the driver for may be more than it was asked for. */
TEST(a_block_is_larger_than_the_request)
{
	short_of_800_mib();
	device.request.block_bytes = G(2);
	judge();
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(2) - G(0.2));
	CHECK(SAYS(CAPACITY, short_by_range, .need = G(1)));
	CHECK(WHY_NOT(LIMIT, device_full, .need = G(2)));
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
	CHECK(WHY_NOT(LIMIT, device_full));
	CHECK(SAYS(CAPACITY, short_by_range, .free = G(0.5)));
	begin(24, 1, 0.2, 9.2, 9.5);
	device.request.limit_bytes = G(20);
	judge();
	CHECK(SAYS(CAPACITY, short_by_range, .free = G(0.2)));
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
	CHECK(SAYS(LEAK, more_of, .of = "cuda:0") && SAYS(LEAK, made_by, .site = "large") && SAYS(LEAK, others_grow));
	CHECK_EQ(certainty(VERDICT_LEAK), CERTAINTY_HIGH);
	CHECK(!strcmp(held(VERDICT_LEAK)->sites[0], "small") && !strcmp(held(VERDICT_LEAK)->sites[1], "large") &&
	      !held(VERDICT_LEAK)->sites[2]);
	device.growth.count = 2;
	judge();
	CHECK(only(VERDICT_LEAK) && SAYS(LEAK, made_by, .site = "small"));
	CHECK(LACKS(LEAK, others_grow));
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
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_STOPPED));
	growths[0].outlook = OUTLOOK_SHORT;
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_SHORT));
	growths[0].outlook = OUTLOOK_BACKLOG;
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_BACKLOG));
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 9);
	growths[0].is_copy = true;
	judge();
	CHECK(WHY_NOT(LEAK, grew_as_copy));
	growths[0].is_copy = growths[0].works = false;
	growths[0].outlook = OUTLOOK_GROWS;
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_GROWS));
	growth(0, GROWTH_LINEAR, CERTAINTY_LOW, 9);
	judge();
	CHECK(WHY_NOT(LEAK, grows_uncertain, .site = "train.py:73 save", .bytes = G(9)));
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
	CHECK(SAYS(LEAK, each_step, .rate = 3 * MIB));
	CHECK(LACKS(LEAK, each_second) && LACKS(LEAK, memory_ends) && LACKS(LEAK, same_pace) &&
	      LACKS(LEAK, others_grow));
	growths[0].per_step = 0;
	growths[0].sites = 2;
	growths[0].per_second = 3 * MIB;
	judge();
	CHECK(SAYS(LEAK, each_second, .rate = 3 * MIB) && LACKS(LEAK, each_step));
	CHECK(SAYS(LEAK, one_more_site) && SAYS(LEAK, same_pace));
	growths[0].per_second = 0;
	judge();
	CHECK(LACKS(LEAK, each_step) && LACKS(LEAK, each_second) && SAYS(LEAK, since_start));
	growths[0].late = true;
	growths[0].since = 7.45;
	judge();
	CHECK(SAYS(LEAK, since_second, .moment = 7.45));
	growths[0].since = 188.5; /* the middle of two steps */
	growths[0].per_step = 3 * MIB;
	judge();
	CHECK(SAYS(LEAK, since_step, .step = 188));
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growths[0].fails_step = 900; /* it has failed: nothing to forecast */
	judge();
	CHECK(LACKS(LEAK, memory_ends));
}

TEST(a_little_leak_matters_if_it_will_meet_the_limit)
{
	begin(24, 0, 5, 18.6, 18.7);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 1.19);
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grows_little));
	growths[0].fails_step = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[0].fails_step = 0;
	growths[0].fails_ns = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[0].fails_in = 5.01; /* later than five times the run */
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grows_little));
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
	CHECK(SAYS(COPIES, drop_one));
	CHECK_EQ(certainty(VERDICT_COPIES), CERTAINTY_MEDIUM);
	CHECK(held(VERDICT_COPIES)->sites[1] && !held(VERDICT_COPIES)->sites[2]);
	copied(3, 3, 16);
	copies[0].owners[2] = "c";
	copies[0].owners[3] = "d";
	judge();
	CHECK(SAYS(COPIES, drop_all_but_one));
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
	CHECK(LACKS(COPIES, if_one_can_go));
	copies[0].used = true;
	judge();
	CHECK(SAYS(COPIES, if_one_can_go) && SAYS(COPIES, copies_alive, .count = 2, .alike = 40));
	CHECK(SAYS(COPIES, drop_if) && SAYS(COPIES, drop_one));
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
	CHECK(only(VERDICT_COPIES) && WHY_NOT(FRAGMENTATION, unused_but_copy, .missing = G(2.9)));
	CHECK_EQ(held(VERDICT_COPIES)->bytes, G(2.9) + (40 << 20));
	CHECK_EQ(certainty(VERDICT_COPIES), CERTAINTY_HIGH);
	CHECK(SAYS(COPIES, copy_begun, .there = 40 * MIB, .missing = G(2.9)));
	CHECK(SAYS(COPIES, so_many, .count = 2));
	CHECK(SAYS(COPIES, make_on_host));
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
	CHECK(SAYS(OTHER_PROCESS, neighbour, .pid = 200) && SAYS(OTHER_PROCESS, neighbour_holds, .percent = 12.5));
	CHECK(SAYS(OTHER_PROCESS, fewer_processes, .count = 2) && LACKS(OTHER_PROCESS, line_less));
	neighbours[0].site = "serve.py:12 load";
	neighbours[0].site_bytes = G(1.1); /* less than a twentieth of the device is not worth the name */
	judge();
	CHECK(LACKS(OTHER_PROCESS, line_holds));
	neighbours[0].site_bytes = G(2);
	judge();
	CHECK(SAYS(OTHER_PROCESS, line_holds, .site = "serve.py:12 load", .pid = 200, .bytes = G(2)));
	CHECK(SAYS(OTHER_PROCESS, fewer_processes, .count = 2) &&
	      SAYS(OTHER_PROCESS, line_less, .site = "serve.py:12 load", .pid = 200));
	CHECK(!strcmp(held(VERDICT_OTHER_PROCESS)->sites[0], "serve.py:12 load"));
	CHECK_EQ(certainty(VERDICT_OTHER_PROCESS), CERTAINTY_HIGH);
	double alone = held(VERDICT_OTHER_PROCESS)->confidence;
	device.self_listed = true; /* who lists them lists us, too */
	CHECK(now(VERDICT_OTHER_PROCESS) && held(VERDICT_OTHER_PROCESS)->confidence > alone);
	neighbours[0].pid = 0;
	judge();
	CHECK(SAYS(OTHER_PROCESS, others_hold, .percent = 12.5));
	neighbour(0, 200, 1.5, 0);
	neighbour(1, 300, 0.6, 0); /* too little by itself */
	judge();
	CHECK(SAYS(OTHER_PROCESS, neighbours_hold, .pid = 200, .bytes = G(1.5)) &&
	      SAYS(OTHER_PROCESS, without_largest));
	neighbour(0, 200, 0.7, 0);
	neighbour(1, 0, 1, 0);
	judge();
	CHECK(SAYS(OTHER_PROCESS, without_all));
	neighbour(2, 400, 0.1, 0);
	neighbours[0].bytes = neighbours[1].bytes = neighbours[2].bytes = G(2);
	judge();
	CHECK(SAYS(OTHER_PROCESS, without_any));
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
	CHECK(!now(VERDICT_OTHER_PROCESS) && WHY_NOT(OTHER_PROCESS, accounted_for));
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
	CHECK(SAYS(PHASE_PEAK, phase_needs, .phase = "evaluate", .need = G(19.5), .bytes = G(16), .other = "train"));
	CHECK(LACKS(PHASE_PEAK, phase_no_grad));
	device.most_for = CATEGORY_activations;
	judge();
	CHECK(SAYS(PHASE_PEAK, phase_no_grad));
	device.no_graph = true;
	judge();
	CHECK(LACKS(PHASE_PEAK, phase_no_grad));
	CHECK(SAYS(PHASE_PEAK, phase_less));
	device.most_for_bytes = G(8); /* most of it are blocks of one size: it keeps its results */
	device.holder.site = "eval.py:7 evaluate";
	device.holder.bytes = G(6);
	device.holder.blocks = 16;
	device.holder.each = G(6) / 16;
	judge();
	CHECK(SAYS(PHASE_PEAK, phase_keeps, .phase = "evaluate", .site = "eval.py:7 evaluate", .blocks = 16));
	CHECK(LACKS(PHASE_PEAK, phase_less));
	device.holder.blocks = 15;
	judge();
	CHECK(LACKS(PHASE_PEAK, phase_keeps));
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
	CHECK(only(VERDICT_LEAK) && WHY_NOT(PHASE_PEAK, grew_before_phase));
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
	CHECK(!now(VERDICT_FRAGMENTATION) && WHY_NOT(FRAGMENTATION, unused_is_cache));
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
	CHECK(!now(VERDICT_FRAGMENTATION) && WHY_NOT(FRAGMENTATION, unused_little));
}

TEST(a_hole_that_is_large_enough_is_no_hole_too_small)
{
	begin(24, 2, 0.5, 17, 20);
	device.pool.largest_hole = G(2);
	CHECK(!now(VERDICT_FRAGMENTATION) && WHY_NOT(FRAGMENTATION, hole_for_others));
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
	CHECK(only(VERDICT_LEAK) && WHY_NOT(FRAGMENTATION, unused_but_growth));
	device.growth.count = 0;
	copied(5, 2, 40);
	judge();
	CHECK(held(VERDICT_FRAGMENTATION) && held(VERDICT_COPIES));
	copied(5.4, 2, 40);
	judge();
	CHECK(only(VERDICT_COPIES) && WHY_NOT(FRAGMENTATION, unused_but_copies));
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
	CHECK(SAYS(RETAINED, share_graph_pool));
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
	      SAYS(OUTSIDE_POOL, lies_outside, .bytes = G(2.5), .name = "NCCL", .each = G(1.5)));
	CHECK_EQ(certainty(VERDICT_OUTSIDE_POOL), CERTAINTY_HIGH);
	parts[0].bytes = G(1.3); /* 9.6 % */
	CHECK(!now(VERDICT_OUTSIDE_POOL) && out(VERDICT_OUTSIDE_POOL));
	parts[1].bytes = G(2);
	CHECK(now(VERDICT_OUTSIDE_POOL) && SAYS(OUTSIDE_POOL, lies_outside, .name = "cuBLAS", .each = G(2)));
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

TEST(advice_is_by_what_most_is_for)
{
	static const struct {
		enum category category;
		enum reason_kind says;
	} all[] = {
		{ CATEGORY_activations, REASON_most_activations }, { CATEGORY_parameters, REASON_most_parameters },
		{ CATEGORY_gradients, REASON_most_gradients },     { CATEGORY_optimizer, REASON_most_optimizer },
		{ CATEGORY_checkpoint, REASON_most_checkpoint },   { CATEGORY_kv_cache, REASON_most_kv_cache },
		{ CATEGORY_workspace, REASON_most_workspaces },
	};
	short_of_800_mib();
	CHECK(now(VERDICT_CAPACITY) && SAYS(CAPACITY, need_less, .missing = G(0.8)) && SAYS(CAPACITY, smaller_batch));
	device.holder.site = "model.py:7 build";
	device.holder.bytes = G(10);
	device.holder.blocks = 40;
	CHECK(now(VERDICT_CAPACITY) &&
	      SAYS(CAPACITY, holds_blocks, .site = "model.py:7 build", .bytes = G(10), .blocks = 40));
	device.holder.blocks = 1;
	CHECK(now(VERDICT_CAPACITY) && SAYS(CAPACITY, holds_one_block, .bytes = G(10)));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		device.most_for = all[i].category;
		device.most_for_bytes = 0; /* nothing is known of it */
		CHECK(now(VERDICT_CAPACITY) && lacks(VERDICT_CAPACITY, all[i].says));
		device.most_for_bytes = G(12);
		CHECK(now(VERDICT_CAPACITY) &&
		      says(VERDICT_CAPACITY, all[i].says,
			   FIGURES(.used = G(12), .site = "model.py:7 build", .bytes = G(10))));
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
	CHECK(now(VERDICT_CAPACITY) && SAYS(CAPACITY, keeps_blocks, .blocks = 16, .each = G(9.1) / 16));
	device.holder.blocks = 15;
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, keeps_blocks));
	device.holder.blocks = 16;
	device.holder.bytes = G(8.9);
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, keeps_blocks));
	device.holder.bytes = G(9.1);
	device.holder.each = 0; /* of many sizes */
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, keeps_blocks));
	device.holder.each = G(9.1) / 16;
	device.most_for = CATEGORY_workspace; /* one for each stream */
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, keeps_blocks) && SAYS(CAPACITY, most_workspaces));
}

TEST(an_input_that_is_larger_than_all_is_said_to_be)
{
	short_of_800_mib();
	device.most_for = CATEGORY_activations;
	device.most_for_bytes = G(12);
	device.holder.site = "train.py:9 step";
	device.most_before = G(14); /* it has 20, and asks for 1 */
	CHECK(now(VERDICT_CAPACITY) && SAYS(CAPACITY, this_input, .first = G(14)));
	device.most_before = G(14.01);
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, this_input));
	device.most_before = 0;
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, this_input));
	device.most_before = G(14);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 0.5); /* not what was missing, but no step was like those before */
	CHECK(now(VERDICT_CAPACITY) && LACKS(CAPACITY, this_input));
}

/* None of it stays, but ever more of it is there at once. */
TEST(what_needs_more_and_more_is_told_as_exactly_as_it_is_known)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growths[0].works = false;
	growths[0].outlook = OUTLOOK_PASSES;
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_PASSES));
	growths[0].outlook = OUTLOOK_NEEDS_MORE;
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_NEEDS_MORE));
}

/* Attempts that failed and were caught, and what they made is still there. */
TEST(what_failed_attempts_left_is_the_cause_where_it_would_have_done)
{
	short_of_800_mib();
	device.attempts = (struct evidence_attempts){ .count = 5, .bytes = G(1.21), .site = "fit.py:22 forward" };
	CHECK(now(VERDICT_LEAK) && !held(VERDICT_CAPACITY));
	CHECK(SAYS(LEAK, attempts_left, .count = 5, .bytes = G(1.21), .site = "fit.py:22 forward"));
	CHECK(SAYS(LEAK, drop_attempts) && !strcmp(held(VERDICT_LEAK)->sites[0], "fit.py:22 forward"));
	device.growth_known = false; /* such runs are short */
	CHECK(now(VERDICT_LEAK));
	device.attempts.bytes = G(1.19); /* less than a twentieth */
	CHECK(!now(VERDICT_LEAK) && now(VERDICT_CAPACITY));
	device.growth_known = true;
	device.attempts.bytes = G(1.21);
	device.attempts.count = 1;
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, made_by, .site = "train.py:73 save"));
	growths[0].bytes = G(0.1);
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, attempt_left, .bytes = G(1.21)));
}

/* Several tensors of a forward pass are kept by a graph; one is a result. */
TEST(a_graph_that_is_kept_is_to_be_detached)
{
	short_of_800_mib();
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	growth(1, GROWTH_LINEAR, CERTAINTY_HIGH, 1);
	growths[0].category = growths[1].category = CATEGORY_activations;
	growths[0].tensors = 1;
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, find_holder));
	growths[1].tensors = 1;
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, keeps_graph));
	growths[0].category = CATEGORY_unknown;
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, find_holder));
	growths[0].category = growths[1].category = CATEGORY_workspace; /* kept for each stream */
	CHECK(!now(VERDICT_LEAK));
	verdicts_fini(&found);
}

TEST_MAIN
