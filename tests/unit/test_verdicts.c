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
	CHECK(SAYS(COPIES, share_storage, .bytes = G(84)));
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
	CHECK(SAYS(OTHER_PROCESS, neighbours_hold, .percent = 64.8) && SAYS(OTHER_PROCESS, without_either));
	CHECK(SAYS(OTHER_PROCESS, fewer_processes, .count = 3));
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
	CHECK(SAYS(PHASE_PEAK, neighbours_phase, .phase = "evaluate", .pid = 3808634, .need = G(15)));
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
	CHECK(SAYS(LEAK, of_shape, .shape = GROWTH_ACCELERATING));
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
	CHECK(SAYS(LEAK, memory_ends, .ends = { true, 1008, 940, 1090 }));
}

TEST(incident_3_opposite_capacity)
{
	begin(23.69, 2.50, 1.89, 21.45, 21.50);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK(SAYS(CAPACITY, short_by_range, .least = G(0.56), .missing = G(0.61)));
	CHECK(out(VERDICT_FRAGMENTATION) && out(VERDICT_LEAK) && out(VERDICT_OTHER_PROCESS) && out(VERDICT_COPIES));
}

/* By what most of the memory is for, and who holds it. */
TEST(capacity_says_what_to_change)
{
	static const struct {
		enum category most;
		enum reason_kind way;
	} ways[] = {
		{ CATEGORY_activations, REASON_most_activations }, { CATEGORY_parameters, REASON_most_parameters },
		{ CATEGORY_gradients, REASON_most_gradients },     { CATEGORY_optimizer, REASON_most_optimizer },
		{ CATEGORY_checkpoint, REASON_most_checkpoint },   { CATEGORY_kv_cache, REASON_most_kv_cache },
		{ CATEGORY_unknown, REASON_holds_blocks },
	};
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		begin(16, 4, 1, 14, 14.5);
		device.most_for = ways[i].most;
		device.most_for_bytes = ways[i].most == CATEGORY_unknown ? 0 : G(9);
		device.holder.site = "model.py:7 forward";
		device.holder.bytes = G(5);
		device.holder.blocks = 3;
		judge();
		CHECK(SAYS(CAPACITY, need_up_to, .missing = G(3)) &&
		      says(VERDICT_CAPACITY, ways[i].way,
			   FIGURES(.used = device.most_for_bytes, .site = "model.py:7 forward", .bytes = G(5))));
	}
	begin(16, 4, 1, 14, 14.5);
	judge();
	CHECK(SAYS(CAPACITY, smaller_batch));
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
	CHECK(SAYS(CAPACITY, keeps_blocks, .site = "eval.py:9 collect", .blocks = 24, .each = 512 * MIB));
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
	CHECK(SAYS(LEAK, more_sites, .count = 36) && SAYS(LEAK, same_pace));
	CHECK(LACKS(LEAK, and_second) && LACKS(LEAK, comma_second));
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
	CHECK(WHY_NOT(LEAK, steps_keep_nothing, .steps = 200) && found.ruled_out[0].evidence.count == 1);
	device.behind_steps = true;
	judge();
	CHECK(WHY_NOT(LEAK, steps_keep_nothing, .steps = 200) && WHY_NOT(LEAK, failed_behind_steps));
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
	CHECK(SAYS(FRAGMENTATION, expandable_wins));
	CHECK(out(VERDICT_CAPACITY));
	device.pool.expandable = true;
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK(SAYS(FRAGMENTATION, expandable_already) && LACKS(FRAGMENTATION, expandable_wins));
}

/* 3 GiB short in one piece, 4 GiB unused, which do for this request; the step would have asked for 9 GiB. */
TEST(the_rest_of_the_step_would_not_fit)
{
	begin(60, 4, 1, 50, 54);
	device.request.rise = G(9);
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(4));
	CHECK(SAYS(CAPACITY, short_as_steps_rise, .rise = G(9), .missing = G(4)));
	CHECK(SAYS(CAPACITY, need_about, .missing = G(4)));
	device.request.rise_unscaled =
		G(2); /* the step is larger than others: who knows how much of it is its input's */
	judge();
	CHECK(SAYS(CAPACITY, short_as_steps_may, .least = G(2), .rise = G(9), .missing = G(4)));
	CHECK(SAYS(CAPACITY, need_up_to, .missing = G(4)));
	device.request.rise_unscaled = 0;
	CHECK(out(VERDICT_FRAGMENTATION));
	device.request.rise = G(5);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
}

/* As above; no step was seen, but the model that is moved to the device needs 9 GiB in all. */
TEST(the_rest_of_a_model_would_not_fit)
{
	static const struct evidence_setting settings[] = {
		{ .name = "expandable_segments:True", .fits = true, .spare = G(1), .unused = G(4) },
	};
	begin(60, 4, 1, 50, 54);
	device.request.rise = EVIDENCE_UNKNOWN;
	device.request.ahead = G(9);
	device.request.ahead_for = "what is moved from the host";
	device.pool.replay.known = true;
	device.pool.replay.settings[0] = settings[0];
	device.pool.replay.count = 1;
	judge();
	CHECK(only(VERDICT_CAPACITY));
	CHECK_EQ(held(VERDICT_CAPACITY)->bytes, G(4));
	CHECK(SAYS(CAPACITY, short_ahead, .name = "what is moved from the host", .rise = G(9), .missing = G(4)));
	CHECK(SAYS(CAPACITY, need_less, .missing = G(4)) && SAYS(CAPACITY, and_what_comes));
	CHECK_EQ(verdict_certainty(held(VERDICT_CAPACITY)->confidence), CERTAINTY_HIGH);
	CHECK(out(VERDICT_FRAGMENTATION));
	device.request.ahead = G(5); /* that would fit into the holes; what comes after it is not known */
	judge();
	CHECK(found.held_count == 2 && found.held[1].kind == VERDICT_FRAGMENTATION);
	CHECK(SAYS(CAPACITY, rest_ahead, .name = "what is moved from the host", .rise = G(5)));
	begin(60, 4, 1, 54, 54); /* no holes */
	device.request.rise = EVIDENCE_UNKNOWN;
	device.request.ahead = G(9);
	device.request.ahead_for = "the optimizer's state";
	judge();
	CHECK(SAYS(CAPACITY, short_ahead, .name = "the optimizer's state", .rise = G(9), .missing = G(8)));
}

/* In a first step nobody knows what it would still have asked for. */
TEST(holes_in_a_first_step)
{
	begin(60, 4, 1, 50, 54);
	device.request.rise = EVIDENCE_UNKNOWN;
	judge();
	CHECK_EQ((int)found.held_count, 2);
	CHECK(found.held[0].kind == VERDICT_CAPACITY && found.held[1].kind == VERDICT_FRAGMENTATION);
	CHECK(said(&found.held[0], REASON_rest_unknown, FIGURES()));
	CHECK(verdict_certainty(found.held[1].confidence) == CERTAINTY_LOW);
	CHECK(said(&found.held[1], REASON_rest_unknown, FIGURES()));
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
	CHECK(said(&found.held[0], REASON_rest_unknown, FIGURES()));
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
	CHECK(SAYS(FRAGMENTATION, pins_segments, .site = "train.py:7 keep", .pinned = G(4), .bytes = 512 * MIB));
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
	CHECK(SAYS(RETAINED, graphs_keep, .count = 8, .bytes = G(2.5)));
	CHECK(SAYS(RETAINED, share_graph_pool));
	CHECK(out(VERDICT_FRAGMENTATION) && out(VERDICT_CAPACITY));
	graphs(2.5, 8, 1); /* they share one already */
	CHECK(only(VERDICT_RETAINED));
	CHECK(SAYS(RETAINED, fewer_graphs) && LACKS(RETAINED, share_graph_pool));
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
	CHECK(SAYS(RETAINED, asked_in_capture));
	CHECK(SAYS(RETAINED, empty_before_capture));
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
	CHECK(SAYS(RETAINED, graphs_keep, .count = 3));
}

/* What grows on one device does not explain why another one is full, however much it is. */
TEST(another_device_comes_behind_the_one_that_failed)
{
	static struct evidence_device two[2];
	begin(24, 0, 10, 12, 13);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 12);
	two[1] = device;
	two[1].name = "cuda:1";
	begin(24, 2, 1, 22, 22);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 12);
	device.growth.count = 0;
	two[0] = device;
	evidence.devices.items = two;
	evidence.devices.count = 2;
	judge();
	CHECK_EQ(found.held_count, 2);
	CHECK(found.held[0].device == &two[0] && found.held[0].kind == VERDICT_CAPACITY);
	CHECK(found.held[1].device == &two[1] && found.held[1].kind == VERDICT_LEAK);
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
	CHECK(SAYS(FRAGMENTATION, setting_fits, .setting = "expandable_segments:True"));
	setting(0, "expandable_segments:True", true, 1.3, 20);
	judge();
	CHECK(SAYS(FRAGMENTATION, setting_brief, .count = 1, .setting = "expandable_segments:True", .bytes = G(1.3)));
	device.pool.replay.settings[0].unused = G(0.1);
	judge();
	CHECK(SAYS(FRAGMENTATION, setting_fits, .setting = "expandable_segments:True"));
	device.request.rise = EVIDENCE_UNKNOWN; /* as much again will do */
	device.pool.replay.settings[0].spare = G(1.91);
	judge();
	CHECK(SAYS(FRAGMENTATION, setting_fits, .bytes = G(1.91)));
	device.pool.replay.settings[0].spare = G(1.89);
	judge();
	CHECK(SAYS(FRAGMENTATION, setting_brief));
}

TEST(what_was_replayed_as_enough_comes_first)
{
	begin(24, 2, 0.5, 17.4, 20); /* 2.6 GiB in holes */
	device.pool.largest_hole = G(1);
	copied(5, 2, 40);
	judge();
	CHECK(found.held[0].kind == VERDICT_COPIES && held(VERDICT_FRAGMENTATION));
	setting(0, "expandable_segments:True", true, 1, 20);
	judge();
	CHECK(found.held[0].kind == VERDICT_FRAGMENTATION && held(VERDICT_COPIES));
	const uint64_t rise = device.request.rise;
	device.request.rise = EVIDENCE_UNKNOWN; /* nobody knows what is enough for a first step */
	device.pool.replay.settings[0].spare = G(12);
	judge();
	CHECK(found.held[0].kind == VERDICT_COPIES && SAYS(FRAGMENTATION, setting_fits, .bytes = G(12)));
	device.request.rise = rise;
	device.pool.replay.settings[0].spare = G(1);
	device.steps = 10; /* which need more and more: 40 steps later nothing is left of it */
	device.step_pace = G(1) / 40 + 1;
	judge();
	CHECK(found.held[0].kind == VERDICT_COPIES &&
	      SAYS(FRAGMENTATION, for_steps, .steps = 39, .rate = device.step_pace));
	device.step_pace = G(1) / 40;
	judge();
	CHECK(found.held[0].kind == VERDICT_FRAGMENTATION && !SAYS(FRAGMENTATION, for_steps));
	device.step_pace = 0;
	device.pool.replay.settings[0].fits = false;
	judge();
	CHECK(found.held[0].kind == VERDICT_COPIES);
	device.pool.replay.settings[0].fits = true;
	device.copies.count = 0;
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 5); /* which fills the room */
	judge();
	CHECK(found.held[0].kind == VERDICT_LEAK && held(VERDICT_FRAGMENTATION));
	growths[0].fit.certainty = CERTAINTY_MEDIUM;
	judge();
	CHECK(found.held[0].kind == VERDICT_FRAGMENTATION && held(VERDICT_LEAK));
}

/* Each needs more than those before: holes would have been filled soon, if that is twice as much as they are. */
TEST(steps_that_need_more_and_more)
{
	begin(24, 2, 0.5, 20, 22);
	device.step_first = G(15);
	device.step_latest = G(19.1);
	judge();
	CHECK(only(VERDICT_CAPACITY) && out(VERDICT_FRAGMENTATION));
	CHECK(SAYS(CAPACITY, steps_need_more, .first = G(15), .latest = G(19.1)));
	device.step_latest = G(18.9); /* later, but they would */
	judge();
	CHECK(found.held_count == 2 && found.held[0].kind == VERDICT_CAPACITY &&
	      found.held[1].kind == VERDICT_FRAGMENTATION);
	CHECK(verdict_certainty(found.held[0].confidence) == CERTAINTY_MEDIUM &&
	      verdict_certainty(found.held[1].confidence) == CERTAINTY_LOW);
	device.step_latest = G(16.1); /* less than a twentieth of the device is no cause */
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK(SAYS(FRAGMENTATION, steps_will_fill, .first = G(15), .latest = G(16.1)));
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
	growths[0].kind = MODEL_DEVICE;
	judge();
	CHECK(only(VERDICT_LEAK) && out(VERDICT_OUTSIDE_POOL));
	CHECK(SAYS(LEAK, keeps_from_driver));
	growths[0].kind = MODEL_POOL;
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
	CHECK(SAYS(LEAK, keeps_graph)); /* nobody knows */
	device.graph_nodes = 25;
	judge();
	CHECK(SAYS(LEAK, keeps_graph));
	device.graph_nodes = 24;
	judge();
	CHECK(LACKS(LEAK, keeps_graph) && SAYS(LEAK, may_be_hook));
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
	CHECK(SAYS(FRAGMENTATION, expandable_wins, .bytes = G(3)));
	setting(0, "expandable_segments:True", true, 1, 20);
	setting(1, "max_split_size_mb:64", true, 1.5, 20);
	setting(2, "roundup_power2_divisions:8", false, 9, 20);
	judge();
	CHECK(only(VERDICT_FRAGMENTATION));
	CHECK_EQ(held(VERDICT_FRAGMENTATION)->bytes, G(3));
	CHECK(SAYS(FRAGMENTATION, packed_less, .bytes = G(3)));
	CHECK(SAYS(FRAGMENTATION, setting_fits, .setting = "max_split_size_mb:64", .bytes = G(1.5)) &&
	      SAYS(FRAGMENTATION, fits_also, .setting = "expandable_segments:True", .bytes = G(1)));
	CHECK(held(VERDICT_FRAGMENTATION)->advice.count == 3 /* nor a third one */);
}

TEST(advice_that_does_not_help_is_not_given)
{
	begin(24, 2, 0.5, 17, 20);
	setting(0, "expandable_segments:True", false, 0, 20);
	judge();
	CHECK(SAYS(FRAGMENTATION, no_setting, .count = 1) && SAYS(FRAGMENTATION, fewer_sizes_at_oom));
	CHECK(LACKS(FRAGMENTATION, expandable_wins));
	device.pool.replay.sizes_unknown = true; /* what they need may be less */
	judge();
	CHECK(SAYS(FRAGMENTATION, expandable_wins));
}

TEST(no_fragmentation_means_that_no_packing_would_have_helped)
{
	begin(24, 4, 0.5, 17, 20);
	judge();
	CHECK(out(VERDICT_FRAGMENTATION));
	CHECK(WHY_NOT(FRAGMENTATION, too_little, .need = G(4)) && WHY_NOT(FRAGMENTATION, no_packing));
	begin(24, 3, 0.5, 17, 20); /* across streams it would have */
	device.pool.apart = G(1);
	judge();
	CHECK(WHY_NOT(FRAGMENTATION, too_little, .need = G(3)) &&
	      ruled_out_without(VERDICT_FRAGMENTATION, REASON_no_packing));
	setting(0, "max_split_size_mb:64", true, 0.2, 20); /* and here is how */
	judge();
	CHECK(held(VERDICT_FRAGMENTATION));
	CHECK(SAYS(FRAGMENTATION, unused_in_pool, .unused = G(3)) && SAYS(FRAGMENTATION, for_all_sizes));
}

TEST(settings_of_a_full_device_are_replayed)
{
	begin(24, 0, 0.5, 12, 23);
	device.pool.free_segments = G(0.5);
	device.pool.replay.reserved = G(23);
	setting(0, "expandable_segments:True", true, 0, 14);
	setting(1, "max_split_size_mb:64", true, 0, 22.9);
	judge();
	CHECK(SAYS(FRAGMENTATION, setting_saves, .setting = "expandable_segments:True", .bytes = G(9)));
	setting(0, "max_split_size_mb:64", true, 0, 22.9); /* not worth the name */
	judge();
	CHECK(SAYS(FRAGMENTATION, no_setting, .count = 1));
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
	CHECK(SAYS(RETAINED, empty_cache) && SAYS(RETAINED, replayed_gives, .bytes = G(4)));
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
	CHECK(SAYS(RETAINED, asked_beside, .name = "NCCL"));
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
	CHECK(SAYS(OTHER_PROCESS, neighbours_hold, .count = 2, .percent = 52.1, .of = "cuda:0"));
	neighbours[1].worker = true;
	judge();
	CHECK(SAYS(OTHER_PROCESS, workers_hold, .count = 2, .percent = 52.1, .of = "cuda:0"));
	CHECK(SAYS(OTHER_PROCESS, workers_keep_nothing, .of = "cuda:0"));
	device.neighbours.count = 1;
	judge();
	CHECK(SAYS(OTHER_PROCESS, neighbour, .pid = 200) && SAYS(OTHER_PROCESS, own_worker) &&
	      SAYS(OTHER_PROCESS, neighbour_holds, .percent = 27.1));
}

TEST(another_device_has_room)
{
	begin(24, 2, 0.5, 22, 23);
	device.roomiest.name = "cuda:1";
	device.roomiest.total = G(24);
	device.roomiest.free = G(1.5); /* just what is missing */
	judge();
	CHECK(SAYS(CAPACITY, part_elsewhere, .other = "cuda:1", .free = G(1.5)) && SAYS(CAPACITY, need_up_to));
	device.roomiest.free--;
	judge();
	CHECK(LACKS(CAPACITY, part_elsewhere));
	device.roomiest.free = G(1.5);
	device.roomiest.total = G(31); /* of a large one that is little */
	judge();
	CHECK(LACKS(CAPACITY, part_elsewhere));
	device.roomiest.name = NULL;
	judge();
	CHECK(LACKS(CAPACITY, part_elsewhere));
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
	CHECK(WHY_NOT(LEAK, workers_copied, .bytes = G(3)));
}

TEST(copies_on_write_are_what_pressure_can_be_relieved_of)
{
	host(32, 0.6, 0, 30);
	judge();
	CHECK(SAYS(HOST_PRESSURE, need_less_of_machine));
	evidence.host.copied = G(12);
	judge();
	CHECK(SAYS(HOST_PRESSURE, fork_copied, .bytes = G(12)));
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
	CHECK(WHY_NOT(LEAK, kept_with_device, .bytes = 100 * MIB, .site = "train.py:73 save", .of = "cuda:0"));
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
	CHECK(SAYS(HOST_PRESSURE, shm_full));
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
