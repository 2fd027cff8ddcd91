/* Steps and phases of generated programs: number, low and high points against what the generator itself counted. */
#include "analyzer/growth.h"
#include "analyzer/phases.h"
#include "analyzer/steps.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <math.h>

#define MS 1000000ull

enum { MOST_STEPS = 12000, BLOCKS = 4096 };

/* A program: live blocks, and the truth about its steps. */
struct program {
	struct synth synth;
	struct synth_process *p;
	uint64_t now, live, next_addr;
	uint64_t low[MOST_STEPS], high[MOST_STEPS];
	size_t steps;
	uint32_t names;
	uint64_t seed;
};

static struct program prog;

static uint64_t rnd(uint64_t n)
{
	return (random_next(&prog.seed) >> 20) % n;
}

static void begin(uint64_t seed)
{
	prog = (struct program){ .now = SYNTH_START + MS, .next_addr = 0x10000, .seed = seed * 0x9E3779B97F4A7C15ull + 1 };
	synth_begin(&prog.synth);
	prog.p = synth_process(&prog.synth, 100, 0);
}

static uint32_t site(uint64_t pc)
{
	return synth_node(prog.p, 0, pc);
}

static void note(void)
{
	if (!prog.steps)
		return;
	size_t i = prog.steps - 1;
	prog.low[i] = prog.live < prog.low[i] ? prog.live : prog.low[i];
	prog.high[i] = prog.live > prog.high[i] ? prog.live : prog.high[i];
}

/* The truth's next step begins. */
static void step(void)
{
	prog.low[prog.steps] = prog.high[prog.steps] = prog.live;
	prog.steps++;
}

struct held { uint64_t addr, size; };

static struct held take(uint32_t node, uint64_t size)
{
	struct held h = { prog.next_addr, size };
	prog.next_addr += size + 64;
	prog.now += 20000 + rnd(20000);
	synth_alloc(prog.p, 0, prog.now, h.addr, size, node);
	prog.live += size;
	note();
	return h;
}

static void drop(struct held h)
{
	prog.now += 5000;
	synth_plain(prog.p, 0, prog.now, MT_FREE, h.addr);
	prog.live -= h.size;
	note();
}

static void mark(enum mt_mark what, uint64_t value, const char *name, enum mt_mark_source source)
{
	uint32_t id = 0;
	if (name) {
		id = ++prog.names;
		synth_text(prog.p, MT_REC_NAME, &(struct mt_rec_name){ id, 0 }, sizeof(struct mt_rec_name), name);
	}
	prog.now += 1000;
	synth_ext(prog.p, 0, (struct mt_event){ .ticks = prog.now, .addr = value, .size = id, .kind = MT_MARK },
		  (struct mt_ext_device){ .class = what, .source = source });
}

/* ---- the two passes ---------------------------------------------------------------------------------------- */

struct passes {
	struct rhythm *rhythm;
	struct steps *steps;
	struct phases *phases;
	struct reader *reader[2];
};

static void on_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct passes *s = arg;
	(void)ring;
	if (s->steps) {
		steps_event(s->steps, p, slot, thread);
		phases_event(s->phases, p, slot, thread);
	} else {
		rhythm_event(s->rhythm, p, slot);
	}
}

static void on_change(void *arg, const struct model_change *c)
{
	struct passes *s = arg;
	if (s->steps) {
		steps_change(s->steps, c);
		phases_change(s->phases, c);
	} else {
		rhythm_change(s->rhythm, c);
		phases_look(s->phases, c);
	}
}

static void run_pass(struct passes *s, int i)
{
	const char *dir = prog.synth.dir;
	struct model_query q = MODEL_QUERY_ALL;
	struct model *m = NULL;
	q.on_event = on_event;
	q.on_change = on_change;
	q.arg = s;
	if (reader_open(&s->reader[i], &dir, 1, 0) < 0 || model_run(&m, s->reader[i], &q) < 0)
		abort();
	model_free(m);
}

static void run(struct passes *s)
{
	*s = (struct passes){ .rhythm = rhythm_new(), .phases = phases_new() };
	prog.p->info.exit_kind = MT_EXIT_CODE;
	prog.p->info.end_ticks = prog.now;
	synth_write(prog.p, SYNTH_BLOCKS);
	run_pass(s, 0);
	s->steps = steps_new(s->rhythm);
	run_pass(s, 1);
	steps_finish(s->steps);
	phases_finish(s->phases);
}

static void end(struct passes *s)
{
	steps_free(s->steps);
	phases_free(s->phases);
	rhythm_free(s->rhythm);
	reader_close(s->reader[0]);
	reader_close(s->reader[1]);
	synth_end(&prog.synth);
}

static const struct step_track *heap_of(const struct pace *p)
{
	for (size_t i = 0; i < p->track_count; i++)
		if (p->tracks[i].kind == MODEL_HEAP)
			return &p->tracks[i];
	return NULL;
}

/* Every entry is the least and the greatest of the steps that it stands for. */
static void check_points(const struct pace *p, size_t last)
{
	const struct step_track *t = p ? heap_of(p) : NULL;
	size_t at = 0, wrong = 0;
	CHECK(t != NULL);
	for (size_t i = 0; t && i < p->count && at + p->steps[i].count <= last; i++) {
		uint64_t low = UINT64_MAX, high = 0;
		for (uint32_t k = 0; k < p->steps[i].count; k++, at++) {
			low = prog.low[at] < low ? prog.low[at] : low;
			high = prog.high[at] > high ? prog.high[at] : high;
		}
		wrong += step_low(t, i) != low || step_high(t, i) != high;
	}
	CHECK_EQ(wrong, 0);
	CHECK(at + (p ? p->steps[0].count : 0) > last);
}

/* ---- a training ------------------------------------------------------------------------------------------ */

enum { LAYERS = 6 };

struct training {
	uint32_t batch, layer, loss, grad, gradient, optimizer, eval[3], table, leak;
	struct held held[BLOCKS];
	size_t count;
};

static struct training sites_of(void)
{
	return (struct training){ .batch = site(0x1000), .layer = site(0x2000), .loss = site(0x3000), .grad = site(0x4000),
				  .gradient = site(0x4800), .optimizer = site(0x5000),
				  .eval = { site(0x6000), site(0x6100), site(0x6200) }, .table = site(0x7000), .leak = site(0x8000) };
}

/* Tables, weights: many allocations of few sites, no two of which look alike. */
static void set_up(struct training *t)
{
	for (int i = 0; i < 200; i++) {
		struct held h = take(t->table, 100 + rnd(5000));
		if (i % 3 == 0)
			drop(h);
		prog.now += rnd(i % 50 ? 1000 : 3 * MS);
	}
}

static void micro_step(struct training *t, struct held *batch)
{
	struct held layers[LAYERS];
	*batch = take(t->batch, 10000);
	for (int i = 0; i < LAYERS; i++)
		layers[i] = take(t->layer, 20000 + 100 * (uint64_t)i);
	struct held loss = take(t->loss, 400);
	for (int i = LAYERS; i-- > 0;) {
		struct held grad = take(t->grad, 20000);
		drop(layers[i]);
		drop(grad);
	}
	drop(loss);
}

static void train_step(struct training *t, int micro)
{
	struct held batch, gradient = { 0, 0 };
	for (int i = 0; i < micro; i++) {
		micro_step(t, &batch);
		if (!i)
			gradient = take(t->gradient, 60000);
		drop(batch);
	}
	struct held moment = take(t->optimizer, 30000);
	drop(moment);
	drop(gradient);
}

static void evaluate(struct training *t)
{
	for (int i = 0; i < 5; i++) {
		struct held a = take(t->eval[0], 100000), b = take(t->eval[1], 50000), c = take(t->eval[2], 1000);
		drop(b);
		drop(a);
		drop(c);
	}
}

TEST(a_batch_loop_in_an_epoch_loop)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct passes s;
		begin(seed);
		struct training t = sites_of();
		set_up(&t);
		for (int epoch = 0; epoch < 5; epoch++) {
			for (int i = 0; i < 40; i++) {
				step();
				train_step(&t, 1);
			}
			evaluate(&t);
		}
		run(&s);
		const struct pace *p = steps_of(s.steps, 0);
		CHECK(p && p->source == RHYTHM_SITES);
		CHECK_EQ(p ? p->total : 0, 200);
		CHECK_EQ(p ? p->micro : 0, 1);
		if (p)
			check_points(p, 199); /* the last is open */
		CHECK_EQ(p ? p->rare : 0, 4);
		CHECK_EQ(p ? (p->rare_last - p->rare_first) / 3 : 0, 40);
		end(&s);
	}
}

TEST(micro_steps_are_no_steps)
{
	struct passes s;
	begin(7);
	struct training t = sites_of();
	set_up(&t);
	for (int i = 0; i < 60; i++) {
		step();
		train_step(&t, 4);
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	CHECK(p && p->source == RHYTHM_SITES);
	CHECK_EQ(p ? p->total : 0, 60);
	CHECK_EQ(p ? p->micro : 0, 4);
	end(&s);
}

TEST(marked_steps_have_their_numbers)
{
	struct passes s;
	begin(3);
	struct training t = sites_of();
	struct held all[50];
	for (uint64_t i = 0; i < 50; i++) {
		mark(MT_MARK_STEP, 100 + i, NULL, MT_MARK_PROGRAM);
		step();
		train_step(&t, 1);
		all[i] = take(t.leak, 5000);
	}
	prog.steps = 0; /* the rest is no step's */
	prog.now += 50 * MS;
	for (int i = 0; i < 50; i++)
		drop(all[i]);
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	CHECK(p && p->source == RHYTHM_MARKS);
	CHECK_EQ(p ? p->total : 0, 50);
	if (p) {
		CHECK_EQ(p->steps[0].number, 100);
		CHECK_EQ(p->steps[49].number, 149);
		CHECK_EQ(step_find(p, 120), 20);
		check_points(p, 50);
		CHECK_EQ(step_low(heap_of(p), 49), 49 * 5000);
	}
	end(&s);
}

TEST(ranges_called_step_are_steps)
{
	struct passes s;
	char name[32];
	begin(4);
	struct training t = sites_of();
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "Train step #%d", 7 + i);
		mark(MT_MARK_BEGIN, 0, name, MT_MARK_NVTX);
		step();
		train_step(&t, 1);
		mark(MT_MARK_END, 0, NULL, MT_MARK_NVTX);
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	CHECK(p && p->source == RHYTHM_NVTX);
	CHECK_EQ(p ? p->total : 0, 20);
	CHECK_EQ(p ? p->steps[3].number : 0, 10);
	if (p)
		check_points(p, 20);
	end(&s);
}

TEST(many_steps_are_joined_and_a_leak_stays_exact)
{
	struct passes s;
	enum { N = 10000 };
	begin(5);
	uint32_t work = site(0x1000), more = site(0x1100), leak = site(0x2000);
	for (uint64_t i = 0; i < N; i++) {
		mark(MT_MARK_STEP, 1 + i, NULL, MT_MARK_PROGRAM);
		step();
		struct held a = take(work, 50000), b = take(more, 1000);
		take(leak, 1024);
		drop(a);
		drop(b);
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	CHECK_EQ(p ? p->total : 0, N);
	CHECK(p && p->count <= STEPS_MOST && p->count > STEPS_MOST / 4);
	if (p)
		check_points(p, N);
	double x[STEPS_BUCKETS], bytes[STEPS_BUCKETS] = { 0 }, blocks[STEPS_BUCKETS] = { 0 };
	size_t n = steps_site(s.steps, 0, 2, 1, x, bytes, blocks);
	CHECK(n > STEPS_BUCKETS / 4 && n <= STEPS_BUCKETS);
	struct growth g = growth_of(x, bytes, n);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 1024) < 11);
	CHECK_EQ(bytes[0], 0);
	CHECK_EQ(bytes[n - 1], 1024 * blocks[n - 1]);
	CHECK_EQ(steps_site_last(s.steps, 0, 2), 1024 * (N - 1));
	end(&s);
}

/* The lowest is what stays in a bucket whatever goes on in it, also where the site does not change for a while. */
TEST(low_points_of_sites)
{
	struct passes s;
	begin(66);
	uint32_t wave = site(0x1000), rest = site(0x2000);
	struct held kept = { 0, 0 };
	for (uint64_t i = 0; i < 100; i++) {
		mark(MT_MARK_STEP, 1 + i, NULL, MT_MARK_PROGRAM);
		struct held a = take(rest, 100);
		if (i == 20)
			kept = take(wave, 10000);
		if (i >= 40 && i < 60) {
			struct held b = take(wave, 5000);
			drop(b);
		}
		if (i == 70)
			drop(kept);
		drop(a);
	}
	run(&s);
	double x[STEPS_BUCKETS], bytes[STEPS_BUCKETS] = { 0 }, blocks[STEPS_BUCKETS] = { 0 };
	size_t n = steps_site(s.steps, 0, 1, 1, x, bytes, blocks), wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += bytes[i] != (i > 20 && i < 70 ? 10000 : 0);
	CHECK_EQ(n, 100);
	CHECK_EQ(wrong, 0);
	end(&s);
}

/* Batches of steps, and before each something that is kept: as a server does that reads requests between its handlers' turns. */
TEST(what_grows_between_steps_grows)
{
	struct passes s;
	begin(67);
	uint32_t rest = site(0x1000), kept = site(0x2000);
	for (uint64_t i = 0; i < 100; i++) {
		prog.now += i % 20 ? 0 : 50 * MS;
		for (int k = 0; i % 20 == 0 && k < 20; k++)
			take(kept, 20000);
		mark(MT_MARK_STEP, 1 + i, NULL, MT_MARK_PROGRAM);
		drop(take(rest, 100));
	}
	run(&s);
	double x[STEPS_BUCKETS], bytes[STEPS_BUCKETS] = { 0 }, blocks[STEPS_BUCKETS] = { 0 };
	size_t n = steps_site(s.steps, 0, 0, 1, x, bytes, blocks), wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += bytes[i] != (double)(400000 * (i / 20 + 1));
	CHECK_EQ(n, 100);
	CHECK_EQ(wrong, 0);
	end(&s);
}

TEST(a_program_without_a_loop_has_windows_of_time)
{
	struct passes s;
	begin(8);
	uint32_t odd = site(0x1000);
	for (int i = 0; i < 300; i++) {
		prog.now += rnd(rnd(20) ? MS : 60 * MS);
		struct held h = take(odd, 1000 + rnd(3000));
		if (rnd(2))
			drop(h);
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	CHECK(p && p->source == RHYTHM_NONE);
	CHECK(p && p->count > 10 && p->count <= STEPS_WINDOWS);
	for (size_t i = 1; p && i < p->count; i++)
		CHECK(p->steps[i].begin_ns >= p->steps[i - 1].end_ns - 1);
	end(&s);
}

/* Turns that each need some of the host for a moment, and make a block on a device, which is freed in the next turn or kept. */
static enum rhythm_source turns_on_a_device(bool kept)
{
	struct passes s;
	begin(9);
	synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
	uint32_t work = site(0x1000), more = site(0x1100), on_device = site(0x2000);
	for (uint64_t i = 0; i < 400; i++) {
		struct held a = take(work, 5000), b = take(more, 100);
		prog.now += MS / 4;
		if (i && !kept)
			synth_dev(prog.p, 0, prog.now++, MT_DEVICE_FREE, MT_CLASS_DEVICE, 1, i << 30, 0, 0);
		synth_dev(prog.p, 0, prog.now, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, (i + 1) << 30, 1 << 20, on_device);
		drop(a);
		drop(b);
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	enum rhythm_source source = p ? p->source : RHYTHM_MARKS;
	end(&s);
	return source;
}

TEST(loading_has_no_steps)
{
	CHECK_EQ(turns_on_a_device(false), RHYTHM_SITES);
	CHECK_EQ(turns_on_a_device(true), RHYTHM_NONE);
}

/* The same turns, of a site of the heap or of one of mappings, as the interpreter's next arena is made by whoever needs one. */
static enum rhythm_source turns_of(bool mapped)
{
	struct passes s;
	begin(11);
	uint32_t work = site(0x1000), other = site(0x1100);
	for (uint64_t i = 0; i < 60; i++) {
		prog.now += MS;
		if (mapped)
			synth_map(prog.p, 0, prog.now, (i + 1) << 32, 1 << 20, (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, work);
		else
			take(work, 1 << 20);
		for (uint64_t k = 0; k < 5 + rnd(100); k++)
			drop(take(other, 100));
	}
	run(&s);
	const struct pace *p = steps_of(s.steps, 0);
	enum rhythm_source source = p ? p->source : RHYTHM_MARKS;
	end(&s);
	return source;
}

TEST(arenas_are_no_steps)
{
	CHECK_EQ(turns_of(false), RHYTHM_SITES);
	CHECK_EQ(turns_of(true), RHYTHM_NONE);
}

/* ---- phases ------------------------------------------------------------------------------------------------ */

TEST(marked_phases_nest_and_keep_their_peaks)
{
	struct passes s;
	begin(9);
	uint32_t a = site(0x1000), b = site(0x2000);
	struct held first = take(a, 1000);
	mark(MT_MARK_BEGIN, 0, "outer", MT_MARK_PROGRAM);
	struct held kept = take(a, 5000);
	mark(MT_MARK_BEGIN, 0, "inner", MT_MARK_PROGRAM);
	drop(take(b, 20000));
	mark(MT_MARK_END, 0, NULL, MT_MARK_PROGRAM);
	drop(take(b, 7000));
	mark(MT_MARK_END, 0, NULL, MT_MARK_PROGRAM);
	drop(first);
	drop(kept);
	run(&s);
	size_t outer = phases_find(s.phases, "outer", 0), inner = phases_find(s.phases, "inner", 0);
	CHECK_EQ(phases_count(s.phases), 2);
	CHECK(outer == 0 && inner == 1);
	const struct phase *o = phases_get(s.phases, outer), *i = phases_get(s.phases, inner);
	CHECK_EQ(o->tracks[0].peak_bytes, 26000);
	CHECK_EQ(i->tracks[0].peak_bytes, 26000);
	CHECK_EQ(o->tracks[0].begin_bytes, 1000);
	CHECK_EQ(o->tracks[0].kept_bytes, 5000);
	CHECK_EQ(i->tracks[0].kept_bytes, 0);
	CHECK(o->begin_ns < i->begin_ns && i->end_ns < o->end_ns);
	end(&s);
}

/* A pool that had 900 in blocks at its peak, of 1200 the process had of the driver; at the end 100 and DRIVER_END. */
static bool freed(uint64_t visits, uint64_t driver_end, uint64_t driver_at_peak, struct phase_freed *out)
{
	struct phase_track tracks[] = {
		{ .kind = MODEL_POOL, .device = 1, .peak_bytes = 900, .end_bytes = 100, .driver_bytes = driver_at_peak },
		{ .kind = MODEL_DEVICE, .device = 1, .peak_bytes = 1200, .end_bytes = driver_end },
		{ .kind = MODEL_DEVICE, .device = 2, .peak_bytes = 77, .end_bytes = 77 },
	};
	struct phase p = { .visits = visits, .tracks = tracks, .track_count = 3 };
	return phase_freed(&p, &tracks[0], out);
}

TEST(what_a_phase_frees_goes_to_the_driver_or_stays)
{
	struct phase_freed f;
	CHECK(freed(1, 1200, 1200, &f) && f.freed == 800 && f.to_driver == 0 && f.in_pool == 800);   /* all kept */
	CHECK(freed(1, 400, 1200, &f) && f.freed == 800 && f.to_driver == 800 && f.in_pool == 0);    /* empty_cache() */
	CHECK(freed(1, 700, 1200, &f) && f.to_driver == 500 && f.in_pool == 300);
	CHECK(freed(1, 1500, 1200, &f) && f.to_driver == -300 && f.in_pool == 1100);                 /* it has taken more since */
	CHECK(!freed(2, 1200, 1200, &f));                                                            /* which visit's? */
	CHECK(!freed(1, 1200, 0, &f));                                                               /* nothing was seen of the driver */
}

TEST(phases_that_come_again_and_again_are_one)
{
	struct passes s;
	begin(10);
	uint32_t a = site(0x1000);
	synth_text(prog.p, MT_REC_NAME, &(struct mt_rec_name){ 1, 0 }, sizeof(struct mt_rec_name), "forward");
	for (uint64_t i = 0; i < 30; i++) {
		prog.now += MS;
		synth_ext(prog.p, 0, (struct mt_event){ .ticks = prog.now, .size = 1, .kind = MT_MARK },
			  (struct mt_ext_device){ .class = MT_MARK_BEGIN, .source = MT_MARK_NVTX });
		drop(take(a, 1000 + 100 * i));
		take(a, 10);
		mark(MT_MARK_END, 0, NULL, MT_MARK_NVTX);
	}
	run(&s);
	CHECK_EQ(phases_count(s.phases), 1);
	const struct phase *p = phases_get(s.phases, 0);
	CHECK_EQ(p->visits, 30);
	CHECK_EQ(p->tracks[0].peak_bytes, 1000 + 100 * 29 + 10 * 29);
	CHECK_EQ(p->tracks[0].kept_bytes, 300);
	CHECK(p->busy_ns < p->end_ns - p->begin_ns);
	end(&s);
}

TEST_MAIN
