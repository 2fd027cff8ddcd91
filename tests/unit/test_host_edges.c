/* Where the rules about the machine's memory change their minds (see test_verdict_edges.c). */
#include "tests/unit/verdicts.h"

static bool now(enum verdict_kind kind)
{
	judge();
	return held(kind) != NULL;
}

static bool nothing(enum verdict_kind kind)
{
	for (size_t i = 0; i < found.unknown_count; i++)
		if (found.unknown[i].kind == kind)
			return false;
	return !held(kind) && !out(kind);
}

static enum growth_certainty certainty(enum verdict_kind kind)
{
	return held(kind) ? verdict_certainty(held(kind)->confidence) : CERTAINTY_LOW;
}

/* 32 GiB, plenty of it available, nothing swapped. */
static void idle_host(void)
{
	host(32, 20, 0, 4);
}

/* ---- limit ----------------------------------------------------------------------------------------------- */

static void killed_in_cgroup(double anon)
{
	host(32, 20, 0, anon);
	evidence.host.limit = G(8);
	evidence.host.oom_kills = 1;
	evidence.host.killed = true;
}

TEST(a_cgroup_kills_at_its_limit)
{
	killed_in_cgroup(6.5);
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_HIGH && held(VERDICT_LIMIT)->confidence <= 1);
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(6.5));
	evidence.host.killed = false; /* it was another process */
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_MEDIUM);
	killed_in_cgroup(6.3); /* less than four fifths */
	CHECK(!now(VERDICT_LIMIT) && WHY_NOT(LIMIT, cgroup_not_full, .used = G(6.3), .limit = G(8)));
	evidence.host.shm_used = G(0.5); /* counts, too */
	CHECK(now(VERDICT_LIMIT));
	killed_in_cgroup(3); /* the rest within a moment */
	evidence.host.limit_killed = true;
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_HIGH &&
	      SAYS(LIMIT, cgroup_used, .used = G(3)) && SAYS(LIMIT, hit_at_once));
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(8));
	evidence.host.available_min = G(1); /* or was it the machine? */
	CHECK(!now(VERDICT_LIMIT));
}

/* Its counters were read by nobody. */
TEST(a_cgroup_may_be_killed_as_a_whole)
{
	killed_in_cgroup(7.5);
	evidence.host.oom_kills = 0;
	evidence.host.killed = false;
	evidence.host.cut_off = true;
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_MEDIUM && !now(VERDICT_HOST_PRESSURE));
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(7.5));
	evidence.host.anon = G(2);
	evidence.host.got_since = G(7);
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_MEDIUM &&
	      SAYS(LIMIT, cgroup_used, .used = G(2)) && SAYS(LIMIT, heaps_got, .bytes = G(7)));
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(8));
	evidence.host.cut_off = false;
	CHECK(!now(VERDICT_LIMIT) && nothing(VERDICT_LIMIT));
}

TEST(a_cgroup_kills_at_its_limit_only)
{
	killed_in_cgroup(7.5);
	evidence.host.limit = G(32); /* no lower than the machine's memory */
	CHECK(!now(VERDICT_LIMIT) && nothing(VERDICT_LIMIT));
	killed_in_cgroup(7.5);
	evidence.host.oom_kills = 0;
	CHECK(!now(VERDICT_LIMIT) && nothing(VERDICT_LIMIT));
	killed_in_cgroup(7.5);
	evidence.host.sampled = false;
	CHECK(!now(VERDICT_LIMIT) && nothing(VERDICT_LIMIT));
	killed_in_cgroup(7.5);
	evidence.host.memory = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_LIMIT) && nothing(VERDICT_LIMIT));
}

TEST(what_a_cgroup_held_may_be_unknown)
{
	killed_in_cgroup(7.5);
	evidence.host.anon = EVIDENCE_UNKNOWN;
	judge();
	CHECK(!held(VERDICT_LIMIT) && !out(VERDICT_LIMIT) && !nothing(VERDICT_LIMIT));
}

static void refused(double asked, double address_used)
{
	idle_host();
	evidence.host.refusal = (struct evidence_refusal){ .pid = 7,
							   .name = "a.out",
							   .ended = "exit 1",
							   .bytes = G(asked),
							   .address_limit = G(4),
							   .address_used = G(address_used),
							   .data_limit = EVIDENCE_UNKNOWN,
							   .data_used = EVIDENCE_UNKNOWN };
}

TEST(losses_lower_confidence_on_hosts)
{
	idle_host();
	host_growth(GROWTH_LINEAR, 2);
	CHECK(now(VERDICT_LEAK) && certainty(VERDICT_LEAK) == CERTAINTY_HIGH);
	evidence.complete = false; /* growth knows by itself what was lost */
	CHECK(now(VERDICT_LEAK) && certainty(VERDICT_LEAK) == CERTAINTY_HIGH);
	refused(1, 3.5);
	evidence.complete = false;
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_MEDIUM);
}

/* ---- who died of a refusal ------------------------------------------------------------------------------- */

TEST(the_limit_that_was_met_is_named)
{
	refused(1, 3.5);
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_HIGH && SAYS(LIMIT, met_ulimit_v));
	CHECK_EQ(held(VERDICT_LIMIT)->bytes, G(4));
	refused(5, 0); /* more than the limit by itself */
	CHECK(now(VERDICT_LIMIT));
	refused(0.5, 3.5); /* fits exactly */
	CHECK(!now(VERDICT_LIMIT) && !nothing(VERDICT_LIMIT) && found.status == STATUS_INCONCLUSIVE);
	evidence.host.refusal.data_limit = G(2);
	evidence.host.refusal.data_used = G(1.6);
	CHECK(now(VERDICT_LIMIT) && SAYS(LIMIT, met_ulimit_d) && held(VERDICT_LIMIT)->bytes == G(2));
}

TEST(one_request_is_more_than_there_is)
{
	refused(33, 1);
	evidence.host.refusal.address_limit = EVIDENCE_UNKNOWN;
	CHECK(now(VERDICT_LIMIT) && held(VERDICT_LIMIT)->bytes == G(33) && found.status == STATUS_PROBLEM);
	evidence.host.refusal.bytes = G(32);
	CHECK(!now(VERDICT_LIMIT) && !nothing(VERDICT_LIMIT) && found.status == STATUS_INCONCLUSIVE);
	evidence.host.memory = EVIDENCE_UNKNOWN; /* nobody looked */
	evidence.host.refusal.bytes = G(100);
	CHECK(!now(VERDICT_LIMIT) && found.status == STATUS_INCONCLUSIVE);
}

TEST(a_runtime_may_have_refused)
{
	idle_host();
	evidence.host.runtime = (struct evidence_runtime){
		.pid = 8, .name = "java", .ended = "exit 1", .bytes = G(0.91), .option = "-Xmx1g", .limit = G(1)
	};
	CHECK(now(VERDICT_LIMIT) && certainty(VERDICT_LIMIT) == CERTAINTY_MEDIUM && held(VERDICT_LIMIT)->bytes == G(1));
	evidence.host.runtime.bytes = G(0.89);
	CHECK(!now(VERDICT_LIMIT) && !nothing(VERDICT_LIMIT) && found.status == STATUS_INCONCLUSIVE);
	evidence.host.runtime.option = NULL;
	evidence.host.runtime.bytes = G(5);
	CHECK(!now(VERDICT_LIMIT) && !nothing(VERDICT_LIMIT) && found.status == STATUS_INCONCLUSIVE);
}

/* ---- files left ------------------------------------------------------------------------------------------ */

TEST(files_that_stay_in_shm)
{
	idle_host();
	CHECK(!now(VERDICT_FILES_LEFT) && nothing(VERDICT_FILES_LEFT));
	evidence.host.shm_left = G(0.1874);
	CHECK(!now(VERDICT_FILES_LEFT));
	evidence.host.shm_left = G(0.1875);
	CHECK(now(VERDICT_FILES_LEFT) && certainty(VERDICT_FILES_LEFT) == CERTAINTY_MEDIUM);
}

/* ---- leak ------------------------------------------------------------------------------------------------ */

TEST(a_leak_matters_by_what_it_cost)
{
	idle_host(); /* 4 GiB at the peak: a twentieth is 0.19 GiB; of the machine 1.6 */
	host_growth(GROWTH_LINEAR, 0.2);
	CHECK(now(VERDICT_LEAK));
	host_growth(GROWTH_LINEAR, 0.18);
	CHECK(!now(VERDICT_LEAK) && out(VERDICT_LEAK));
	evidence.host.live_peak = G(100); /* of several machines, say */
	host_growth(GROWTH_LINEAR, 1.61);
	CHECK(now(VERDICT_LEAK));
	host_growth(GROWTH_LINEAR, 1.59);
	CHECK(!now(VERDICT_LEAK));
	evidence.host.limit = G(8); /* 1.59 are much in a small cgroup */
	CHECK(now(VERDICT_LEAK));
	idle_host();
	evidence.host.live_peak = 100 * MIB;
	host_growth(GROWTH_LINEAR, 0);
	growths[0].bytes = 8 * MIB;
	CHECK(now(VERDICT_LEAK));
	growths[0].bytes = 8 * MIB - 1; /* little, whatever part it is */
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grows_little));
	growths[0].works = false;
	growths[0].outlook = OUTLOOK_GROWS;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, nothing_grows));
	growths[0].bytes = 8 * MIB; /* much, but no leak */
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_GROWS));
	growths[0].outlook = OUTLOOK_SHORT;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_SHORT));
	growths[0].outlook = OUTLOOK_STOPPED;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_STOPPED));
	growths[0].outlook = OUTLOOK_PASSES;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_PASSES));
	growths[0].outlook = OUTLOOK_BACKLOG;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_BACKLOG));
	growths[0].outlook = OUTLOOK_GIVES_WAY;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grew_so, .bytes = 8 * MIB, .how = OUTLOOK_GIVES_WAY));
}

TEST(whose_memory_it_is)
{
	idle_host();
	host_growth(GROWTH_LINEAR, 4);
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, stays) && LACKS(LEAK, of_process) &&
	      !said(held(VERDICT_LEAK), REASON_more_of, FIGURES(.of = "the interpreter's arenas")));
	growths[1] = growths[0];
	growths[1].bytes = G(1);
	evidence.host.growth.count = 2;
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, grew, .bytes = G(4)));
	CHECK(SAYS(LEAK, others_grow_by, .bytes = G(1)) && held(VERDICT_LEAK)->bytes == G(5));
	growths[1].of = "the interpreter's arenas"; /* those of the others */
	CHECK(now(VERDICT_LEAK) && SAYS(LEAK, stays) && LACKS(LEAK, of_process) &&
	      !said(held(VERDICT_LEAK), REASON_more_of, FIGURES(.of = "the interpreter's arenas")));
}

TEST(a_leak_matters_by_what_it_will_cost)
{
	idle_host();
	host_growth(GROWTH_LINEAR, 0.01);
	CHECK(!now(VERDICT_LEAK));
	growths[0].fails_step = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[0].fails_step = 0;
	growths[0].fails_ns = 5000;
	CHECK(now(VERDICT_LEAK));
	growths[1] = growths[2] = growths[0];
	/* it is less than a twentieth of all three ... */
	growths[1].bytes = growths[2].bytes = (uint64_t)(9.6 * (double)growths[0].bytes);
	growths[0].site = "small";
	growths[1].site = "other"; /* a line is named once */
	evidence.host.growth.count = 3;
	judge();
	CHECK(held(VERDICT_LEAK)->sites[1] && !held(VERDICT_LEAK)->sites[2]);
	growths[2].fit.kind = GROWTH_SATURATING; /* ... and more of the two that go on */
	judge();
	CHECK(!strcmp(held(VERDICT_LEAK)->sites[0], "small"));
}

TEST(a_leak_of_the_heap_is_described)
{
	idle_host();
	host_growth(GROWTH_LINEAR, 2);
	growths[0].pid = 77;
	growths[0].per_step = 3 * MIB;
	judge();
	CHECK(SAYS(LEAK, of_process, .pid = 77) && SAYS(LEAK, made_by, .site = "train.py:73 save") &&
	      SAYS(LEAK, grew, .bytes = G(2)) && SAYS(LEAK, each_step, .rate = 3 * MIB));
	CHECK(LACKS(LEAK, same_pace));
	growths[0].per_step = 0;
	growths[0].per_second = MIB;
	growths[0].sites = 3;
	judge();
	CHECK(SAYS(LEAK, each_second, .rate = MIB) && SAYS(LEAK, more_sites, .count = 2) && SAYS(LEAK, same_pace) &&
	      LACKS(LEAK, made_bytes));
	growths[0].site_bytes = G(1.2); /* two of them make most */
	growths[0].second = "train.py:80 log";
	growths[0].second_bytes = G(0.7);
	judge();
	CHECK(SAYS(LEAK, made_bytes, .bytes = G(1.2)) && SAYS(LEAK, one_more_site) &&
	      SAYS(LEAK, comma_second, .second = "train.py:80 log", .bytes = G(0.7)));
	CHECK(SAYS(LEAK, find_holder, .site = "train.py:73 save") &&
	      SAYS(LEAK, and_those_of, .second = "train.py:80 log") && SAYS(LEAK, and_the_rest) &&
	      SAYS(LEAK, one_thing_python));
	CHECK(!strcmp(held(VERDICT_LEAK)->sites[1], "train.py:80 log"));
	growths[0].second_bytes = G(0.19); /* a tenth is worth its name */
	judge();
	CHECK(!held(VERDICT_LEAK)->sites[1] && SAYS(LEAK, more_sites, .count = 2));
	growths[0].second_bytes = G(0.7);
	growths[0].sites = 2;
	judge();
	CHECK(SAYS(LEAK, made_bytes, .bytes = G(1.2)) && LACKS(LEAK, one_more_site) && LACKS(LEAK, more_sites) &&
	      SAYS(LEAK, and_second, .second = "train.py:80 log", .bytes = G(0.7)));
	growths[0].second = NULL;
	judge();
	CHECK(SAYS(LEAK, what_grows_too) && SAYS(LEAK, one_thing_python));
	const char *const python = growths[0].site;
	growths[0].site = "engine.cc:12 keep";
	judge();
	CHECK(SAYS(LEAK, one_thing) && LACKS(LEAK, one_thing_python));
	growths[0].site = python;
	growths[1] = growths[0];
	growths[1].site = "larger";
	growths[1].bytes = G(3);
	growths[1].fit.certainty = CERTAINTY_MEDIUM;
	evidence.host.growth.count = 2;
	judge();
	CHECK_EQ(held(VERDICT_LEAK)->bytes, G(5));
	CHECK(SAYS(LEAK, made_by, .site = "larger") && SAYS(LEAK, one_more_site) && SAYS(LEAK, grew, .bytes = G(3)) &&
	      certainty(VERDICT_LEAK) == CERTAINTY_MEDIUM);
	for (int i = 0; i < 6; i++)
		growths[i] = growths[0];
	evidence.host.growth.count = 6;
	judge();
	CHECK_EQ(held(VERDICT_LEAK)->bytes, G(12));
	evidence.host.growth_known = false;
	judge();
	CHECK(nothing(VERDICT_LEAK));
}

TEST(why_nothing_leaks_on_a_host)
{
	idle_host();
	judge();
	CHECK(WHY_NOT(LEAK, nothing_grows));
	evidence.host.copied = 64 * MIB;
	judge();
	CHECK(WHY_NOT(LEAK, nothing_grows));
	evidence.host.copied = 65 * MIB;
	judge();
	CHECK(WHY_NOT(LEAK, workers_copied));
	host_growth(GROWTH_SATURATING, 2);
	judge();
	CHECK(WHY_NOT(LEAK, grew_so, .how = OUTLOOK_STOPPED));
	host_growth(GROWTH_LINEAR, 2);
	growths[0].file_backed = true;
	judge();
	CHECK(WHY_NOT(LEAK, grew_in_files));
	host_growth(GROWTH_LINEAR, 2);
	growths[0].is_copy = true;
	judge();
	CHECK(WHY_NOT(LEAK, grew_as_copy));
	host_growth(GROWTH_LINEAR, 2);
	growths[0].fit.certainty = CERTAINTY_LOW;
	CHECK(!now(VERDICT_LEAK) && WHY_NOT(LEAK, grows_uncertain, .bytes = G(2)));
}

/* Where the host itself ran out, what tensors need of it is a cause. */
TEST(the_heap_of_a_device_leak_counts_where_the_host_ran_out)
{
	begin(24, 0, 5, 18, 18);
	growth(0, GROWTH_LINEAR, CERTAINTY_HIGH, 3);
	growth(1, GROWTH_LINEAR, CERTAINTY_HIGH, 2);
	device.growth.count = 1;
	evidence.host.memory = G(32);
	evidence.host.growth_known = true;
	evidence.host.growth.items = growths + 1;
	evidence.host.growth.count = 1;
	judge();
	CHECK_EQ(found.held_count, 1);
	evidence.host.failed_bytes = 1;
	judge();
	CHECK_EQ(found.held_count, 2);
	evidence.host.failed_bytes = 0;
	evidence.host.oom_kills = 1;
	judge();
	CHECK_EQ(found.held_count, 2);
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

static const struct verdict *fact(enum verdict_kind kind)
{
	for (size_t i = 0; i < found.fact_count; i++)
		if (found.facts[i].kind == kind)
			return &found.facts[i];
	return NULL;
}

/* What grows while nothing else is freed, and what waits, is told; nobody is accused of it. */
TEST(what_may_only_fill_is_a_fact)
{
	static const struct {
		enum outlook outlook;
		enum verdict_kind kind;
	} rows[] = {
		{ OUTLOOK_GROWS, VERDICT_GROWS },
		{ OUTLOOK_BACKLOG, VERDICT_BACKLOG },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		idle_host();
		host_growth(GROWTH_LINEAR, 2);
		growths[0].works = false;
		growths[0].outlook = rows[i].outlook;
		judge();
		CHECK_EQ(found.held_count, 0);
		CHECK_EQ(found.fact_count, 1);
		CHECK(out(VERDICT_LEAK) && fact(rows[i].kind) &&
		      said(fact(rows[i].kind), REASON_no_leak, FIGURES(.how = rows[i].outlook)));
		CHECK(fact(rows[i].kind) && fact(rows[i].kind)->bytes == G(2) && !fact(rows[i].kind)->advice.count);
		growths[0].bytes = 8 * MIB - 1;
		judge();
		CHECK_EQ(found.fact_count, 0);
		growths[0].bytes = G(2);
		growths[0].fit.certainty = CERTAINTY_LOW;
		judge();
		CHECK_EQ(found.fact_count, 0);
	}
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

TEST(copies_on_a_host_matter_where_it_is_tight)
{
	struct evidence_host *h = &evidence.host;
	host(32, 4, 0, 27.3); /* more than 85 % taken */
	copied(2, 2, 16);
	h->copies.items = copies;
	h->copies.count = 1;
	h->copies_known = true;
	CHECK(now(VERDICT_COPIES) && certainty(VERDICT_COPIES) == CERTAINTY_HIGH);
	CHECK_EQ(held(VERDICT_COPIES)->bytes, G(2));
	copies[0].blocks = 15;
	CHECK(now(VERDICT_COPIES) && certainty(VERDICT_COPIES) == CERTAINTY_MEDIUM);
	copied(1.59, 2, 16); /* less than a twentieth */
	CHECK(!now(VERDICT_COPIES) && out(VERDICT_COPIES));
	h->failed_bytes = G(1.59); /* but what was asked for would have fitted */
	CHECK(now(VERDICT_COPIES));
	h->failed_bytes++;
	CHECK(!now(VERDICT_COPIES) && out(VERDICT_COPIES));
	h->copies_known = false;
	CHECK(!now(VERDICT_COPIES) && nothing(VERDICT_COPIES));
	h->copies_known = true;
	h->failed_bytes = 0;
	copied(2, 2, 16);
	h->anon = G(27.1);
	CHECK(!now(VERDICT_COPIES) && nothing(VERDICT_COPIES));
	h->anon = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_COPIES) && nothing(VERDICT_COPIES));
	h->oom_kills = 1;
	CHECK(now(VERDICT_COPIES));
	h->copies.count = 0;
	CHECK(!now(VERDICT_COPIES) && out(VERDICT_COPIES));
}

/* ---- retained ---------------------------------------------------------------------------------------------- */

static void kept(double kept, double resident)
{
	host(32, 20, 0, resident);
	evidence.host.live_peak = G(resident);
	evidence.host.live = G(resident - kept);
	evidence.host.kept = G(kept);
}

/* However large the machine is. */
TEST(what_allocators_keep_of_a_process)
{
	kept(0.5, 0.99);
	CHECK(now(VERDICT_RETAINED) && certainty(VERDICT_RETAINED) == CERTAINTY_MEDIUM);
	kept(0.5, 1.01);
	CHECK(!now(VERDICT_RETAINED) && out(VERDICT_RETAINED));
	kept(0.499, 0.6);
	CHECK(!now(VERDICT_RETAINED) && out(VERDICT_RETAINED));
	evidence.host.kept_then = G(0.6);
	evidence.host.kept_then_ns = 3000000000;
	CHECK(!now(VERDICT_RETAINED) && WHY_NOT(RETAINED, used_again, .at = 3000000000u, .bytes = G(0.6)));
}

/* What was replayed is said, best first as it comes; what does not help is not advised. */
TEST(what_allocators_keep_is_replayed)
{
	kept(2, 5);
	evidence.host.keeper = 7;
	CHECK(now(VERDICT_RETAINED) && SAYS(RETAINED, replay_heap, .pid = 7));
	evidence.host.heap = (struct evidence_heap){
		.settings = { { .name = "MALLOC_ARENA_MAX=2", .helps = true, .less = G(1.5), .time = 0.5 },
			      { .name = "jemalloc", .less = 1, .time = 2 } },
		.count = 2
	};
	judge();
	CHECK(SAYS(RETAINED, malloc_setting, .setting = "MALLOC_ARENA_MAX=2", .bytes = G(1.5), .times = 0.5));
	CHECK(!said(held(VERDICT_RETAINED), REASON_malloc_setting, FIGURES(.setting = "jemalloc")));
	CHECK(LACKS(RETAINED, gives_once));
	evidence.host.heap.settings[1] =
		(struct evidence_heap_setting){ .name = "malloc_trim(0)", .helps = true, .once = true, .less = G(1) };
	judge();
	CHECK(SAYS(RETAINED, malloc_setting, .setting = "malloc_trim(0)") && SAYS(RETAINED, gives_once));
	evidence.host.heap.settings[1].helps = false;
	evidence.host.heap.settings[0].helps = false;
	judge();
	CHECK(SAYS(RETAINED, no_malloc_setting, .count = 2));
}

TEST(what_allocators_keep)
{
	kept(2, 6.6); /* 30.3 % of what is resident */
	CHECK(now(VERDICT_RETAINED) && certainty(VERDICT_RETAINED) == CERTAINTY_HIGH);
	kept(2, 6.7);
	CHECK(!now(VERDICT_RETAINED) && out(VERDICT_RETAINED));
	kept(1.61, 4); /* 5.03 % of the machine */
	CHECK(now(VERDICT_RETAINED));
	kept(1.59, 4);
	CHECK(!now(VERDICT_RETAINED) && out(VERDICT_RETAINED));
	evidence.host.limit = G(8);
	CHECK(now(VERDICT_RETAINED));
	kept(64.0 / 1024, 0.1);
	evidence.host.memory = G(1);
	CHECK(now(VERDICT_RETAINED));
	evidence.host.kept--;
	CHECK(!now(VERDICT_RETAINED));
	kept(2, 6); /* nothing was freed that could be kept */
	evidence.host.live = G(5.5);
	CHECK(!now(VERDICT_RETAINED) && nothing(VERDICT_RETAINED));
	evidence.host.live = G(5.3);
	CHECK(now(VERDICT_RETAINED));
	evidence.host.live_peak = EVIDENCE_UNKNOWN;
	CHECK(now(VERDICT_RETAINED));
	evidence.host.kept = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_RETAINED) && nothing(VERDICT_RETAINED));
	kept(2, 6);
	evidence.host.rss_anon = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_RETAINED) && nothing(VERDICT_RETAINED));
	kept(2, 6);
	evidence.host.sampled = false;
	CHECK(!now(VERDICT_RETAINED) && nothing(VERDICT_RETAINED));
}

/* ---- pressure ---------------------------------------------------------------------------------------------- */

TEST(swap_that_grew)
{
	host(32, 20, 0.65, 4); /* a fiftieth is 0.64 */
	CHECK(now(VERDICT_HOST_PRESSURE) && certainty(VERDICT_HOST_PRESSURE) == CERTAINTY_HIGH);
	evidence.host.swap_start = G(0.02);
	CHECK(!now(VERDICT_HOST_PRESSURE) && out(VERDICT_HOST_PRESSURE));
	evidence.host.swap_start = G(1); /* it shrank */
	CHECK(!now(VERDICT_HOST_PRESSURE) && WHY_NOT(HOST_PRESSURE, swap_grew));
	evidence.host.swap_peak = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_HOST_PRESSURE));
}

TEST(little_that_was_left)
{
	host(32, 1.59, 0, 28); /* less than a twentieth */
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, were_left, .free = G(1.59), .memory = G(32)));
	CHECK_EQ(held(VERDICT_HOST_PRESSURE)->bytes, G(32) - G(1.59));
	double alone = held(VERDICT_HOST_PRESSURE)->confidence;
	evidence.host.swap_peak = G(2);
	CHECK(now(VERDICT_HOST_PRESSURE) && held(VERDICT_HOST_PRESSURE)->confidence > alone &&
	      held(VERDICT_HOST_PRESSURE)->confidence <= 1);
	host(32, 1.61, 0, 28);
	CHECK(!now(VERDICT_HOST_PRESSURE) &&
	      WHY_NOT(HOST_PRESSURE, at_least_available, .free = G(1.61), .memory = G(32)));
	evidence.host.available_min = EVIDENCE_UNKNOWN;
	CHECK(!now(VERDICT_HOST_PRESSURE) && ruled_out_without(VERDICT_HOST_PRESSURE, REASON_at_least_available));
	evidence.host.oom_kills = 1; /* the machine's */
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, something_killed));
	CHECK(LACKS(HOST_PRESSURE, were_left));
	evidence.host.available_min = G(20); /* somebody was killed, within a limit of their own */
	CHECK(!now(VERDICT_HOST_PRESSURE));
	evidence.host.maybe_killed = true;
	CHECK(now(VERDICT_HOST_PRESSURE));
}

TEST(page_cache_is_mentioned_where_it_is_much)
{
	idle_host();
	evidence.host.file = G(8.1); /* a quarter of the machine */
	judge();
	CHECK(WHY_NOT(HOST_PRESSURE, page_cache, .bytes = G(8.1)));
	evidence.host.file = G(7.9);
	judge();
	CHECK(ruled_out_without(VERDICT_HOST_PRESSURE, REASON_page_cache));
}

TEST(what_cannot_give_way_in_a_cgroup)
{
	host(64, 50, 0, 7.25); /* 90.6 % */
	evidence.host.limit = G(8);
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, cgroup_tight, .limit = G(8)));
	CHECK_EQ(held(VERDICT_HOST_PRESSURE)->bytes, G(7.25));
	CHECK_EQ(certainty(VERDICT_HOST_PRESSURE), CERTAINTY_HIGH);
	evidence.host.anon = G(7.15);
	CHECK(!now(VERDICT_HOST_PRESSURE));
	evidence.host.anon = G(7.9);
	evidence.host.oom_kills = 1; /* a limit that was met */
	CHECK(!now(VERDICT_HOST_PRESSURE) && held(VERDICT_LIMIT));
	evidence.host.oom_kills = 0;
	evidence.host.available_min = G(2); /* the machine has none left, either: that is the worse one */
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, were_left, .free = G(2), .memory = G(64)));
	evidence.host.available_min = G(50);
	evidence.host.swap_peak = G(3);
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, swap_grew, .bytes = G(3)));
	host(32, 20, 0, 30);
	CHECK(!now(VERDICT_HOST_PRESSURE)); /* no cgroup: what is available counts */
}

TEST(full_shared_memory)
{
	idle_host();
	evidence.host.shm_total = G(1);
	evidence.host.shm_used = G(0.96);
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, shm_full));
	CHECK(certainty(VERDICT_HOST_PRESSURE) == CERTAINTY_HIGH && held(VERDICT_HOST_PRESSURE)->confidence <= 1);
	evidence.host.shm_used = G(0.94);
	CHECK(!now(VERDICT_HOST_PRESSURE));
	evidence.host.shm_used = G(0.96);
	evidence.host.swap_peak = G(2); /* worse */
	CHECK(now(VERDICT_HOST_PRESSURE) && SAYS(HOST_PRESSURE, swap_grew, .bytes = G(2)));
	idle_host();
	evidence.host.shm_total = evidence.host.shm_used = 0; /* none is mounted */
	CHECK(!now(VERDICT_HOST_PRESSURE));
}

TEST(copies_of_what_was_inherited)
{
	host(32, 1, 0, 28);
	evidence.host.copied = G(1.61);
	judge();
	CHECK(SAYS(HOST_PRESSURE, fork_copied, .bytes = G(1.61)));
	evidence.host.copied = G(1.59);
	judge();
	CHECK(LACKS(HOST_PRESSURE, fork_copied));
	evidence.host.sampled = false;
	judge();
	CHECK(!held(VERDICT_HOST_PRESSURE) && !out(VERDICT_HOST_PRESSURE) && !nothing(VERDICT_HOST_PRESSURE));
	verdicts_fini(&found);
}

TEST_MAIN
