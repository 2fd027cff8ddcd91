/*
 * Windows of sites on programs that are made up at random: each figure of each window is what a list of the same
 * changes gives that is gone through again for each window, site by site.
 */
#include "analyzer/model/pool_layout.h"
#include "analyzer/timeline/site_windows.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#define SECOND 1000000000ull
#define MIB    (1ull << 20)

enum { PROCESSES = 2, SITES = 30, LIVE = 300 };

/* A change of what is live, as the test knows it. */
struct change {
	uint64_t ns, bytes, made_ns; /* made_ns: of what is freed; UINT64_MAX = it is allocated */
	unsigned process, site;
};

static struct {
	struct synth synth;
	struct synth_process *p[PROCESSES];
	uint32_t nodes[PROCESSES][SITES];
	struct change *changes;
	size_t count, room;
	uint64_t now, seed, next_addr;
	struct options options;
	struct selection selection;
	struct timeline *timeline;
	struct site_windows *windows;
} w;

static void begin(uint64_t seed, unsigned processes)
{
	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.next_addr = 1 << 20;
	synth_begin(&w.synth);
	for (unsigned i = 0; i < processes; i++) {
		w.p[i] = synth_process(&w.synth, 100 + i, 0);
		for (unsigned k = 0; k < SITES; k++)
			w.nodes[i][k] = synth_node(w.p[i], 0, 0x1000 * (k + 1ul));
	}
}

static void note(struct change c)
{
	w.changes = synth_grow(w.changes, &w.room, w.count + 1, sizeof(*w.changes));
	w.changes[w.count++] = c;
}

struct block {
	uint64_t addr, bytes, ns;
	unsigned site;
};

static struct block take(unsigned process, unsigned site, uint64_t bytes)
{
	struct block b = { w.next_addr, bytes, w.now, site };
	w.next_addr += (bytes + 63) / 64 * 64;
	synth_alloc(w.p[process], 0, SYNTH_START + w.now, b.addr, bytes, w.nodes[process][site]);
	note((struct change){ w.now, bytes, UINT64_MAX, process, site });
	return b;
}

static void drop(unsigned process, struct block *b)
{
	synth_plain(w.p[process], 0, SYNTH_START + w.now, MT_FREE, b->addr);
	note((struct change){ w.now, b->bytes, b->ns, process, b->site });
	b->addr = 0;
}

/* Its blocks are nobody's from then on. */
static void finish(unsigned process, struct block *blocks, size_t count)
{
	w.p[process]->info.exit_kind = MT_EXIT_CODE;
	w.p[process]->info.end_ticks = SYNTH_START + w.now;
	for (size_t i = 0; i < count; i++)
		if (blocks[i].addr)
			note((struct change){ w.now, blocks[i].bytes, 0, process, blocks[i].site });
}

static void run(uint64_t from_ns)
{
	const char *dir = w.synth.dir;
	struct model_query q = MODEL_QUERY_ALL;
	for (struct synth_process *p = w.synth.processes; p; p = p->next)
		synth_write(p, SYNTH_BLOCKS);
	w.selection = (struct selection){
		.options = &w.options, .device = MODEL_NO_DEVICE, .from_ns = from_ns, .until_ns = UINT64_MAX
	};
	w.timeline = timeline_new();
	timeline_attach(w.timeline, &q);
	if (reader_open(&w.selection.reader, &dir, 1, 0) || model_run(&w.selection.model, w.selection.reader, &q))
		abort();
	w.windows = site_windows_new(&w.selection);
	site_windows_watch(w.windows, w.timeline);
	CHECK_EQ(timeline_run(w.timeline, &w.selection), 0);
	CHECK_EQ(site_windows_finish(w.windows), 0);
}

static void end(void)
{
	site_windows_free(w.windows);
	timeline_free(w.timeline);
	model_free(w.selection.model);
	reader_close(w.selection.reader);
	synth_end(&w.synth);
	free(w.changes);
}

/* ---- the truth --------------------------------------------------------------------------------------------- */

enum { ALL = PROCESSES * SITES }; /* the track's place behind those of its sites */
static struct window_values truth[ALL + 1][SITE_WINDOWS_MOST];

static void at_the_highest(uint32_t window, const uint64_t live[ALL + 1])
{
	for (unsigned s = 0; s <= ALL; s++)
		truth[s][window].at_high = live[s];
}

static void apply(const struct change *c, uint64_t live[ALL + 1], uint64_t blocks[ALL + 1])
{
	const unsigned both[] = { c->process * SITES + c->site, ALL };
	for (int i = 0; i < 2; i++) {
		live[both[i]] += c->made_ns == UINT64_MAX ? c->bytes : -c->bytes;
		blocks[both[i]] += c->made_ns == UINT64_MAX ? 1 : -1ull;
	}
}

/* What an ended process left is no free, so none of it is passing. */
static void count_change(const struct change *c, uint32_t window)
{
	const unsigned both[] = { c->process * SITES + c->site, ALL };
	for (int i = 0; i < 2; i++)
		if (c->made_ns == UINT64_MAX)
			truth[both[i]][window].allocated += c->bytes;
		else if (c->made_ns > site_windows_time(w.windows, window))
			truth[both[i]][window].passing += c->bytes;
}

static void find_truth(void)
{
	uint64_t live[ALL + 1] = { 0 }, blocks[ALL + 1] = { 0 };
	size_t i = 0;
	memset(truth, 0, sizeof(truth));
	for (; i < w.count && w.changes[i].ns <= site_windows_time(w.windows, 0); i++)
		apply(&w.changes[i], live, blocks);
	for (uint32_t n = 0; n < site_windows_count(w.windows); n++) {
		uint64_t most = live[ALL];
		at_the_highest(n, live);
		for (; i < w.count && w.changes[i].ns <= site_windows_time(w.windows, n + 1); i++) {
			apply(&w.changes[i], live, blocks);
			count_change(&w.changes[i], n);
			if (live[ALL] > most) {
				most = live[ALL];
				at_the_highest(n, live);
			}
		}
		for (unsigned s = 0; s <= ALL; s++) {
			truth[s][n].live = live[s];
			truth[s][n].blocks = blocks[s];
		}
	}
}

static void same(const struct window_values *found, const struct window_values *wanted)
{
	for (uint32_t n = 0; n < site_windows_count(w.windows); n++) {
		CHECK_EQ(found[n].live, wanted[n].live);
		CHECK_EQ(found[n].at_high, wanted[n].at_high);
		CHECK_EQ(found[n].allocated, wanted[n].allocated);
		CHECK_EQ(found[n].passing, wanted[n].passing);
		CHECK_EQ(found[n].blocks, wanted[n].blocks);
	}
}

static unsigned place_of(const struct window_site *s)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		for (unsigned k = 0; w.p[i] && k < SITES; k++)
			if (reader_process(w.selection.reader, s->process)->pid == w.p[i]->info.pid &&
			    s->node == w.nodes[i][k])
				return i * SITES + k;
	abort();
}

static void values_of(size_t i, double weight, struct window_values values[SITE_WINDOWS_MOST])
{
	memset(values, 0, SITE_WINDOWS_MOST * sizeof(*values));
	site_windows_add(w.windows, i, weight, values);
	site_windows_sum(w.windows, values);
}

static bool is_empty(const struct window_values *values)
{
	static const struct window_values none[SITE_WINDOWS_MOST];
	return !memcmp(values, none, sizeof(none));
}

/* The heap's one track and all the sites that had something. */
static void check_all(void)
{
	struct window_values found[SITE_WINDOWS_MOST];
	bool seen[ALL] = { 0 };
	find_truth();
	CHECK_EQ(site_windows_tracks(w.windows), 1);
	CHECK_EQ(site_windows_track(w.windows, 0)->kind, MODEL_HEAP);
	same(site_windows_track(w.windows, 0)->windows, truth[ALL]);
	for (size_t i = 0; i < site_windows_sites(w.windows); i++) {
		unsigned place = place_of(site_windows_site(w.windows, i));
		CHECK(!seen[place]);
		seen[place] = true;
		values_of(i, 1, found);
		same(found, truth[place]);
	}
	for (unsigned i = 0; i < ALL; i++)
		CHECK_EQ(seen[i], !is_empty(truth[i]));
}

/* ---- at random --------------------------------------------------------------------------------------------- */

static uint64_t rnd(uint64_t n)
{
	return (random_next(&w.seed) >> 20) % n;
}

/* Some allocate in bursts, so that windows have their highest moments in the middle. */
static void act(unsigned process, struct block *blocks, uint64_t events, uint64_t apart)
{
	for (uint64_t n = 0; n < events; n++) {
		struct block *b = &blocks[rnd(n / 200 % 2 ? LIVE : LIVE / 8)];
		w.now += 1 + rnd(apart);
		if (b->addr)
			drop(process, b);
		else
			*b = take(process, (unsigned)rnd(SITES), 1 + rnd(rnd(20) ? 3000 : 100000));
	}
}

/* One ends in the middle with what it has, the other one lives to the end. */
static void two_programs(uint64_t seed)
{
	struct block blocks[PROCESSES][LIVE] = { 0 };
	begin(seed, PROCESSES);
	for (int i = 0; i < 20; i++) {
		act(0, blocks[0], 300, 2000000);
		if (i < 12)
			act(1, blocks[1], 1 + rnd(200), 2000000);
		if (i == 11)
			finish(1, blocks[1], LIVE);
	}
	finish(0, NULL, 0);
}

TEST(every_figure_of_every_window)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		two_programs(seed * 77);
		run(0);
		check_all();
		end();
	}
}

/* What was there before is in the first window, and was not allocated in it. */
TEST(from_a_moment_on)
{
	two_programs(4711);
	run(w.now / 3);
	CHECK_EQ(site_windows_time(w.windows, 0), w.now / 3);
	check_all();
	CHECK(site_windows_track(w.windows, 0)->windows[0].live);
	end();
}

TEST(windows_are_equal_but_for_the_peak)
{
	two_programs(5);
	run(0);
	const uint64_t peak = model_totals(w.selection.model, MODEL_HEAP).peak_ns;
	uint32_t count = site_windows_count(w.windows), at_peak = 0;
	CHECK_EQ(count, SITE_WINDOWS + 1);
	CHECK_EQ(site_windows_time(w.windows, 0), 0);
	CHECK_EQ(site_windows_time(w.windows, count), w.now);
	for (uint32_t i = 0; i < count; i++) {
		CHECK(site_windows_time(w.windows, i) < site_windows_time(w.windows, i + 1));
		CHECK(site_windows_time(w.windows, i + 1) - site_windows_time(w.windows, i) <= w.now / 256 + 1);
		at_peak += site_windows_time(w.windows, i) == peak;
	}
	CHECK_EQ(at_peak, 1);
	CHECK_EQ(site_windows_track(w.windows, 0)->peak, model_totals(w.selection.model, MODEL_HEAP).peak_bytes);
	end();
}

/* Of blocks that are the sum of others it is so much. */
TEST(weights)
{
	struct window_values whole[SITE_WINDOWS_MOST], third[SITE_WINDOWS_MOST];
	two_programs(6);
	run(0);
	for (size_t i = 0; i < site_windows_sites(w.windows); i++) {
		values_of(i, 1, whole);
		values_of(i, 1 / 3.0, third);
		for (uint32_t n = 0; n < site_windows_count(w.windows); n++) {
			CHECK_EQ(third[n].live, (whole[n].live + 1) / 3);
			CHECK_EQ(third[n].at_high, (whole[n].at_high + 1) / 3);
			CHECK_EQ(third[n].blocks, (whole[n].blocks + 1) / 3);
		}
	}
	end();
}

/* ---- which sites ------------------------------------------------------------------------------------------- */

static void at(uint64_t ns)
{
	w.now = ns;
}

/* Worth is what it held or made, whichever is the larger part. What is worth next to nothing is there too, so that sums
 * of sites are those of the track. */
TEST(all_by_what_they_are_worth)
{
	begin(1, 1);
	at(SECOND);
	take(0, 0, 64 * MIB);
	take(0, 1, 20000);
	take(0, 2, 20000);
	for (int i = 1; i <= 1000; i++) {
		at(SECOND + (uint64_t)i * 1000000);
		struct block b = take(0, 3, 32000); /* never much, and a third of all that is allocated */
		at(w.now + 1000);
		drop(0, &b);
	}
	at(3 * SECOND);
	finish(0, NULL, 0);
	run(0);
	CHECK_EQ(site_windows_sites(w.windows), 4);
	const struct window_site *first = site_windows_site(w.windows, 0), *second = site_windows_site(w.windows, 1);
	CHECK_EQ(place_of(first), 0);
	CHECK_EQ(place_of(second), 3);
	CHECK_EQ(first->most, 64 * MIB);
	CHECK_EQ(second->most, 32000);
	CHECK_EQ(second->allocated, 32000000);
	CHECK(first->worth > 0.99 && second->worth > 0.3 && second->worth < 0.34);
	CHECK_EQ(site_windows_track(w.windows, 0)->windows[site_windows_count(w.windows) - 1].live, 64 * MIB + 40000);
	end();
}

/* More pairs of a site and a window than there is room for: those that never held much go, the figures of what stays
 * and of the whole are as they were. */
TEST(entries_are_bounded)
{
	enum { MANY = 14000, LARGE = 200 };
	begin(1, 1);
	for (unsigned i = SITES; i < MANY; i++)
		synth_node(w.p[0], 0, 0x1000 * (i + 1ul));
	uint64_t addr = MIB, live = 0;
	for (uint64_t window = 0; window < SITE_WINDOWS; window++)
		for (uint32_t i = 0; i < MANY; i++) {
			uint64_t bytes = i % (MANY / LARGE) ? 8 + i % 500 : 4096;
			synth_alloc(w.p[0], 0, SYNTH_START + window * SECOND + 1 + i, addr += 8192, bytes,
				    w.nodes[0][0] + i);
			live += bytes;
		}
	w.p[0]->block_slots = 65536;
	at(SITE_WINDOWS * SECOND);
	finish(0, NULL, 0);
	run(0);
	const struct window_track *t = site_windows_track(w.windows, 0);
	struct window_values found[SITE_WINDOWS_MOST];
	CHECK_EQ(t->windows[site_windows_count(w.windows) - 1].live, live);
	CHECK(site_windows_sites(w.windows) >= LARGE && site_windows_sites(w.windows) < MANY / 3);
	for (size_t i = 0; i < LARGE; i++) {
		const struct window_site *s = site_windows_site(w.windows, i);
		CHECK_EQ((s->node - w.nodes[0][0]) % (MANY / LARGE), 0);
		CHECK_EQ(s->most, 4096 * SITE_WINDOWS);
		values_of(i, 1, found);
		for (uint32_t n = 0; n < site_windows_count(w.windows); n++) {
			/* all of them come within its first microseconds */
			const uint64_t until = site_windows_time(w.windows, n + 1);
			if (until % SECOND == 0)
				CHECK_EQ(found[n].live, 4096 * (until / SECOND));
		}
	}
	end();
}

/* ---- devices ----------------------------------------------------------------------------------------------- */

static void on_device(enum mt_kind kind, enum mt_class class, uint32_t device, uint64_t addr, uint64_t bytes)
{
	at(w.now + SECOND / 100);
	synth_dev(w.p[0], 0, SYNTH_START + w.now, kind, class, device, addr, bytes, w.nodes[0][0]);
}

static const struct window_track *track_of(enum model_kind kind, const char *device)
{
	for (unsigned i = 0; i < site_windows_tracks(w.windows); i++) {
		const struct window_track *t = site_windows_track(w.windows, i);
		if (t->kind == kind && t->device != MODEL_NO_DEVICE &&
		    !strcmp(model_device(w.selection.model, t->device)->uuid, device))
			return t;
	}
	return NULL;
}

/* Of each device its own track of each kind, and layouts of its pool at its peak and over time. */
TEST(devices)
{
	begin(1, 1);
	synth_device(w.p[0], 1, MT_BACKEND_CUDA, "GPU-a", 1024 * MIB);
	synth_device(w.p[0], 2, MT_BACKEND_CUDA, "GPU-b", 1024 * MIB);
	for (uint64_t i = 0; i < 20; i++) {
		on_device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, (i + 1) << 32, 20 * MIB);
		for (uint64_t k = 0; k < 4; k++)
			on_device(MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, ((i + 1) << 32) + k * 4 * MIB, 4 * MIB);
		on_device(MT_DEVICE_FREE, MT_CLASS_POOL, 1, (i + 1) << 32, 0);
	}
	on_device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 100ull << 32, 64 * MIB);
	on_device(MT_DEVICE_FREE, MT_CLASS_DEVICE, 2, 100ull << 32, 0);
	at(w.now + SECOND);
	finish(0, NULL, 0);
	run(0);
	const struct window_track *driver = track_of(MODEL_DEVICE, "GPU-a"), *pool = track_of(MODEL_POOL, "GPU-a"),
				  *other = track_of(MODEL_DEVICE, "GPU-b");
	CHECK(driver && pool && other && !track_of(MODEL_POOL, "GPU-b"));
	const uint32_t last = site_windows_count(w.windows) - 1;
	if (!driver || !pool || !other)
		return;
	CHECK_EQ(driver->windows[last].live, 400 * MIB);
	CHECK_EQ(pool->windows[last].live, 20 * 12 * MIB);
	CHECK_EQ(pool->peak, (19 * 12 + 16) * MIB);
	CHECK_EQ(other->windows[last].live, 0);
	CHECK_EQ(other->peak, 64 * MIB);
	CHECK(site_windows_layouts(w.windows) > 10);
	bool peak = false;
	for (size_t i = 0; i < site_windows_layouts(w.windows); i++) {
		const struct window_layout *l = site_windows_layout(w.windows, i);
		/* every 60 ms a segment and 3 or 4 blocks of 4 MiB of it */
		uint64_t events = l->ns / (SECOND / 100), round = events / 6, step = events % 6;
		uint64_t blocks = 3 * round + (step > 5 ? 3 : step > 1 ? step - 1 : 0);
		peak = peak || l->layout->allocated == pool->peak;
		if (events < 120) {
			CHECK_EQ(l->layout->allocated, blocks * 4 * MIB);
			CHECK_EQ(l->layout->segment_count, round + (step > 1)); /* whose it is, its first block says */
		}
	}
	CHECK(peak);
	end();
}

TEST_MAIN
