/*
 * Cohorts of programs that are made up at random: each cell of each site's table is what a list of the same blocks
 * gives that is gone through again for each.
 */
#include "analyzer/timeline/cohorts.h"
#include "analyzer/diagnosis/growth/outlook.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <math.h>

enum { PROCESSES = 2, TRACKS = 4, SITES = 40, MOST = 60000, NONE = -1 };

/* What the process has of one kind on one device. Two kinds of the host have one clock. */
static const struct {
	enum model_kind kind;
	uint32_t device;
	int clock;
} tracks[TRACKS] = { { MODEL_HEAP, MODEL_NO_DEVICE, 0 },
		     { MODEL_MAP, MODEL_NO_DEVICE, 0 },
		     { MODEL_POOL, 0, 1 },
		     { MODEL_POOL, 1, 2 } };

enum { CLOCKS = 3 };

static struct change {
	unsigned process, track, site;
	uint64_t addr, bytes, ns, made_ns;
	bool freed, moves;
	int made_by; /* of what is freed: the change that made it */
} changes[MOST];

static struct block {
	uint64_t addr, bytes;
	unsigned process, track, site;
	int made_by;
} live[MOST];

static size_t change_count, live_count;
static uint64_t seed, now, next_addr;
static struct process processes[PROCESSES];
static struct cohorts *cohorts;

static unsigned choose(unsigned n)
{
	return (unsigned)(random_uniform(&seed) * n);
}

static void begin(uint64_t s)
{
	seed = s * 0x9E3779B97F4A7C15ull + 1;
	for (int i = 0; i < 5; i++)
		random_next(&seed);
	change_count = live_count = 0;
	now = 1000;
	next_addr = 1 << 20;
	for (unsigned i = 0; i < PROCESSES; i++)
		processes[i].id = i;
}

static struct change *note(struct change c)
{
	if (change_count == MOST)
		abort();
	c.ns = now += 1 + choose(1000);
	changes[change_count] = c;
	return &changes[change_count++];
}

static void take_moved(unsigned process, unsigned track, unsigned site, uint64_t bytes, bool moves)
{
	const uint64_t addr = next_addr += bytes + 64;
	note((struct change){ .process = process,
			      .track = track,
			      .site = site,
			      .addr = addr,
			      .bytes = bytes,
			      .moves = moves,
			      .made_by = NONE });
	live[live_count++] = (struct block){ addr, bytes, process, track, site, (int)change_count - 1 };
}

static void take(unsigned process, unsigned track, unsigned site, uint64_t bytes)
{
	take_moved(process, track, site, bytes, false);
}

static struct block drop_moved(size_t i, bool moves)
{
	const struct block b = live[i];
	note((struct change){ .process = b.process,
			      .track = b.track,
			      .site = b.site,
			      .addr = b.addr,
			      .bytes = b.bytes,
			      .made_ns = changes[b.made_by].ns,
			      .freed = true,
			      .moves = moves,
			      .made_by = b.made_by });
	live[i] = live[--live_count];
	return b;
}

static void drop(size_t i)
{
	drop_moved(i, false);
}

static void move(size_t i, uint64_t bytes)
{
	const struct block b = drop_moved(i, true);
	take_moved(b.process, b.track, b.site, bytes, true);
}

static struct model_change change_of(const struct change *c)
{
	return (struct model_change){ .process = &processes[c->process],
				      .kind = tracks[c->track].kind,
				      .site = c->site,
				      .addr = c->addr,
				      .bytes = c->freed ? -(int64_t)c->bytes : (int64_t)c->bytes,
				      .blocks = c->freed ? -1 : 1,
				      .device = tracks[c->track].device,
				      .made_ns = c->freed ? c->made_ns : c->ns,
				      .moves = c->moves,
				      .ns = c->ns };
}

/* `seen`: changes of the first pass. */
static void run(size_t seen, uint64_t before_ns)
{
	cohorts = cohorts_new();
	for (size_t i = 0; i < seen; i++) {
		const struct model_change c = change_of(&changes[i]);
		cohorts_count(cohorts, &c);
	}
	cohorts_begin(cohorts, false);
	for (size_t i = 0; i < change_count; i++) {
		const struct model_change c = change_of(&changes[i]);
		cohorts_change(cohorts, &c, 0, before_ns);
	}
}

static void end(void)
{
	cohorts_free(cohorts);
	cohorts = NULL;
}

/* ---- the truth --------------------------------------------------------------------------------------------- */

static unsigned stretch[MOST]; /* of each change, by its clock */
static bool is_late[MOST];     /* in the last thirty-second */

static void find_stretches(unsigned process, int clock)
{
	double all_bytes = 0, all_blocks = 0, bytes = 0, blocks = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < change_count; i++) {
			const struct change *c = &changes[i];
			if (c->process != process || tracks[c->track].clock != clock)
				continue;
			if (!c->freed && !pass) {
				all_bytes += (double)c->bytes;
				all_blocks++;
			} else if (!c->freed) {
				bytes += (double)c->bytes;
				blocks++;
			}
			const double place = (bytes / (all_bytes + 1) + blocks / (all_blocks + 1)) / 2;
			stretch[i] = (unsigned)(COHORTS * place);
			is_late[i] = place >= 31.0 / 32;
		}
}

/* Sixteen levels to each doubling. */
static uint64_t level_of(uint64_t bytes)
{
	unsigned digits = 0;
	while (bytes >> digits >= 32)
		digits++;
	return bytes >= COHORTS_LEAST ? (uint64_t)digits << 8 | bytes >> digits : 0;
}

/* The number of the track's last change. */
static size_t end_of(unsigned process, unsigned track)
{
	uint64_t bytes = 0, most = 1;
	size_t last = change_count;
	for (size_t i = 0; i < change_count; i++) {
		const struct change *c = &changes[i];
		if (c->process != process || c->track != track)
			continue;
		bytes += c->freed ? -c->bytes : c->bytes;
		if (c->freed || !is_late[i] || level_of(bytes) < most)
			continue;
		most = level_of(bytes);
		last = i;
	}
	return last;
}

/* Of a site; SITES: of all of them. */
static void find_table(unsigned process, unsigned track, unsigned site, size_t last, struct cohort_table *t)
{
	*t = (struct cohort_table){ 0 };
	for (size_t i = 0; i < change_count && i <= last; i++) {
		const struct change *c = &changes[i];
		if (c->process != process || c->track != track || (site != SITES && c->site != site))
			continue;
		if (!c->freed) {
			t->alive[stretch[i]] += (double)c->bytes;
			t->blocks[stretch[i]]++;
			continue;
		}
		const unsigned made = stretch[c->made_by];
		t->alive[made] -= (double)c->bytes;
		t->blocks[made]--;
		if (made == stretch[i])
			t->passing += (double)c->bytes;
		else
			t->died[made][stretch[i]] += (double)c->bytes;
	}
}

static double sum_of(const double *list, unsigned count)
{
	double sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += list[i];
	return sum;
}

static double died_in(const struct cohort_table *t)
{
	double sum = 0;
	for (unsigned i = 0; i < COHORTS; i++)
		sum += sum_of(t->died[i], COHORTS);
	return sum;
}

static bool differ(const struct cohort_table *a, const struct cohort_table *b)
{
	struct cohort_table x = *a, y = *b;
	memset(x.single, 0, sizeof(x.single));
	memset(y.single, 0, sizeof(y.single));
	return memcmp(&x, &y, sizeof(x)) != 0;
}

static struct cohort_table found, truth, sum;

/* Each site's table, and that of all of them, is the truth. */
static void check_tables(void)
{
	unsigned wrong = 0;
	for (unsigned p = 0; p < PROCESSES; p++)
		for (unsigned t = 0; t < TRACKS; t++) {
			find_stretches(p, tracks[t].clock);
			const size_t last = end_of(p, t);
			for (unsigned s = t * SITES / TRACKS; s < (t + 1) * SITES / TRACKS; s++) {
				found = (struct cohort_table){ 0 };
				cohorts_add_site(cohorts, p, s, 1, &found);
				find_table(p, t, s, last, &truth);
				wrong += found.passing > truth.passing;
				truth.passing = found.passing; /* is forgotten with a site that has nothing else */
				wrong += differ(&found, &truth);
				wrong += cohorts_live(cohorts, p, s, NULL) != (uint64_t)sum_of(truth.alive, COHORTS);
			}
			find_table(p, t, SITES, last, &truth);
			found = (struct cohort_table){ 0 };
			cohorts_add_track(cohorts, p, tracks[t].kind, tracks[t].device, &found);
			wrong += differ(&found, &truth);
			const struct cohort_clock k = cohorts_clock(cohorts, p, tracks[t].kind, tracks[t].device);
			if (last < change_count)
				wrong += k.end_ns != changes[last].ns || k.count != stretch[last] + 1;
		}
	CHECK_EQ(wrong, 0);
}

/* ---- programs ---------------------------------------------------------------------------------------------- */

/* Not right behind something that the site has made, from which it might have been copied: that one's place is taken
 * by something tiny, which is freed at once. */
static void drop_apart(size_t i)
{
	const struct block b = live[i];
	take(b.process, b.track, b.site, 1);
	drop(live_count - 1);
	drop(i);
}

/* Blocks come and go. */
static void random_program(size_t count, bool moves, bool copies)
{
	while (change_count < count) {
		const unsigned process = choose(PROCESSES), track = choose(TRACKS),
			       site = track * SITES / TRACKS + choose(SITES / TRACKS);
		if (!live_count || choose(100) < 55) {
			take(process, track, site, (uint64_t)exp(random_uniform(&seed) * 12) + 1);
			continue;
		}
		const size_t i = choose(2) ? choose((unsigned)live_count) : live_count - 1 - choose(3) % live_count;
		if (moves && choose(4) == 0)
			move(i, 1 + (uint64_t)((double)live[i].bytes * 2 * random_uniform(&seed)));
		else if (copies)
			drop(i);
		else
			drop_apart(i);
	}
}

TEST(tables_are_what_a_list_of_blocks_gives)
{
	for (uint64_t s = 1; s <= 30; s++) {
		begin(s);
		random_program(200 * s, false, false);
		run(change_count, 0);
		check_tables();
		end();
	}
}

/* What is freed at the end was alive until then, all of it or a part, wherever in the last thirty-second it begins. */
TEST(what_is_freed_in_the_end_lived_until_then)
{
	for (uint64_t s = 1; s <= 20; s++) {
		begin(100 + s);
		random_program(6000, false, false);
		const size_t most = change_count + 3 * live_count / (1 + s % 3);
		while (live_count && change_count < most) {
			const size_t i = choose((unsigned)live_count);
			if (choose(20) == 0) /* cleaning up needs a little, too */
				take(live[i].process, live[i].track, live[i].site, 50);
			drop_apart(i);
		}
		run(change_count, 0);
		check_tables();
		end();
	}
}

TEST(a_final_fall_hides_nothing)
{
	begin(7);
	for (int i = 0; i < 2000; i++) {
		take(0, 0, 1, 1000);
		take(0, 0, 0, 4000);
		drop(live_count - 1);
	}
	while (live_count)
		drop(live_count - 1);
	run(change_count, 0);
	CHECK_EQ(cohorts_live(cohorts, 0, 1, NULL), 2000 * 1000);
	CHECK(cohorts_track_live(cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE) >= 2000 * 1000);
	end();
}

/* The last of few mappings was made before the last part of the work began. */
TEST(nor_does_one_of_what_is_seldom_made)
{
	begin(8);
	for (int i = 0; i < 2000; i++) {
		if (i % 100 == 0)
			take(0, 1, 1, 1 << 20);
		take(0, 0, 0, 4000);
		drop(live_count - 1);
	}
	while (live_count)
		drop(live_count - 1);
	run(change_count, 0);
	CHECK_EQ(cohorts_live(cohorts, 0, 1, NULL), 20 << 20);
	CHECK_EQ(cohorts_track_live(cohorts, 0, MODEL_MAP, MODEL_NO_DEVICE), 20 << 20);
	end();
}

/* ---- sums -------------------------------------------------------------------------------------------------- */

static double bytes_of(const struct cohort_sum *list)
{
	double sum = 0;
	for (unsigned i = 0; i < COHORTS; i++)
		sum += list[i].bytes;
	return sum;
}

/* Of blocks that move, and of what may be copies: what was made is alive, or has died. */
static void check_sums(bool copies)
{
	for (unsigned p = 0; p < PROCESSES; p++)
		for (int clock = 0; clock < CLOCKS; clock++) {
			double made = 0, kept = 0, is = 0;
			for (unsigned t = 0; t < TRACKS; t++) {
				if (tracks[t].clock != clock)
					continue;
				uint64_t bytes = 0;
				sum = found = (struct cohort_table){ 0 };
				cohorts_add_track(cohorts, p, tracks[t].kind, tracks[t].device, &found);
				for (unsigned s = t * SITES / TRACKS; s < (t + 1) * SITES / TRACKS; s++)
					cohorts_add_site(cohorts, p, s, 1, &sum);
				for (size_t i = 0; i < live_count; i++)
					bytes += live[i].process == p && live[i].track == t ? live[i].bytes : 0;
				CHECK_EQ(llround(sum_of(found.alive, COHORTS)), bytes);
				CHECK_EQ(llround(sum_of(sum.alive, COHORTS)), bytes);
				CHECK_EQ(sum_of(sum.blocks, COHORTS), sum_of(found.blocks, COHORTS));
				is += bytes + died_in(&found) + found.passing;
				const struct cohort_clock k =
					cohorts_clock(cohorts, p, tracks[t].kind, tracks[t].device);
				made = fmax(made, bytes_of(k.made));
				kept = fmax(kept, bytes_of(k.kept));
			}
			CHECK(kept <= made + 1 && is <= made + 1);
			CHECK(copies || fabs(is - made) <= 1);
		}
}

/* With an end of the track that is that of the run. */
static void highest_at_the_end(void)
{
	for (unsigned p = 0; p < PROCESSES; p++)
		for (unsigned t = 0; t < TRACKS; t++)
			take(p, t, t * SITES / TRACKS, 40 << 20);
}

TEST(what_was_made_is_alive_or_has_died)
{
	for (uint64_t s = 1; s <= 60; s++) {
		const bool copies = s % 2;
		begin(200 + s);
		random_program(100 + 100 * s, true, copies);
		highest_at_the_end();
		run(change_count, 0);
		check_sums(copies);
		end();
	}
}

/* ---- halving ----------------------------------------------------------------------------------------------- */

/* The first pass saw a part, or nothing, and the program went on. */
TEST(what_comes_behind_the_first_pass_counts_as_well)
{
	static const double parts[] = { 0.9, 0.5, 0.1, 0.01, 0 };
	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++) {
		begin(300 + k);
		for (int i = 0; i < 4000; i++) {
			take(0, 0, 1, 500);
			take(0, 0, 0, 1000);
			drop(live_count - 1);
		}
		/* as of a program that runs: its track has no end yet */
		processes[0].state = PROCESS_RUNNING;
		cohorts = cohorts_new();
		for (size_t i = 0; i < parts[k] * (double)change_count; i++) {
			const struct model_change c = change_of(&changes[i]);
			cohorts_count(cohorts, &c);
		}
		cohorts_begin(cohorts, true);
		for (size_t i = 0; i < change_count; i++) {
			const struct model_change c = change_of(&changes[i]);
			cohorts_change(cohorts, &c, 0, 0);
		}
		check_sums(false);
		const struct cohort_clock clock = cohorts_clock(cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE);
		double least = INFINITY, most = 0;
		found = (struct cohort_table){ 0 };
		cohorts_add_site(cohorts, 0, 1, 1, &found);
		for (unsigned i = 0; i + 1 < clock.count; i++) {
			least = fmin(least, found.alive[i]);
			most = fmax(most, found.alive[i]);
		}
		CHECK(clock.count > COHORTS / 2 - 2 && clock.count <= COHORTS);
		CHECK(least > 0.8 * most); /* all stretches are equal */
		CHECK_EQ(llround(sum_of(found.alive, COHORTS)), 4000 * 500);
		CHECK(outlook_goes_on(outlook_of(&found, &clock, 0).outlook));
		end();
	}
}

/* ---- containers -------------------------------------------------------------------------------------------- */

enum how { MOVED, COPIED, COPIED_BY_STEPS };

/* Runs all changes; what site 1 has is in `found`. */
static struct outlook_found judged(uint64_t before_ns)
{
	run(change_count, before_ns);
	found = (struct cohort_table){ 0 };
	cohorts_add_site(cohorts, 0, 1, 1, &found);
	const struct cohort_clock clock = cohorts_clock(cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE);
	return outlook_of(&found, &clock, 0);
}

static struct outlook_found container(enum how how, double by, int turns, uint64_t before_ns)
{
	uint64_t room = 4096, filled = 0;
	size_t at = 0;
	begin(9);
	take(0, 0, 1, room);
	for (int i = 0; i < turns; i++) {
		for (int k = 0; k < 3; k++) {
			take(0, 0, 0, 700);
			drop(live_count - 1);
		}
		filled += 400;
		if (filled <= room)
			continue;
		room = (uint64_t)((double)room * by);
		if (how == MOVED) {
			move(at, room);
		} else {
			take(0, 0, 1, room);
			drop(at);
		}
		at = live_count - 1;
	}
	const struct outlook_found f = judged(before_ns);
	CHECK_EQ(llround(sum_of(found.alive, COHORTS)), room);
	CHECK_EQ(sum_of(found.blocks, COHORTS), 1);
	CHECK(how == COPIED_BY_STEPS || died_in(&found) + found.passing == 0);
	end();
	return f;
}

/* One that is filled steadily grows steadily, whenever it moves, and however. */
TEST(a_container_grows_as_it_is_filled)
{
	static const int turns[] = { 2100, 2900, 3300, 4000, 5000 };
	static const double by[] = { 1.5, 2 };
	for (int how = MOVED; how <= COPIED; how++)
		for (size_t k = 0; k < sizeof(by) / sizeof(*by); k++)
			for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
				const struct outlook_found f = container((enum how)how, by[k], turns[i], 0);
				if (!outlook_goes_on(f.outlook))
					printf("# how %d, by %g, %d turns: %s, %u members\n", how, by[k], turns[i],
					       outlook_name(f.outlook), f.members);
				CHECK(outlook_goes_on(f.outlook));
			}
}

/* One that grew and is no longer filled has stopped. */
TEST(a_container_that_is_full_has_stopped)
{
	uint64_t room = 4096;
	begin(10);
	take(0, 0, 1, room);
	for (int i = 0; i < 4000; i++) {
		for (int k = 0; k < 3; k++) {
			take(0, 0, 0, 700);
			drop(live_count - 1);
		}
		if (i < 1000 && i % 100 == 99)
			move(0, room *= 2);
		if (live_count == 1 && i % 100 == 99 && i < 1000)
			continue;
	}
	const struct outlook_found f = judged(0);
	CHECK_EQ(llround(sum_of(found.alive, COHORTS)), room);
	CHECK_EQ(f.outlook, OUTLOOK_STOPPED);
	end();
}

/* 3,500 turns of work, in `filled` of which 400 bytes each go into a container, which grows to `times` its size. */
static struct outlook_found filled_for(int filled, uint64_t times)
{
	uint64_t room = 4096;
	begin(13);
	take(0, 0, 1, room);
	for (int i = 0; i < 3500; i++) {
		for (int k = 0; k < 3; k++) {
			take(0, 0, 0, 700);
			drop(live_count - 1);
		}
		if (i < filled && 400u * ((uint64_t)i + 1) > room)
			move(0, room *= times);
	}
	const struct outlook_found f = judged(0);
	CHECK_EQ(llround(sum_of(found.alive, COHORTS)), room);
	end();
	return f;
}

/* It moved last after two fifths of the work, so it would have been full after four. */
TEST(a_container_that_should_have_moved_has_stopped)
{
	CHECK_EQ(filled_for(1400, 2).outlook, OUTLOOK_STOPPED);
	CHECK_EQ(sum_of(found.assumed, COHORTS), 0);
}

/* A file of known size is read into it. */
TEST(what_becomes_much_larger_was_made_at_once)
{
	CHECK(!outlook_goes_on(filled_for(1400, 64).outlook));
	CHECK_EQ(sum_of(found.assumed, COHORTS), 0);
}

/* Whether it is filled on nobody can see before it moves again. */
TEST(what_nobody_saw_filled_is_not_certain)
{
	const struct outlook_found f = container(MOVED, 2, 2100, 0);
	CHECK(outlook_goes_on(f.outlook) && f.certainty < CERTAINTY_HIGH);
	CHECK(sum_of(found.assumed, COHORTS) > 0);
}

/* What each step makes anew, ever larger, and frees behind it, is younger than two steps. */
TEST(what_steps_replace_is_no_container)
{
	begin(11);
	uint64_t bytes = 80000;
	take(0, 0, 1, bytes);
	for (int i = 0; i < 2000; i++) {
		take(0, 0, 0, 700);
		drop(live_count - 1);
		take(0, 0, 1, bytes += 50);
		drop(0);
	}
	for (int steps = 0; steps < 2; steps++) {
		run(change_count, steps);
		found = (struct cohort_table){ 0 };
		cohorts_add_site(cohorts, 0, 1, 1, &found);
		CHECK_EQ(llround(sum_of(found.alive, COHORTS)), 2 * bytes - 50); /* both are there when it has most */
		const double died = died_in(&found) + found.passing;
		CHECK(steps ? died > 1000.0 * 80000 : died == 0);
		end();
	}
}

/* Caches that put in first and drop their oldest then: what comes is smaller every second time, or ever larger. */
TEST(a_cache_that_makes_room_behind_a_new_entry_is_no_container)
{
	static const struct {
		uint64_t least, by_chance;
		double more; /* in each turn */
		unsigned right;
	} rows[] = {
		{ 500, 3000, 0, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
		{ 1000, 300, 0.25, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NEEDS_MORE },
		{ 1000, 1, 1, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NEEDS_MORE },
	};
	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		unsigned wrong = 0;
		for (uint64_t s = 1; s <= 100; s++) {
			static uint64_t addr[4000];
			begin(400 + s);
			const unsigned room = 20 + choose(300);
			unsigned first = 0;
			for (unsigned i = 0; i < 4000; i++) {
				take(0, 0, 0, 1000);
				drop(live_count - 1);
				take(0, 0, 1,
				     rows[k].least + choose((unsigned)rows[k].by_chance) +
					     (uint64_t)(rows[k].more * i));
				addr[i] = live[live_count - 1].addr;
				for (size_t l = 0; l < live_count && i + 1 - first > room; l++)
					if (live[l].addr == addr[first]) {
						drop(l);
						first++;
					}
			}
			run(change_count, 0);
			found = (struct cohort_table){ 0 };
			cohorts_add_site(cohorts, 0, 1, 1, &found);
			const struct cohort_clock clock = cohorts_clock(cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE);
			wrong += !(rows[k].right >> outlook_of(&found, &clock, 0).outlook & 1);
			end();
		}
		if (wrong)
			printf("# row %zu: %u of 100 wrong\n", k, wrong);
		CHECK(wrong <= 1);
	}
}

/* A block that shrinks leaves what is older. */
TEST(a_block_that_shrinks_keeps_its_oldest_part)
{
	begin(12);
	take(0, 0, 1, 100000);
	for (int i = 0; i < 1000; i++) {
		take(0, 0, 0, 1000);
		drop(live_count - 1);
	}
	move(0, 300000);
	for (int i = 0; i < 1000; i++) {
		take(0, 0, 0, 1000);
		drop(live_count - 1);
	}
	move(0, 90000);
	for (int i = 0; i < 1000; i++) {
		take(0, 0, 0, 1000);
		drop(live_count - 1);
	}
	run(change_count, 0);
	found = (struct cohort_table){ 0 };
	cohorts_add_site(cohorts, 0, 1, 1, &found);
	CHECK_EQ(llround(sum_of(found.alive, COHORTS)), 90000);
	CHECK_EQ(died_in(&found) + found.passing, 210000);
	end();
}

/* ---- the rest ---------------------------------------------------------------------------------------------- */

TEST(the_largest_come_first)
{
	uint32_t list[4];
	begin(13);
	for (unsigned i = 1; i <= 10; i++)
		for (unsigned k = 0; k < i; k++)
			take(0, 0, i % 7 + (i > 6 ? 10 : 0), 70000);
	run(change_count, 0);
	CHECK_EQ(cohorts_largest(cohorts, 0, list, 4), 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(cohorts_live(cohorts, 0, list[i], NULL), (10u - (unsigned)i) * 70000);
	uint32_t blocks;
	cohorts_live(cohorts, 0, 3, &blocks);
	CHECK_EQ(blocks, 3);
	CHECK_EQ(cohorts_largest(cohorts, 5, list, 4), 0);
	CHECK_EQ(cohorts_live(cohorts, 0, 9999, &blocks), 0);
	CHECK_EQ(blocks, 0);
	CHECK_EQ(cohorts_clock(cohorts, 5, MODEL_HEAP, MODEL_NO_DEVICE).count, 0);
	end();
}

TEST(weights_count)
{
	begin(14);
	random_program(3000, false, false);
	run(change_count, 0);
	found = truth = (struct cohort_table){ 0 };
	for (unsigned s = 0; s < SITES / TRACKS; s++) {
		cohorts_add_site(cohorts, 0, s, 2.5, &found);
		cohorts_add_site(cohorts, 0, s, 1, &truth);
	}
	CHECK(sum_of(truth.alive, COHORTS) > 0);
	CHECK(fabs(sum_of(found.alive, COHORTS) - 2.5 * sum_of(truth.alive, COHORTS)) < 1);
	CHECK(fabs(died_in(&found) - 2.5 * died_in(&truth)) < 1);
	CHECK(fabs(sum_of(found.blocks, COHORTS) - 2.5 * sum_of(truth.blocks, COHORTS)) < 1e-6);
	end();
}

TEST(what_is_taken_away_is_what_was_added)
{
	for (unsigned s = 20; s < 40; s++) {
		begin(s);
		random_program(3000, true, true);
		run(change_count, 0);
		for (unsigned number = 0; number < SITES; number++) {
			found = (struct cohort_table){ 0 };
			cohorts_add_site(cohorts, 0, number, 3, &found);
			cohorts_add_site(cohorts, 0, number, -3, &found);
			for (unsigned i = 0; i < COHORTS; i++)
				CHECK(fabs(found.alive[i]) < 1e-3 && fabs(found.blocks[i]) < 1e-3);
			CHECK(fabs(died_in(&found)) < 1e-3);
		}
		end();
	}
}

enum telling { NOT_TOLD, BY_WINDOW, AT_ITS_END };

/* `loads` of 1,000 blocks are kept, one after the other. Of a thousand times as much only sums are left. */
static struct outlook_found left_out(unsigned loads, enum telling told)
{
	begin(15);
	cohorts = cohorts_new();
	for (unsigned i = 0; i < 1000; i++) {
		now = 1000 + 1000000ull * i;
		if (i < loads)
			take(0, 0, 1, 1000);
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < change_count; i++) {
			const struct model_change c = change_of(&changes[i]);
			if (!pass)
				cohorts_count(cohorts, &c);
			else
				cohorts_change(cohorts, &c, 0, 0);
		}
		for (unsigned window = 0; told != NOT_TOLD && window < 10; window++)
			cohorts_left_out(cohorts,
					 &(struct model_left_out){
						 .process = &processes[0],
						 .kind = MODEL_HEAP,
						 .site = 2,
						 .device = MODEL_NO_DEVICE,
						 .bytes = 100000000,
						 .blocks = 100000,
						 .from_ns = told == AT_ITS_END ? 1000 : window * 100000000ull,
						 .until_ns =
							 told == AT_ITS_END ? UINT64_MAX : (window + 1) * 100000000ull,
						 .ns = told == AT_ITS_END ? 1000 : (window + 1) * 100000000ull });
		if (!pass)
			cohorts_begin(cohorts, false);
	}
	const struct cohort_clock clock = cohorts_clock(cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE);
	double made = 0;
	for (unsigned i = 0; i < clock.count; i++)
		made += clock.made[i].bytes;
	CHECK(fabs(made - 1000.0 * loads - (told ? 1e9 : 0)) < (told ? 2e6 : 1));
	found = (struct cohort_table){ 0 };
	cohorts_add_site(cohorts, 0, 1, 1, &found);
	const struct outlook_found f = outlook_of(&found, &clock, 0);
	end();
	return f;
}

/* What came and went shows that the program works, and that it goes on after its last load. */
TEST(what_was_left_out_is_work)
{
	CHECK_EQ(left_out(1000, NOT_TOLD).outlook, OUTLOOK_GROWS);
	CHECK_EQ(left_out(1000, BY_WINDOW).outlook, OUTLOOK_LEAKS);
	CHECK_EQ(left_out(1000, AT_ITS_END).outlook, OUTLOOK_LEAKS);
	CHECK_EQ(left_out(300, NOT_TOLD).outlook, OUTLOOK_GROWS);
	CHECK_EQ(left_out(300, BY_WINDOW).outlook, OUTLOOK_STOPPED);
}

TEST_MAIN
