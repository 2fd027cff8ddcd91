/* The rules of verdicts on figures made by hand: the incidents, and every situation that looks like another one. */
#include "tests/unit/verdicts.h"

/* ---- the incidents ------------------------------------------------------------------------------------- */

TEST(incident_1_copies_at_the_peak)
{
	begin(128, 2.898, 1.2, 122, 123.5);
	copied(28, 4, 400);
	phase(0, "t1", 100, 0, 28, false);
	phase(1, "t2", 100, 28, 56, false);
	phase(2, "t5", 100, 112, 122, true);
	judge();
	CHECK(only(VERDICT_COPIES));
	CHECK_EQ(found.held[0].bytes, G(84));
	CHECK(says(found.held[0].advice, "84.00 GiB"));
	CHECK(out(VERDICT_CAPACITY) && out(VERDICT_PHASE_PEAK) && out(VERDICT_FRAGMENTATION) && out(VERDICT_LEAK));
	CHECK_EQ(found.status, STATUS_PROBLEM);
}

TEST(incident_2_neighbours_hold_it)
{
	begin(23.52, 32.0 / 1024, 28.25 / 1024, 7.61, 7.63);
	neighbour(0, 3674110, 3.80, 3.80);
	neighbour(1, 3808634, 11.44, 4.0);
	device.request.bytes = device.request.block_bytes = 32 * MIB;
	judge();
	CHECK(only(VERDICT_OTHER_PROCESS));
	CHECK_EQ(held(VERDICT_OTHER_PROCESS)->bytes, G(3.80) + G(11.44));
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "64.8 %") &&
	      says(held(VERDICT_OTHER_PROCESS)->evidence, "either one of them"));
	CHECK(says(held(VERDICT_OTHER_PROCESS)->advice, "3 were on it"));
}

/* Same incident with a pool that has nothing unused: the user's verdict was fragmentation. */
TEST(incident_2_is_no_fragmentation)
{
	begin(23.52, 32.0 / 1024, 28.25 / 1024, 7.63, 7.63);
	neighbour(0, 3674110, 3.80, 3.80);
	neighbour(1, 3808634, 11.44, 11.44);
	judge();
	CHECK(!held(VERDICT_FRAGMENTATION));
	CHECK(out(VERDICT_FRAGMENTATION) && out(VERDICT_CAPACITY) && out(VERDICT_LEAK));
}

TEST(incident_2_neighbours_phase)
{
	begin(23.52, 32.0 / 1024, 28.25 / 1024, 7.63, 7.63);
	neighbour(0, 3808634, 11.44, 4.0);
	neighbours[0].traced = true;
	phase(0, "train", 3808634, 4, 12, false);
	phase(1, "evaluate", 3808634, 4, 15, false);
	judge();
	CHECK(held(VERDICT_OTHER_PROCESS) && held(VERDICT_PHASE_PEAK));
	CHECK(says(held(VERDICT_PHASE_PEAK)->evidence, "evaluate of neighbour 3808634 takes 15.00 GiB"));
	CHECK_EQ(found.held[0].kind, VERDICT_OTHER_PROCESS);
}

TEST(incident_3_leak_accelerating)
{
	begin(24, 48.0 / 1024, 9.25 / 1024, 23.62, 23.70);
	growth(0, GROWTH_ACCELERATING, CERTAINTY_HIGH, 6.67);
	growths[0].fails_step = 1008;
	growths[0].fails_low = 940;
	growths[0].fails_high = 1090;
	judge();
	CHECK(only(VERDICT_LEAK));
	CHECK(says(held(VERDICT_LEAK)->evidence, "accelerating"));
	CHECK(out(VERDICT_CAPACITY) && out(VERDICT_FRAGMENTATION) && out(VERDICT_OTHER_PROCESS));
	CHECK_EQ(verdict_certainty(held(VERDICT_LEAK)->confidence), CERTAINTY_HIGH);
}

TEST(a_leak_is_foreseen)
{
	begin(24, 0, 5, 18.6, 18.7);
	growth(0, GROWTH_ACCELERATING, CERTAINTY_HIGH, 1.77);
	growths[0].fails_step = 1008;
	growths[0].fails_low = 940;
	growths[0].fails_high = 1090;
	judge();
	CHECK(only(VERDICT_LEAK));
	CHECK(says(held(VERDICT_LEAK)->evidence, "if it goes on, memory ends at step 1008 (95 %: 940 to 1090)"));
}

TEST(incident_3_opposite_capacity)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "short by 573.4 MiB to 624.6 MiB"));
	CHECK(out(VERDICT_FRAGMENTATION) && out(VERDICT_LEAK) && out(VERDICT_OTHER_PROCESS) && out(VERDICT_COPIES));
}

/* By what most of the memory is for, and who holds it. */
TEST(capacity_says_what_to_change)
{
	static const struct {
		enum category most;
		const char *way;
	} ways[] = {
		{ CATEGORY_activations,
		  "Most are activations (9.00 GiB); of all kinds model.py:7 forward holds most (5.00 GiB): smaller batch" },
		{ CATEGORY_parameters, "Most are parameters (9.00 GiB" },
		{ CATEGORY_gradients, "shard them" },
		{ CATEGORY_optimizer, "shard or offload its state" },
		{ CATEGORY_checkpoint, "map_location" },
		{ CATEGORY_kv_cache, "fewer or shorter sequences" },
		{ CATEGORY_unknown, "model.py:7 forward holds most, 5.00 GiB in 3 blocks" },
	};
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		begin(16, 4, 1, 14, 14.5);
		device.most_for = ways[i].most;
		device.most_for_bytes = ways[i].most == CATEGORY_unknown ? 0 : G(9);
		device.holder.site = "model.py:7 forward";
		device.holder.bytes = G(5);
		device.holder.blocks = 3;
		judge();
		const char *advice = held(VERDICT_CAPACITY)->advice;
		CHECK(says(advice, "need at least 3.00 GiB less") && says(advice, ways[i].way));
	}
	begin(16, 4, 1, 14, 14.5);
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->advice, "a smaller batch or model, activation checkpointing"));
}

/* Many blocks of one size are kept by something. */
TEST(capacity_says_who_keeps_blocks_of_one_size)
{
	begin(16, 4, 1, 14, 14.5);
	device.most_for = CATEGORY_activations;
	device.most_for_bytes = G(12);
	device.holder.site = "eval.py:9 collect";
	device.holder.each = G(0.5);
	device.holder.blocks = 24;
	device.holder.bytes = G(12);
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->advice,
		   "eval.py:9 collect holds most, 24 blocks of 512.0 MiB: find what keeps them"));
}

TEST(incident_4_host_pressure)
{
	host(32, 1.2, 2.1, 28);
	judge();
	CHECK(only(VERDICT_HOST_PRESSURE));
	CHECK_EQ(held(VERDICT_HOST_PRESSURE)->bytes, G(2.1));
	host(32, 9, 0, 21);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK_EQ(found.status, STATUS_OK);
}

/* ---- what looks like one thing and is another ---------------------------------------------------------- */

TEST(retained_graph_is_one_group)
{
	begin(24, 0.05, 0.01, 23.6, 23.65);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 12);
	growths[0].sites = 37;
	judge();
	CHECK(only(VERDICT_LEAK));
	CHECK(says(held(VERDICT_LEAK)->evidence, "and 36 more sites at the same pace"));
	CHECK(!strstr(held(VERDICT_LEAK)->evidence, "gelu"));
}

TEST(cache_that_fills_is_no_leak)
{
	begin(24, 0, 6, 17, 17.5);
	growth(0, GROWTH_SATURATING, CERTAINTY_HIGH, 4);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_LEAK) && found.status == STATUS_OK);
}

TEST(loading_is_no_leak)
{
	begin(24, 1, 0.2, 23, 23.2);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 20);
	growths[0].works = false;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_LEAK));
}

TEST(first_step_is_a_jump_and_no_leak)
{
	begin(24, 0, 6, 17, 17.5);
	growth(0, GROWTH_JUMP, CERTAINTY_MEDIUM, 4);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_LEAK));
}

TEST(uncertain_growth_is_no_leak)
{
	begin(24, 0, 6, 17, 17.5);
	growth(0, GROWTH_LINEAR, CERTAINTY_LOW, 4);
	judge();
	CHECK_EQ(found.held_count, 0);
}

/* Accumulation, evaluation and checkpoints leave low points alone: there is no growth to begin with. */
TEST(flat_lows_are_no_leak)
{
	begin(24, 0, 6, 17, 17.5);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_LEAK));
	CHECK(says(found.ruled_out[0].evidence, "outlives its 200 steps does not grow") &&
	      !strstr(found.ruled_out[0].evidence, "behind"));
	device.behind_steps = true;
	judge();
	CHECK(says(found.ruled_out[0].evidence, "200 steps does not grow; it failed behind them"));
}

TEST(driver_failures_are_evidence_not_ooms)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	device.request.driver_failures = 3;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(device.request.failures, 1);
}

TEST(caught_failure_is_explained_but_no_problem)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	device.request.outcome = FAILURE_CAUGHT;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(found.status, STATUS_OK);
}

TEST(memory_fraction_is_a_limit)
{
	begin(24, 1, 14, 9.2, 9.5);
	device.request.driver_failures = 0;
	device.request.limit_bytes = G(10);
	judge();
	CHECK(only(VERDICT_LIMIT));
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(0.5));
	device.request.limit_bytes = EVIDENCE_UNKNOWN;
	judge();
	CHECK(only(VERDICT_LIMIT));
	CHECK_EQ(verdict_certainty(held(VERDICT_LIMIT)->confidence), CERTAINTY_MEDIUM);
}

TEST(sum_fits_but_no_hole_does)
{
	begin(60, 25.96, 23.04, 33.5, 36.51);
	device.pool.largest_hole = G(1.1);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK_EQ(held(VERDICT_FRAGMENTATION)->bytes, G(36.51) - G(33.5));
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "expandable_segments:True"));
	CHECK(out(VERDICT_CAPACITY));
	device.pool.expandable = true;
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK(!strstr(held(VERDICT_FRAGMENTATION)->advice, "expandable_segments:True"));
}

/* 3 GiB short in one piece, 4 GiB unused, which do for this request; the step would have asked for 9 GiB. */
TEST(the_rest_of_the_step_would_not_fit)
{
	begin(60, 4, 1, 50, 54);
	device.request.rise = G(9);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(4));
	CHECK(says(held(VERDICT_CAPACITY)->evidence, "this one rises by 9.00 GiB from here: short by 4.00 GiB"));
	CHECK(says(held(VERDICT_CAPACITY)->advice, "at least 4.00 GiB less"));
	CHECK(out(VERDICT_FRAGMENTATION));
	device.request.rise = G(5);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

/* In a first step nobody knows what it would still have asked for. */
TEST(holes_in_a_first_step)
{
	begin(60, 4, 1, 50, 54);
	device.request.rise = EVIDENCE_UNKNOWN;
	judge();
	CHECK_EQ((int)found.held_count, 2);
	CHECK(found.held[0].kind == VERDICT_CAPACITY && found.held[1].kind == VERDICT_FRAGMENTATION);
	CHECK(says(found.held[0].evidence, "no earlier step says what would still have been asked for"));
	CHECK(verdict_certainty(found.held[1].confidence) == CERTAINTY_LOW);
	CHECK(says(found.held[1].evidence, "no earlier step says what would still have been asked for"));
	CHECK(verdict_certainty(found.held[0].confidence) == CERTAINTY_MEDIUM); /* it may be the holes */
	begin(60, 4, 1, 46.3, 54); /* 4.7 GiB would be left behind it, 8 % of the device are 4.8 */
	device.request.rise = EVIDENCE_UNKNOWN;
	judge();
	CHECK(found.held_count == 2 && found.held[0].kind == VERDICT_CAPACITY);
}

/* Enough would be left to go on with, as far as anybody knows. */
TEST(large_holes_in_a_first_step)
{
	begin(60, 4, 1, 35, 54);
	device.pool.largest_hole = G(2);
	device.request.rise = EVIDENCE_UNKNOWN;
	judge();
	CHECK_EQ((int)found.held_count, 1);
	CHECK(found.held[0].kind == VERDICT_FRAGMENTATION);
	CHECK_EQ(found.held[0].bytes, G(19));
	CHECK(verdict_certainty(found.held[0].confidence) == CERTAINTY_MEDIUM);
	CHECK(says(found.held[0].evidence, "no earlier step says what would still have been asked for"));
	begin(60, 4, 1, 46.1, 54);
	device.request.rise = EVIDENCE_UNKNOWN;
	judge();
	CHECK(found.held_count == 1 && found.held[0].kind == VERDICT_FRAGMENTATION);
}

TEST(who_pins_is_named)
{
	static const struct evidence_pin pins[] = { { "train.py:7 keep", G(0.5), G(4) },
						    { "train.py:9 cache", G(0.1), G(1) } };
	begin(60, 4, 1, 50, 54);
	device.pins.items = pins;
	device.pins.count = 2;
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK(says(held(VERDICT_FRAGMENTATION)->evidence,
		   "train.py:7 keep pins segments with 4.00 GiB unused by 512.0 MiB of blocks"));
	CHECK(!strcmp(held(VERDICT_FRAGMENTATION)->sites[1], "train.py:9 cache"));
}

TEST(holes_of_other_streams_are_none)
{
	begin(60, 4, 1, 50, 54);
	device.pool.apart = G(3);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_FRAGMENTATION));
}

/* The failing request's pool has 0.5 GiB unused; graphs have `unused` GiB more of their own. */
static void graphs(double unused, unsigned captures, unsigned pools)
{
	begin(24, 2, 0.5, 20, 20.5 + unused);
	device.pool.largest_hole = G(0.3);
	device.pool.graphs = (struct evidence_graphs){
		.captures = captures, .pools = pools, .reserved = G(unused + 1), .allocated = G(1), .unused = G(unused)
	};
	judge();
}

TEST(holes_of_graphs_are_no_fragmentation)
{
	graphs(2.5, 8, 8);
	CHECK(only(VERDICT_RETAINED));
	CHECK_EQ(held(VERDICT_RETAINED)->bytes, G(2.5));
	CHECK(says(held(VERDICT_RETAINED)->evidence, "private pools of 8 CUDA graphs keep 2.50 GiB"));
	CHECK(says(held(VERDICT_RETAINED)->advice, "graph_pool_handle"));
	CHECK(out(VERDICT_FRAGMENTATION) && out(VERDICT_CAPACITY));
	graphs(2.5, 8, 1); /* they share one already */
	CHECK(only(VERDICT_RETAINED));
	CHECK(!strstr(held(VERDICT_RETAINED)->advice, "graph_pool_handle"));
	graphs(0.9, 8, 8); /* too little of it */
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_FRAGMENTATION));
	graphs(2.5, 8, 8);
	device.pool.graphs = (struct evidence_graphs){ 0 }; /* the same holes in the common pool */
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

/* Both would have done: holes of the common pool, or what graphs keep; the latter only if it is enough by itself. */
TEST(holes_of_both)
{
	begin(24, 2, 0.5, 16, 21.5);
	device.pool.largest_hole = G(0.3);
	device.pool.graphs = (struct evidence_graphs){ .captures = 1, .pools = 1, .reserved = G(3), .unused = G(2.5) };
	judge();
	CHECK(held(VERDICT_FRAGMENTATION) && held(VERDICT_RETAINED));
	CHECK_EQ(held(VERDICT_FRAGMENTATION)->bytes, G(3));
	device.pool.graphs.unused = G(1.4);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

TEST(a_capture_cannot_use_the_common_pool)
{
	begin(24, 2, 0.5, 16, 21);
	device.pool.largest_hole = 0;
	device.pool.graphs = (struct evidence_graphs){ .captures = 1,
						       .pools = 1,
						       .reserved = G(1),
						       .allocated = G(1),
						       .capturing = true,
						       .common_unused = G(5),
						       .common_idle = G(4) };
	judge();
	CHECK(only(VERDICT_RETAINED));
	CHECK_EQ(held(VERDICT_RETAINED)->bytes, G(4));
	CHECK(says(held(VERDICT_RETAINED)->evidence, "in a capture"));
	CHECK(says(held(VERDICT_RETAINED)->advice, "empty_cache"));
	device.pool.graphs.common_idle = 0; /* nothing of it could be returned */
	judge();
	CHECK(only(VERDICT_CAPACITY));
}

TEST(graphs_beside_nccl)
{
	begin(24, 1.5, 0.1, 18, 20.5);
	device.request.caller = CALLER_COMM;
	device.request.caller_name = "NCCL";
	device.pool.graphs = (struct evidence_graphs){
		.captures = 3, .pools = 3, .reserved = G(3), .allocated = G(0.5), .unused = G(2.5)
	};
	judge();
	CHECK(only(VERDICT_RETAINED));
	CHECK(says(held(VERDICT_RETAINED)->evidence, "3 CUDA graphs"));
}

TEST(idle_cache_is_no_fragmentation)
{
	begin(24, 0, 2, 5, 21);
	device.pool.free_segments = G(15.9);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_FRAGMENTATION));
}

TEST(holes_of_a_full_device_are_fragmentation)
{
	begin(24, 0, 0.5, 12, 23);
	device.pool.free_segments = G(0.5);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

/* Replayed: `fits` under it, or else so much reserved where nothing failed. */
static void setting(size_t i, const char *name, bool fits, double spare, double reserved)
{
	device.pool.replay.known = true;
	device.pool.replay.settings[i] = (struct evidence_setting){ name, fits, G(spare), G(reserved), 0 };
	device.pool.replay.count = i + 1;
}

/* It would fail in the same step again. */
TEST(a_setting_that_grants_one_request_is_no_help)
{
	begin(24, 2, 0.5, 17, 20);
	device.request.rise = G(3.4);
	setting(0, "expandable_segments:True", true, 1.4, 20);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice,
		   "expandable_segments:True: replayed with it this request fits"));
	setting(0, "expandable_segments:True", true, 1.3, 20);
	judge();
	CHECK(says(
		held(VERDICT_FRAGMENTATION)->advice,
		"no setting of the allocator helps for long (1 replayed; with expandable_segments:True this request fits, "
		"1.30 GiB to spare)"));
	device.pool.replay.settings[0].unused = G(0.1);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice,
		   "expandable_segments:True: replayed with it this request fits"));
	device.request.rise = EVIDENCE_UNKNOWN; /* as much again will do */
	device.pool.replay.settings[0].spare = G(1.91);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "with it this request fits, 1.91 GiB to spare"));
	device.pool.replay.settings[0].spare = G(1.89);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "for long"));
}

/* Each needs more than those before: holes would have been filled soon, if that is twice as much as they are. */
TEST(steps_that_need_more_and_more)
{
	begin(24, 2, 0.5, 20, 22);
	device.step_first = G(15);
	device.step_latest = G(19.1);
	judge();
	CHECK(only(VERDICT_CAPACITY) && out(VERDICT_FRAGMENTATION));
	CHECK(says(held(VERDICT_CAPACITY)->advice,
		   "Each step needs more than those before, 15.00 GiB at first and 19.10 GiB lately"));
	device.step_latest = G(18.9); /* later, but they would */
	judge();
	CHECK(found.held_count == 2 && found.held[0].kind == VERDICT_CAPACITY &&
	      found.held[1].kind == VERDICT_FRAGMENTATION);
	CHECK(verdict_certainty(found.held[0].confidence) == CERTAINTY_MEDIUM &&
	      verdict_certainty(found.held[1].confidence) == CERTAINTY_LOW);
	device.step_latest = G(16.1); /* less than a twentieth of the device is no cause */
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK(says(held(VERDICT_FRAGMENTATION)->evidence,
		   "each step needs more than those before (15.00 GiB at first, 16.10 GiB lately)"));
}

/* What leaks beside the pool is one cause, and no second one; what does not grow there still is. */
TEST(a_leak_outside_of_the_pool)
{
	begin(24, 2, 0.5, 12, 12);
	device.own_other = G(11.5);
	parts[0] = (struct evidence_part){ "the program", G(11.2), false };
	device.parts.items = parts;
	device.parts.count = 1;
	judge();
	CHECK(only(VERDICT_OUTSIDE_POOL));
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 10);
	growths[0].outside_pool = true;
	judge();
	CHECK(only(VERDICT_LEAK) && out(VERDICT_OUTSIDE_POOL));
	CHECK(says(held(VERDICT_LEAK)->advice, "nothing gives them back to the driver"));
	growths[0].outside_pool = false;
	judge();
	CHECK(held(VERDICT_LEAK) && held(VERDICT_OUTSIDE_POOL));
}

/* A graph has nodes on the heap, about one for a few blocks. */
TEST(a_graph_that_is_none)
{
	begin(24, 2, 0.5, 22, 23);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 10);
	growths[0].category = CATEGORY_activations;
	growths[0].tensors = 3;
	growths[0].block_bytes = G(0.1);
	judge();
	CHECK(says(held(VERDICT_LEAK)->advice, "detach()")); /* nobody knows */
	device.graph_nodes = 25;
	judge();
	CHECK(says(held(VERDICT_LEAK)->advice, "detach()"));
	device.graph_nodes = 24;
	judge();
	CHECK(!strstr(held(VERDICT_LEAK)->advice, "detach()") && !strstr(held(VERDICT_LEAK)->advice, "graph"));
}

/* What the host's allocators keep explains no failure of a device, however much it is; of one that was caught nobody
 * died. */
TEST(the_host_stands_behind_a_device_that_failed)
{
	begin(24, 2, 0.5, 23, 23);
	evidence.host.sampled = true;
	evidence.host.memory = G(32);
	evidence.host.rss_anon = G(20);
	evidence.host.live = G(1);
	evidence.host.kept = G(19);
	judge();
	CHECK(found.held_count == 2 && found.held[0].kind == VERDICT_CAPACITY &&
	      found.held[1].kind == VERDICT_RETAINED);
	device.request.outcome = FAILURE_CAUGHT;
	judge();
	CHECK(found.held_count == 2 && found.held[0].kind == VERDICT_RETAINED);
}

TEST(advice_is_what_the_replay_says)
{
	begin(24, 2, 0.5, 17, 20);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice,
		   "expandable_segments:True can win up to 3.00 GiB here (not replayed)"));
	setting(0, "expandable_segments:True", true, 1, 20);
	setting(1, "max_split_size_mb:64", true, 1.5, 20);
	setting(2, "roundup_power2_divisions:8", false, 9, 20);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK_EQ(held(VERDICT_FRAGMENTATION)->bytes, G(3));
	CHECK(says(held(VERDICT_FRAGMENTATION)->evidence, "packed without holes the pool needs 3.00 GiB less"));
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice,
		   "max_split_size_mb:64: replayed with it this request fits, 1.50 GiB to spare; so it does with "
		   "expandable_segments:True (1.00 GiB)"));
	CHECK(!strstr(held(VERDICT_FRAGMENTATION)->advice, "roundup"));
}

TEST(advice_that_does_not_help_is_not_given)
{
	begin(24, 2, 0.5, 17, 20);
	setting(0, "expandable_segments:True", false, 0, 20);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "no setting of the allocator helps (1 replayed): use fewer"));
	CHECK(!strstr(held(VERDICT_FRAGMENTATION)->advice, "expandable"));
	device.pool.replay.sizes_unknown = true; /* what they need may be less */
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "(not replayed)"));
}

TEST(no_fragmentation_means_that_no_packing_would_have_helped)
{
	begin(24, 4, 0.5, 17, 20);
	judge();
	CHECK(out(VERDICT_FRAGMENTATION));
	for (size_t i = 0; i < found.ruled_out_count; i++)
		if (found.ruled_out[i].kind == VERDICT_FRAGMENTATION)
			CHECK(says(found.ruled_out[i].evidence, "less than 4.00 GiB: no packing would have helped"));
	begin(24, 3, 0.5, 17, 20); /* across streams it would have */
	device.pool.apart = G(1);
	judge();
	for (size_t i = 0; i < found.ruled_out_count; i++)
		if (found.ruled_out[i].kind == VERDICT_FRAGMENTATION)
			CHECK(!strstr(found.ruled_out[i].evidence, "no packing"));
	setting(0, "max_split_size_mb:64", true, 0.2, 20); /* and here is how */
	judge();
	CHECK(held(VERDICT_FRAGMENTATION));
	CHECK(says(held(VERDICT_FRAGMENTATION)->evidence, "3.00 GiB unused in the pool for all sizes and streams"));
}

TEST(settings_of_a_full_device_are_replayed)
{
	begin(24, 0, 0.5, 12, 23);
	device.pool.free_segments = G(0.5);
	device.pool.replay.reserved = G(23);
	setting(0, "expandable_segments:True", true, 0, 14);
	setting(1, "max_split_size_mb:64", true, 0, 22.9);
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice,
		   "expandable_segments:True: replayed with it the pool reserves 9.00 GiB less at most"));
	setting(0, "max_split_size_mb:64", true, 0, 22.9); /* not worth the name */
	judge();
	CHECK(says(held(VERDICT_FRAGMENTATION)->advice, "no setting of the allocator helps (1 replayed)"));
}

TEST(a_cache_is_emptied_only_where_that_helps)
{
	begin(16, 0, 0, 10, 14.5);
	device.request = (struct evidence_request){ .failed = true,
						    .bytes = G(2),
						    .caller = CALLER_COMM,
						    .caller_name = "NCCL",
						    .limit_bytes = EVIDENCE_UNKNOWN };
	device.free = G(0.5);
	device.pool.replay.known = true;
	device.pool.replay.cached = G(4);
	judge();
	CHECK(held(VERDICT_RETAINED));
	CHECK(says(held(VERDICT_RETAINED)->advice, "torch.cuda.empty_cache(): replayed, that gives 4.00 GiB)"));
	device.pool.replay.cached = G(1);
	judge();
	CHECK(out(VERDICT_RETAINED));
}

TEST(driver_pool_is_not_judged_as_ours)
{
	begin(24, 4, 1, 0, 0);
	device.pool = (struct evidence_pool){ .driver_pool = true, .largest_hole = EVIDENCE_UNKNOWN };
	judge();
	CHECK(!held(VERDICT_FRAGMENTATION) && !held(VERDICT_LEAK));
	for (size_t i = 0; i < found.unknown_count; i++)
		CHECK(found.unknown[i].kind != VERDICT_FRAGMENTATION);
}

TEST(nccl_beside_a_full_cache)
{
	begin(24, 0.5, 0.1, 8, 23.2);
	device.request.caller = CALLER_COMM;
	device.request.caller_name = "NCCL";
	judge();
	CHECK(only(VERDICT_RETAINED));
	CHECK(says(held(VERDICT_RETAINED)->evidence, "NCCL"));
	CHECK(out(VERDICT_CAPACITY));
}

TEST(serving_engine_takes_90_percent_at_once)
{
	begin(24, 0, 2.4, 21, 21.6);
	growth(0, GROWTH_JUMP, CERTAINTY_HIGH, 21);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_LEAK));
}

TEST(neighbour_that_starts_later)
{
	begin(24, 1, 0.2, 9.9, 10);
	neighbour(0, 200, 13.5, 0);
	judge();
	CHECK(only(VERDICT_OTHER_PROCESS));
	CHECK(out(VERDICT_LEAK));
}

TEST(neighbour_that_left_before_the_sample)
{
	begin(24, 1, 0.2, 9.9, 10);
	device.unexplained = (int64_t)G(13.5);
	judge();
	CHECK(only(VERDICT_OTHER_PROCESS));
	CHECK_EQ(verdict_certainty(held(VERDICT_OTHER_PROCESS)->confidence), CERTAINTY_MEDIUM);
}

TEST(old_neighbour_is_not_the_cause_of_a_leak)
{
	begin(24, 0.05, 0.01, 13, 13.2);
	neighbour(0, 200, 10.4, 10.4);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 11);
	judge();
	CHECK(only(VERDICT_LEAK));
	CHECK(out(VERDICT_OTHER_PROCESS));
}

TEST(neighbours_nobody_sampled_are_unknown)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	device.neighbours_known = false;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(found.unknown_count > 0, 1);
	CHECK_EQ(verdict_certainty(held(VERDICT_CAPACITY)->confidence), CERTAINTY_MEDIUM);
}

TEST(neighbours_cache_is_retained)
{
	begin(24, 1, 0.2, 9.9, 10);
	neighbour(0, 200, 13.5, 13.5);
	neighbours[0].traced = true;
	neighbours[0].pool_unused = G(9);
	judge();
	CHECK(held(VERDICT_RETAINED) && held(VERDICT_OTHER_PROCESS));
}

/* Of a DataLoader, say: not everybody's jobs. */
TEST(workers_that_it_started_itself)
{
	begin(24, 1, 0.5, 9.9, 10);
	neighbour(0, 200, 6.5, 0);
	neighbour(1, 201, 6.0, 0);
	neighbours[0].worker = true;
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "2 neighbours hold 52.1 % of cuda:0"));
	neighbours[1].worker = true;
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "2 workers that it started itself hold 52.1 % of cuda:0"));
	CHECK(says(held(VERDICT_OTHER_PROCESS)->advice, "let workers keep nothing on cuda:0"));
	device.neighbours.count = 1;
	judge();
	CHECK(says(held(VERDICT_OTHER_PROCESS)->evidence, "200, a worker that it started itself, holds 27.1 %"));
}

TEST(another_device_has_room)
{
	begin(24, 2, 0.5, 22, 23);
	device.roomiest.name = "cuda:1";
	device.roomiest.total = G(24);
	device.roomiest.free = G(1.5); /* just what is missing */
	judge();
	CHECK(says(held(VERDICT_CAPACITY)->advice,
		   "put a part of it on cuda:1, which had 1.50 GiB free at its fullest, or need at least"));
	device.roomiest.free--;
	judge();
	CHECK(!strstr(held(VERDICT_CAPACITY)->advice, "cuda:1"));
	device.roomiest.free = G(1.5);
	device.roomiest.total = G(31); /* of a large one that is little */
	judge();
	CHECK(!strstr(held(VERDICT_CAPACITY)->advice, "cuda:1"));
	device.roomiest.name = NULL;
	judge();
	CHECK(!strstr(held(VERDICT_CAPACITY)->advice, "at its fullest"));
}

TEST(copies_on_purpose_are_small_or_apart)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	copied(0.2, 2, 40);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_COPIES));
}

TEST(copies_without_a_failure_are_nobodys_business)
{
	begin(24, 0, 3, 20, 20.5);
	copied(9, 2, 40);
	judge();
	CHECK_EQ(found.held_count, 0);
}

TEST(phase_that_needs_more_for_a_moment)
{
	begin(24, 3, 1, 22.5, 22.6);
	phase(0, "train", 100, 8, 16, false);
	phase(1, "evaluate", 100, 8, 22.5, true);
	judge();
	CHECK(only(VERDICT_PHASE_PEAK));
	CHECK(out(VERDICT_CAPACITY));
	phase(0, "train", 100, 8, 23.5, false);
	phase(1, "evaluate", 100, 8, 22.5, true);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_PHASE_PEAK));
}

TEST(a_line_of_the_loop_is_no_phase)
{
	begin(24, 3, 1, 22.5, 22.6);
	phase(0, "train.py:31", 100, 8, 9, false);
	phase(1, "train.py:30", 100, 8, 22.5, true);
	phases[1].line = phases[0].line = true;
	phases[0].times = phases[1].times = 40;
	phases[1].after_steps = true;
	phases[1].steps = 60;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	phases[1].times = 2;
	judge();
	CHECK(only(VERDICT_PHASE_PEAK));
	phases[1].steps = 3;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	phases[1].steps = 60;
	phases[1].after_steps = false;
	judge();
	CHECK(only(VERDICT_CAPACITY));
}

TEST(a_leaks_last_holes_are_no_fragmentation)
{
	begin(16, 0.33, 0.27, 14.5, 15.3);
	growth(0, GROWTH_ACCELERATING, CERTAINTY_HIGH, 7.4);
	judge();
	CHECK(only(VERDICT_LEAK));
	CHECK(out(VERDICT_FRAGMENTATION));
}

TEST(outside_the_pool)
{
	begin(24, 1, 0.3, 18, 18.2);
	device.own_other = G(5);
	parts[0] = (struct evidence_part){ "context", G(0.5), true };
	parts[1] = (struct evidence_part){ "NCCL", G(4.5), false };
	device.parts.items = parts;
	device.parts.count = 2;
	judge();
	CHECK(only(VERDICT_OUTSIDE_POOL));
	CHECK_EQ(held(VERDICT_OUTSIDE_POOL)->bytes, G(4.5));
	parts[1].bytes = G(0.4);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(out(VERDICT_OUTSIDE_POOL));
}

TEST(physical_memory_that_is_mapped_nowhere)
{
	begin(24, 1, 0.3, 0, 0);
	device.pool.known = false;
	device.own_other = G(20);
	device.unmapped = G(18);
	judge();
	CHECK(only(VERDICT_OUTSIDE_POOL));
	CHECK_EQ(held(VERDICT_OUTSIDE_POOL)->bytes, G(18));
	device.unmapped = G(0.2);
	judge();
	CHECK(only(VERDICT_CAPACITY));
}

TEST(mapped_files_are_no_leak)
{
	host(32, 20, 0, 4);
	host_growth(GROWTH_LINEAR, 9);
	growths[0].file_backed = true;
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_LEAK));
}

TEST(copy_on_write_is_no_leak)
{
	host(32, 20, 0, 4);
	evidence.host.copied = G(3);
	judge();
	CHECK_EQ(found.held_count, 0);
	for (size_t i = 0; i < found.ruled_out_count; i++)
		if (found.ruled_out[i].kind == VERDICT_LEAK)
			CHECK(says(found.ruled_out[i].evidence, "workers copied 3.00 GiB"));
}

TEST(copies_on_write_are_what_pressure_can_be_relieved_of)
{
	host(32, 0.6, 0, 30);
	judge();
	CHECK(held(VERDICT_HOST_PRESSURE) && says(held(VERDICT_HOST_PRESSURE)->advice, "the host ledger shows"));
	evidence.host.copied = G(12);
	judge();
	CHECK(held(VERDICT_HOST_PRESSURE) &&
	      says(held(VERDICT_HOST_PRESSURE)->advice, "copied 12.00 GiB of what they inherited"));
}

TEST(pinned_cache_that_fills_is_no_leak)
{
	host(32, 20, 0, 4);
	host_growth(GROWTH_SATURATING, 1);
	judge();
	CHECK_EQ(found.held_count, 0);
}

TEST(host_leak)
{
	host(32, 20, 0, 4);
	host_growth(GROWTH_LINEAR, 2);
	judge();
	CHECK(only(VERDICT_LEAK));
}

/* Tensors that a line keeps on a device have their structures on the heap. */
static void leak_on_both(const char *site, bool arenas, double on_device)
{
	begin(24, 48.0 / 1024, 9.25 / 1024, 23.62, 23.70);
	growth(0, GROWTH_ACCELERATING, CERTAINTY_HIGH, on_device);
	growths[1] = growths[0];
	growths[1].bytes = 100 * MIB;
	growths[1].site = site;
	growths[1].arenas = arenas;
	growths[1].fails_step = 20000;
	evidence.host.memory = G(32);
	evidence.host.live_peak = G(1);
	evidence.host.growth_known = true;
	evidence.host.growth.items = growths + 1;
	evidence.host.growth.count = 1;
	judge();
}

TEST(heap_of_what_leaks_on_a_device_is_no_second_leak)
{
	leak_on_both("train.py:73 save", false, 6.67);
	CHECK_EQ(found.held_count, 1);
	CHECK(held(VERDICT_LEAK)->device && out(VERDICT_LEAK));
	for (size_t i = 0; i < found.ruled_out_count; i++)
		if (found.ruled_out[i].kind == VERDICT_LEAK)
			CHECK(says(found.ruled_out[i].evidence, "belongs to what train.py:73 save keeps on"));
	leak_on_both("train.py:80 other", false, 6.67);
	CHECK_EQ(found.held_count, 2);
	leak_on_both("train.py:80 other", true, 6.67);
	CHECK_EQ(found.held_count, 1);
	leak_on_both("train.py:73 save", false, 0.05);
	CHECK(held(VERDICT_LEAK) && !held(VERDICT_LEAK)->device);
}

TEST(a_small_part_of_what_grows_is_not_foreseen)
{
	host(32, 20, 0, 4);
	host_growth(GROWTH_LINEAR, 2);
	growths[1] = growths[0];
	growths[1].bytes = 4 * MIB;
	growths[1].site = "train.py:80 other";
	growths[0].fails_step = growths[1].fails_step = 20000;
	evidence.host.growth.count = 2;
	judge();
	CHECK(!held(VERDICT_LEAK)->sites[1]);
}

TEST(arenas_after_a_spike_are_retained)
{
	host(32, 20, 0, 6);
	evidence.host.live_peak = G(6);
	evidence.host.live = G(1);
	evidence.host.kept = G(5);
	judge();
	CHECK(only(VERDICT_RETAINED));
	CHECK_EQ(held(VERDICT_RETAINED)->bytes, G(5));
}

TEST(page_cache_is_no_pressure)
{
	host(32, 12, 0, 4);
	evidence.host.file = G(16);
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK(out(VERDICT_HOST_PRESSURE));
}

TEST(cgroup_limit)
{
	host(32, 20, 0, 7.9);
	evidence.host.limit = G(8);
	evidence.host.oom_kills = 1;
	evidence.host.killed = true;
	judge();
	CHECK(only(VERDICT_LIMIT));
	CHECK_EQ(found.status, STATUS_PROBLEM);
}

TEST(nearly_all_of_a_cgroup)
{
	host(64, 50, 0, 7.6);
	evidence.host.limit = G(8);
	judge();
	CHECK(only(VERDICT_HOST_PRESSURE));
	evidence.host.anon = G(4);
	evidence.host.file = G(3.9);
	judge();
	CHECK_EQ(found.held_count, 0);
}

TEST(shared_memory_full)
{
	host(32, 20, 0, 4);
	evidence.host.shm_total = 64 * MIB;
	evidence.host.shm_used = 64 * MIB;
	judge();
	CHECK(only(VERDICT_HOST_PRESSURE));
	CHECK(says(held(VERDICT_HOST_PRESSURE)->evidence, "/dev/shm is full"));
}

TEST(nothing_known_is_said)
{
	begin(24, 0, 1, 1, 1);
	evidence.devices.count = 0;
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK_EQ(found.unknown_count, 1);
	CHECK_EQ(found.status, STATUS_OK);
}

TEST(failure_without_explanation_is_inconclusive)
{
	begin(24, 1, 20, 1, 1.5);
	device.request.caller = CALLER_PROGRAM;
	judge();
	CHECK_EQ(found.held_count, 0);
	CHECK_EQ(found.status, STATUS_INCONCLUSIVE);
}

/* What grows is as sure as its growth is, which knows what was lost; other causes are less so. */
TEST(losses_lower_the_confidence)
{
	begin(24, 48.0 / 1024, 9.25 / 1024, 23.62, 23.70);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 6.67);
	evidence.complete = false;
	judge();
	CHECK(held(VERDICT_LEAK) && verdict_certainty(held(VERDICT_LEAK)->confidence) == CERTAINTY_HIGH);
	growth(0, GROWTH_LINEAR, CERTAINTY_MEDIUM, 6.67);
	judge();
	CHECK(held(VERDICT_LEAK) && verdict_certainty(held(VERDICT_LEAK)->confidence) == CERTAINTY_MEDIUM);
	device.growth.count = 0;
	judge();
	const double lost = held(VERDICT_CAPACITY)->confidence;
	evidence.complete = true;
	judge();
	CHECK(lost < held(VERDICT_CAPACITY)->confidence);
	verdicts_fini(&found);
}

TEST_MAIN
