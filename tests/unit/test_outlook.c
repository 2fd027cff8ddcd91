/*
 * What goes on growing, of programs whose source is the truth. A program here makes blocks of the site that is asked
 * about, and others that are freed at once (work()). Its table is made from a list of all blocks, without cohorts.c.
 *
 * Each kind of program has sizes, rates and moments by a seed. It is judged right in 99 of 100 of them.
 */
#include "analyzer/diagnosis/growth/outlook.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <math.h>

enum { MOST = 60000, SEEDS = SANITIZED ? 300 : 1000, TURNS = 2000 };

/* ---- a program ------------------------------------------------------------------------------------------- */

struct block {
	double bytes;
	unsigned freed; /* how many blocks had been made by then; UINT32_MAX = it is alive */
	bool ours;      /* of the site that is asked about */
};

static struct {
	struct block blocks[MOST];
	unsigned count;
	double scale;
	double ahead; /* bytes of work before all else, as a part of a stretch: boundaries are elsewhere */
	uint64_t seed;
	struct cohort_table table;
	struct cohort_clock clock;
} w;

static void begin(uint64_t seed)
{
	w.count = 0;
	w.seed = seed * 0x9E3779B97F4A7C15ull + 1;
	for (int i = 0; i < 5; i++)
		random_next(&w.seed);
}

static double between(double low, double high)
{
	return low + (high - low) * random_uniform(&w.seed);
}

static unsigned choose(unsigned n)
{
	return (unsigned)(random_uniform(&w.seed) * n);
}

static unsigned put(double bytes, bool ours)
{
	if (w.count == MOST)
		abort();
	w.blocks[w.count] = (struct block){ bytes * w.scale, UINT32_MAX, ours };
	return w.count++;
}

static unsigned take(double bytes)
{
	return put(bytes, true);
}

static void drop(unsigned block)
{
	w.blocks[block].freed = w.count;
}

/* Something else, which is freed at once. */
static void work(double bytes)
{
	const unsigned block = put(bytes, false);
	drop(block);
}

/* The table of all these blocks: half of the clock are bytes, half are blocks. */
static void make_table(void)
{
	static unsigned stretch[MOST + 1];
	double all = 0, sum = 0;
	w.table = (struct cohort_table){ 0 };
	w.clock = (struct cohort_clock){ .count = COHORTS, .end_ns = COHORTS, .least = COHORTS_LEAST };
	for (unsigned i = 0; i < COHORTS; i++)
		w.clock.begin_ns[i] = i;
	for (unsigned i = 0; i < w.count; i++)
		all += w.blocks[i].bytes;
	const double ahead = w.ahead * all / COHORTS;
	for (unsigned i = 0; i < w.count; i++) {
		sum += w.blocks[i].bytes;
		const double by_bytes = (ahead + sum) / (all + ahead + 1), by_blocks = (i + 1.0) / (w.count + 1.0);
		stretch[i] = (unsigned)(COHORTS * (by_bytes + by_blocks) / 2);
	}
	stretch[w.count] = w.count ? stretch[w.count - 1] : 0;
	for (unsigned i = 0; i < w.count; i++) {
		const struct block *b = &w.blocks[i];
		const unsigned made = stretch[i], freed = b->freed == UINT32_MAX ? COHORTS : stretch[b->freed - 1];
		w.clock.made[made].bytes += b->bytes;
		w.clock.made[made].blocks++;
		w.clock.kept[made].bytes += freed == COHORTS ? b->bytes : 0;
		w.clock.kept[made].blocks += freed == COHORTS;
		if (b->ours && freed == COHORTS) {
			w.table.alive[made] += b->bytes;
			w.table.blocks[made]++;
		} else if (b->ours && freed > made) {
			w.table.died[made][freed] += b->bytes;
		} else if (b->ours) {
			w.table.passing += b->bytes;
		}
	}
}

/* ---- kinds of programs ------------------------------------------------------------------------------------ */

/* The work of a turn. */
static void turn(void)
{
	work(between(500, 1500));
	work(between(500, 1500));
}

static void constant_leak(void)
{
	const double bytes = between(100, 1200);
	for (int i = 0; i < TURNS; i++) {
		turn();
		take(bytes * between(0.5, 1.5));
	}
}

/* Every so many turns. */
static void slow_leak(void)
{
	const int every = 5 + (int)choose(40);
	for (int i = 0; i < TURNS; i++) {
		turn();
		if (i % every == 0)
			take(5000);
	}
}

/* Most of what the same line makes is freed again, at ages up to a twentieth of the run. */
static void leak_with_temporaries(void)
{
	unsigned held[100] = { 0 }, count = 1 + choose(100);
	bool used[100] = { 0 };
	const double part = between(0.03, 0.3);
	for (int i = 0; i < TURNS; i++) {
		const unsigned k = choose(count);
		turn();
		if (used[k])
			drop(held[k]);
		held[k] = take(2000);
		used[k] = true;
		if (random_uniform(&w.seed) < part)
			take(2000);
	}
}

static void leak_in_bursts(void)
{
	const int bursts = 8 + (int)choose(8), every = TURNS / bursts;
	for (int i = 0; i < TURNS; i++) {
		turn();
		if (i % every == every / 2)
			for (int k = 0; k < 20; k++)
				take(1500);
	}
}

/* By chance, so rarely that some of the last cohorts have none. */
static void rare_leak(void)
{
	const double chance = between(12, 60) / TURNS;
	for (int i = 0; i < TURNS; i++) {
		turn();
		if (random_uniform(&w.seed) < chance)
			take(30000);
	}
}

/* What is loaded first is far larger than what leaks after it, which is still much. */
static void leak_behind_start_up(void)
{
	const double large = between(10, 100), part = between(0.02, 0.1);
	for (int i = 0; i < TURNS / 50; i++)
		take(large * 1e6 * part / (TURNS / 50));
	for (int i = 0; i < TURNS; i++) {
		turn();
		take(large * between(0.3, 0.5) * 1e6 / TURNS);
	}
}

/* Some blocks live for long and are freed, beside those that stay. */
static void leak_beside_long_lived(void)
{
	const unsigned lone = 3 + choose(6);
	unsigned held[10], until[10];
	for (unsigned k = 0; k < lone; k++) {
		held[k] = take(5000);
		until[k] = TURNS / 4 + choose(TURNS / 2);
	}
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		take(300);
		for (unsigned k = 0; k < lone; k++)
			if (until[k] == i)
				drop(held[k]);
	}
}

/* Of each epoch's blocks a tenth stays. */
static void leak_in_epochs(void)
{
	static unsigned held[TURNS];
	const unsigned epoch = 60 + choose(200);
	unsigned count = 0;
	for (int i = 0; i < TURNS; i++) {
		turn();
		if (i % 10 == 0)
			take(2000);
		else
			held[count++] = take(2000);
		while (count == epoch || (i % epoch == 0 && count))
			drop(held[--count]);
	}
}

static void only_fills(void)
{
	const double bytes = between(100, 3000);
	for (int i = 0; i < 2 * TURNS; i++)
		take(bytes * between(0.5, 1.5));
}

static void load(double part, double first)
{
	const int until = (int)(part * TURNS);
	for (int i = 0; i < TURNS; i++) {
		turn();
		if (i < until)
			take(first);
	}
}

static void loads(void)
{
	const unsigned n = 50 + choose(400);
	for (unsigned i = 0; i < n; i++)
		take(4000);
	for (int i = 0; i < TURNS; i++)
		turn();
}

static void warms_up(void)
{
	load(between(0.05, 0.6), between(500, 3000));
}

/* Ever less is new: a cache of things that are asked for by chance. */
static void cache_fills(void)
{
	bool known[300] = { 0 };
	const unsigned keys = 60 + choose(240);
	for (int i = 0; i < TURNS; i++) {
		const unsigned k = choose(keys);
		turn();
		if (!known[k])
			take(3000);
		known[k] = true;
	}
}

static void cache(bool by_chance)
{
	static unsigned held[400];
	bool used[400] = { 0 };
	const unsigned room = 10 + choose(by_chance ? 150 : 390);
	for (unsigned i = 0; i < TURNS; i++) {
		const unsigned k = by_chance ? choose(room) : i % room;
		turn();
		if (used[k])
			drop(held[k]);
		held[k] = take(3000);
		used[k] = true;
	}
}

/* It is full late, and any of its blocks goes, however young. */
static void cache_drops_any(void)
{
	static unsigned held[TURNS];
	const unsigned room = (unsigned)(TURNS * between(0.25, 0.45));
	for (unsigned i = 0; i < TURNS; i++) {
		const unsigned k = i < room ? i : choose(room);
		turn();
		if (i >= room)
			drop(held[k]);
		held[k] = take(3000);
	}
}

static void cache_by_age(void)
{
	cache(false);
}

static void cache_by_chance(void)
{
	cache(true);
}

/* Each entry lives for so many turns, and more come at some times than at others. */
static void keeps_for_a_while(void)
{
	static unsigned held[8 * TURNS], born[8 * TURNS];
	const unsigned lasts = 50 + choose(300);
	unsigned first = 0, count = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		for (unsigned k = choose(4); k > 0; k--) {
			born[count] = i;
			held[count++] = take(2000);
		}
		while (first < count && born[first] + lasts <= i)
			drop(held[first++]);
	}
}

static void epochs(void)
{
	static unsigned held[TURNS];
	const unsigned epoch = 100 + choose(350);
	unsigned count = 0;
	for (int i = 0; i < TURNS; i++) {
		turn();
		held[count++] = take(2000);
		while (count == epoch || (count && (unsigned)i % epoch == 0))
			drop(held[--count]);
	}
}

/* Days of a server: what is open follows the load, and each request lasts as long by day as by night. */
static void days(void)
{
	static unsigned held[20 * TURNS], until[20 * TURNS];
	const double long_day = between(TURNS / 12.0, TURNS / 4.0), phase = between(0, 6.28);
	const unsigned lasts = 5 + choose(30);
	unsigned first = 0, count = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		const double rate = 2 + 1.9 * sin(6.283 * i / long_day + phase);
		turn();
		for (double k = rate; k > 0; k--)
			if (k >= 1 || random_uniform(&w.seed) < k) {
				until[count] = i + lasts;
				held[count++] = take(1500);
			}
		while (first < count && until[first] <= i)
			drop(held[first++]);
	}
}

/* Requests wait ever longer from some moment on. */
static void backlog(void)
{
	static unsigned held[TURNS];
	const double since = between(0.1, 0.5), falls_behind = between(0.15, 0.6);
	unsigned first = 0;
	double lag = between(10, 40);
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[i] = take(3000);
		lag += i > since * TURNS ? falls_behind : 0;
		while (first + lag < i)
			drop(held[first++]);
	}
}

/* From the start on more comes than goes: what waits came behind all that went. */
static void never_catches_up(void)
{
	static unsigned held[TURNS];
	const double goes = between(0.1, 0.7);
	unsigned first = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[i] = take(3000);
		while (first < goes * i)
			drop(held[first++]);
	}
}

/* What is alive at once lasts as long as ever, but is larger. */
static void needs_more(void)
{
	static unsigned held[TURNS];
	const unsigned lasts = 40 + choose(100);
	const double by = between(2, 6);
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[i] = take(1000 * (1 + by * i / TURNS));
		if (i >= lasts)
			drop(held[i - lasts]);
	}
}

/* All is dropped when a unit of work is over; the last one is the longest, and the program ends in it. */
static void gathers(void)
{
	static unsigned held[TURNS];
	const unsigned units = 4 + choose(3), until = TURNS / 3 + choose(TURNS / 3);
	unsigned count = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[count++] = take(between(500, 3000));
		while (i < until && i % (until / units) == 0 && count)
			drop(held[--count]);
	}
}

/* What a step makes in many stretches is dropped when it is over, until a leak begins. */
static void leak_behind_steps(void)
{
	static unsigned held[TURNS];
	unsigned count = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[count++] = take(1000);
		while (i % 160 == 0 && i < TURNS / 3 && count)
			drop(held[--count]);
	}
}

enum { ON = 1 << OUTLOOK_LEAKS | 1 << OUTLOOK_GROWS | 1 << OUTLOOK_BACKLOG };

static const struct form {
	const char *name;
	void (*make)(void);
	unsigned right; /* outlooks, as bits */
} forms[] = {
	{ "constant leak", constant_leak, 1 << OUTLOOK_LEAKS },
	{ "slow leak", slow_leak, 1 << OUTLOOK_LEAKS },
	{ "leak with temporaries", leak_with_temporaries, 1 << OUTLOOK_LEAKS },
	{ "leak in bursts", leak_in_bursts, 1 << OUTLOOK_LEAKS },
	{ "rare leak", rare_leak, 1 << OUTLOOK_LEAKS },
	{ "leak behind start-up", leak_behind_start_up, 1 << OUTLOOK_LEAKS | 1 << OUTLOOK_GROWS },
	{ "leak beside long-lived blocks", leak_beside_long_lived, 1 << OUTLOOK_LEAKS },
	{ "leak in epochs", leak_in_epochs, 1 << OUTLOOK_LEAKS },
	{ "only fills", only_fills, 1 << OUTLOOK_GROWS },
	{ "load", loads, 1 << OUTLOOK_STOPPED },
	{ "warm-up", warms_up, 1 << OUTLOOK_STOPPED },
	{ "cache that fills", cache_fills, 1 << OUTLOOK_STOPPED },
	{ "cache that is full late, and drops any", cache_drops_any,
	  1 << OUTLOOK_STOPPED | 1 << OUTLOOK_PASSES | 1 << OUTLOOK_SHORT },
	{ "cache in balance, by age", cache_by_age, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
	{ "cache in balance, by chance", cache_by_chance, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
	{ "kept for a while", keeps_for_a_while, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
	{ "epochs", epochs, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
	{ "days", days, 1 << OUTLOOK_PASSES | 1 << OUTLOOK_NONE },
	{ "backlog", backlog, 1 << OUTLOOK_BACKLOG },
	{ "never catches up", never_catches_up, 1 << OUTLOOK_BACKLOG },
	{ "needs more", needs_more, 1 << OUTLOOK_NEEDS_MORE },
	{ "gathers", gathers, 1 << OUTLOOK_GATHERS },
};

enum { FORMS = sizeof(forms) / sizeof(*forms) };

static struct outlook_found judge(const struct form *f, uint64_t seed, double scale, double ahead)
{
	w.scale = scale;
	w.ahead = ahead;
	begin(seed);
	f->make();
	make_table();
	return outlook_of(&w.table, &w.clock, 0);
}

TEST(programs_are_judged_rightly)
{
	for (int i = 0; i < FORMS; i++) {
		unsigned wrong = 0, by[OUTLOOK_SHORT + 1] = { 0 };
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			const struct outlook_found f = judge(&forms[i], seed, 10, 0);
			const bool right = forms[i].right >> f.outlook & 1;
			wrong += !right;
			by[f.outlook] += !right;
		}
		printf("# %s: %u of %d wrong", forms[i].name, wrong, SEEDS);
		for (int k = 0; k <= OUTLOOK_SHORT; k++)
			if (by[k])
				printf(", %u %s", by[k], outlook_name((enum outlook)k));
		printf("\n");
		CHECK(wrong <= SEEDS / 100);
	}
}

/* Any of them may go next, and on average none has had the time. */
static void outlives_the_run(void)
{
	static unsigned held[TURNS];
	const double mean = between(1, 3) * TURNS;
	unsigned count = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		turn();
		held[count++] = take(3000);
		for (unsigned k = 0; k < count;)
			if (between(0, 1) < 1 / mean) {
				drop(held[k]);
				held[k] = held[--count];
			} else {
				k++;
			}
	}
}

TEST(what_outlives_the_run_is_no_queue)
{
	static const struct form form = { "outlives the run", outlives_the_run, 0 };
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		CHECK(judge(&form, seed, 10, 0).outlook != OUTLOOK_BACKLOG);
}

/* ---- what must not matter ---------------------------------------------------------------------------------- */

TEST(bytes_may_be_a_thousand_times_as_many)
{
	unsigned wrong = 0;
	for (int i = 0; i < FORMS; i++)
		for (uint64_t seed = 1; seed <= SEEDS / 20; seed++) {
			const struct outlook_found a = judge(&forms[i], seed, 10, 0),
						   b = judge(&forms[i], seed, 10000, 0);
			wrong += a.outlook == OUTLOOK_NONE ? 0 /* too little to look at */
							   : a.outlook != b.outlook || a.members != b.members ||
								     a.from != b.from || a.certainty != b.certainty ||
								     fabs(a.bytes * 1000 - b.bytes) > 1e-3 * b.bytes;
		}
	CHECK_EQ(wrong, 0);
}

/* Where stretches begin is chance. */
TEST(stretches_may_begin_elsewhere)
{
	for (int i = 0; i < FORMS; i++) {
		unsigned wrong = 0, differ = 0;
		for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
			const struct outlook_found a = judge(&forms[i], seed, 10, 0),
						   b = judge(&forms[i], seed, 10, seed % 4 * 0.5 + 0.3);
			wrong += !(forms[i].right >> b.outlook & 1);
			differ += a.outlook != b.outlook && a.outlook != OUTLOOK_NONE && b.outlook != OUTLOOK_NONE;
		}
		if (differ)
			printf("# %s: %u of %d differ, %u wrong\n", forms[i].name, differ, SEEDS / 2, wrong);
		CHECK(wrong <= SEEDS / 2 / 100 && differ <= SEEDS / 2 / 50);
	}
}

/* The same program again and again is judged as once: the longer it runs, the same. */
TEST(a_longer_run_of_a_leak_is_one)
{
	for (int times = 1; times <= 8; times *= 2) {
		w.scale = 10;
		begin(5);
		for (int i = 0; i < times; i++)
			constant_leak();
		make_table();
		const struct outlook_found f = outlook_of(&w.table, &w.clock, 0);
		CHECK_EQ(f.outlook, OUTLOOK_LEAKS);
		CHECK_EQ(f.certainty, CERTAINTY_HIGH);
	}
}

/* ---- tables made by hand ----------------------------------------------------------------------------------- */

/* All cohorts have `bytes`, and as much again has been made and freed. */
static void even(unsigned count, double bytes)
{
	w.table = (struct cohort_table){ 0 };
	w.clock = (struct cohort_clock){ .count = count, .end_ns = count, .least = COHORTS_LEAST };
	for (unsigned i = 0; i < count; i++) {
		w.table.alive[i] = bytes;
		w.table.blocks[i] = 1;
		w.clock.begin_ns[i] = i;
		w.clock.made[i] = (struct cohort_sum){ 3 * bytes, 3e6 };
		w.clock.kept[i] = (struct cohort_sum){ bytes, 1e6 };
	}
}

static struct outlook_found found(unsigned step)
{
	return outlook_of(&w.table, &w.clock, step);
}

TEST(nothing_is_nothing)
{
	for (unsigned count = 0; count <= COHORTS; count++) {
		even(count, 0);
		CHECK_EQ(found(0).outlook, OUTLOOK_NONE);
		even(count, (COHORTS_LEAST - 1.0) / (count + 1));
		CHECK_EQ(found(0).outlook, OUTLOOK_NONE);
	}
}

TEST(of_few_cohorts_nothing_is_said)
{
	for (unsigned count = 1; count <= COHORTS; count++) {
		even(count, 1e6);
		const struct outlook_found f = found(0);
		CHECK_EQ(f.outlook, count <= 8 ? OUTLOOK_SHORT : OUTLOOK_LEAKS);
		if (count > 8) {
			CHECK_EQ(f.members, count - 1); /* the last is not over */
			CHECK_EQ(f.certainty, count > 12 ? CERTAINTY_HIGH : CERTAINTY_MEDIUM);
			CHECK_EQ(f.bytes, 1e6 * count);
			CHECK_EQ(f.blocks, count);
			CHECK_EQ(f.kept[count - 1], 1e6 * count);
			CHECK(fabs(f.freed - 2.0 / 3) < 1e-6);
		}
	}
}

/* What is younger than a step has not been through one. */
TEST(what_steps_have_not_ended_is_not_kept)
{
	for (unsigned step = 0; step <= COHORTS; step++) {
		even(COHORTS, 1e6);
		/* a fifth of all has to be old enough */
		CHECK_EQ(found(step).outlook, step <= 50 ? OUTLOOK_LEAKS : OUTLOOK_SHORT);
		for (unsigned i = 0; i + step + 1 < COHORTS; i++) /* only the youngest are there */
			w.table.alive[i] = 0;
		if (step && step < COHORTS / 2)
			CHECK(!outlook_goes_on(found(step).outlook));
	}
}

/* A fact needs fewer than an accusation. */
/* Steps of which each takes several stretches tell nothing of what gathers over more than one. */
TEST(what_a_step_drops_has_not_gathered)
{
	w.scale = 10;
	w.ahead = 0;
	begin(1);
	leak_behind_steps();
	make_table();
	CHECK_EQ(outlook_of(&w.table, &w.clock, 0).outlook, OUTLOOK_GATHERS);
	CHECK_EQ(outlook_of(&w.table, &w.clock, 6).outlook, OUTLOOK_LEAKS);
}

TEST(of_few_cohorts_it_is_said_that_it_fills)
{
	for (unsigned count = 1; count <= 9; count++) {
		even(count, 1e6);
		for (unsigned i = 0; i < COHORTS; i++)
			w.clock.made[i] = (struct cohort_sum){ 1e6, 1e6 };
		CHECK_EQ(found(0).outlook, count <= 4 ? OUTLOOK_SHORT : OUTLOOK_GROWS);
	}
}

TEST(it_works_or_only_fills_as_half_of_all_is_freed)
{
	even(COHORTS, 1e6);
	for (unsigned i = 0; i < COHORTS; i++)
		w.clock.made[i] = (struct cohort_sum){ 2.02e6, 2.02e6 };
	CHECK_EQ(found(0).outlook, OUTLOOK_LEAKS);
	for (unsigned i = 0; i < COHORTS; i++)
		w.clock.made[i] = (struct cohort_sum){ 1e6, 1e6 };
	CHECK_EQ(found(0).outlook, OUTLOOK_GROWS);
}

/* A queue of pinned results leaks while the device works; a model that is being loaded onto it is no work. */
TEST(it_works_also_on_devices)
{
	even(COHORTS, 1e6);
	for (unsigned i = 0; i < COHORTS; i++) {
		w.clock.made[i] = (struct cohort_sum){ 1e6, 1e6 };
		w.clock.made_on_devices[i] = (struct cohort_sum){ 2e6, 2e6 };
	}
	CHECK_EQ(found(0).outlook, OUTLOOK_LEAKS);
	for (unsigned i = 0; i < COHORTS; i++)
		w.clock.kept_on_devices[i] = w.clock.made_on_devices[i];
	CHECK_EQ(found(0).outlook, OUTLOOK_GROWS);
	for (unsigned i = 0; i < COHORTS; i++) {
		w.clock.made[i] = (struct cohort_sum){ 2.02e6, 2.02e6 };
		w.clock.made_on_devices[i] = w.clock.kept_on_devices[i] = (struct cohort_sum){ 1e9, 1e9 };
	}
	CHECK_EQ(found(0).outlook, OUTLOOK_LEAKS);
}

/* The longer nothing more has come, the fewer cohorts are enough to say that it stopped. */
TEST(a_gap_that_is_no_chance_is_an_end)
{
	for (unsigned last = 4; last < COHORTS - 1; last++) {
		even(COHORTS, 1e6);
		for (unsigned i = last; i < COHORTS; i++)
			w.table.alive[i] = 0;
		const double gap = (COHORTS - 1.0 - last) / (COHORTS - 1), chance = pow(1 - gap, last < 16 ? last : 16);
		const enum outlook outlook = found(0).outlook;
		CHECK(outlook == OUTLOOK_STOPPED || chance >= 0.02);
		const bool levels_off = gap > 0.16; /* two thirds of the last quarter are empty */
		CHECK(outlook == OUTLOOK_LEAKS || chance < 0.02 || levels_off);
	}
}

/* Bursts are at most half as far apart again as they were, or the next one doesn't come. */
TEST(the_next_burst_may_still_come)
{
	even(COHORTS, 0);
	for (unsigned i = 2; i < 60; i += 12)
		for (unsigned k = 0; k < 3; k++) {
			w.table.alive[i + k] = 1e6;
			w.clock.made[i + k] = (struct cohort_sum){ 3e6, 3e6 };
			w.clock.kept[i + k] = (struct cohort_sum){ 1e6, 1e6 };
		}
	CHECK(outlook_goes_on(found(0).outlook));
	even(COHORTS, 0);
	for (unsigned i = 2; i < 30; i += 6)
		for (unsigned k = 0; k < 3; k++) {
			w.table.alive[i + k] = 1e6;
			w.clock.made[i + k] = (struct cohort_sum){ 3e6, 3e6 };
			w.clock.kept[i + k] = (struct cohort_sum){ 1e6, 1e6 };
		}
	CHECK_EQ(found(0).outlook, OUTLOOK_STOPPED);
}

/* A little of everything, a load, and long after it a few blocks that wait for a collector; or many more. */
TEST(a_few_blocks_behind_a_long_gap_do_not_go_on)
{
	for (unsigned more = 1; more <= 2; more++) {
		even(COHORTS, 1e6);
		for (unsigned i = 0; i < COHORTS; i++)
			w.table.alive[i] = i < 34 ? 5e4 : i < 40 ? 1e7 : 0;
		for (unsigned i = more == 1 ? 61 : 50; i < COHORTS - 1; i++)
			w.table.alive[i] = more == 1 ? 2e6 : 1e7;
		CHECK_EQ(found(0).outlook, more == 1 ? OUTLOOK_STOPPED : OUTLOOK_LEAKS);
	}
}

/* A hundred times what each cohort has, in the first two: it is loaded, and then it leaks, or doesn't. */
TEST(start_up_is_not_what_follows)
{
	even(COHORTS, 1e6);
	w.table.alive[0] = w.table.alive[1] = 1e8;
	CHECK_EQ(found(0).from, 2);
	CHECK_EQ(found(0).bytes, 62e6);
	CHECK_EQ(found(0).outlook, OUTLOOK_LEAKS);
	for (unsigned i = 2; i < COHORTS; i++)
		w.table.alive[i] = 0;
	CHECK(found(0).outlook == OUTLOOK_STOPPED || found(0).outlook == OUTLOOK_SHORT);
	CHECK(!outlook_goes_on(found(0).outlook));
}

/* All dies at one age, but for what has not got that old. */
TEST(what_always_dies_at_an_age_passes)
{
	for (unsigned age = 1; age <= 16; age++) {
		even(COHORTS, 1e6);
		for (unsigned i = 0; i + age < COHORTS; i++) {
			w.table.alive[i] = 0;
			w.table.died[i][i + age] = 1e6;
		}
		CHECK_EQ(found(0).outlook, OUTLOOK_PASSES);
		/* but for a tenth */
		for (unsigned i = 0; i + age < COHORTS; i++) {
			w.table.alive[i] = 1e5;
			w.table.died[i][i + age] = 9e5;
		}
		const struct outlook_found f = found(0);
		if (age <= 8) {
			CHECK_EQ(f.outlook, OUTLOOK_LEAKS);
			CHECK(fabs(f.bytes - 64e5) < 1e4); /* of the young a tenth as well */
		}
	}
}

/* Each stretch of the last quarter has more, and of the quarter before it so much more than the one before. */
static void comes_at_the_end(double before)
{
	even(COHORTS, 1e6);
	for (unsigned i = 0; i < COHORTS; i++)
		w.table.alive[i] = 0;
	for (unsigned i = 48; i < COHORTS - 1; i++) /* nothing of it gets old */
		w.table.died[i][i + 1] = 1e6 * (i - 40);
	for (unsigned i = 32; i < 48; i++)
		w.table.died[i][i + 1] = before * (i - 30);
	w.table.alive[COHORTS - 1] = 24e6;
}

TEST(a_jump_at_the_end_is_no_rise)
{
	comes_at_the_end(0.5e6);
	CHECK_EQ(found(0).outlook, OUTLOOK_NEEDS_MORE);
	comes_at_the_end(0);
	w.table.since = 1; /* the run began long before */
	CHECK_EQ(found(0).outlook, OUTLOOK_PASSES);
	CHECK_EQ(found(0).rise, 0);
	comes_at_the_end(1e3); /* next to nothing */
	CHECK_EQ(outlook_begins(&w.table, COHORTS), 32);
	w.table.since = 1;
	CHECK_EQ(found(0).rise, 0);
	w.table = (struct cohort_table){ 0 };
	CHECK_EQ(outlook_begins(&w.table, COHORTS), COHORTS);
}

TEST_MAIN
