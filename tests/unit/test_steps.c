/* Steps of generated programs: number, low and high points against what the generator itself counted. */
#include "analyzer/timeline/growth.h"
#include "tests/unit/program.h"

/* Every entry is the least and the greatest of the steps that it stands for. */
static void check_points(const struct step_list *steps, size_t last)
{
	const struct step_track *t = steps ? heap_of(steps) : NULL;
	size_t at = 0, wrong = 0;
	CHECK(t != NULL);
	for (size_t i = 0; t && i < steps->count && at + steps->steps[i].count <= last; i++) {
		uint64_t low = UINT64_MAX, high = 0;
		for (uint32_t k = 0; k < steps->steps[i].count; k++, at++) {
			low = prog.low[at] < low ? prog.low[at] : low;
			high = prog.high[at] > high ? prog.high[at] : high;
		}
		wrong += step_low(t, i) != low || step_high(t, i) != high;
	}
	CHECK_EQ(wrong, 0);
	CHECK(at + (steps ? steps->steps[0].count : 0) > last);
}

/* ---- a training ------------------------------------------------------------------------------------------ */

enum { LAYERS = 6 };

struct training {
	uint32_t batch, layer, loss, grad, gradient, optimizer, eval[3], table, leak;
	struct held held[BLOCKS];
	size_t count;
};

static struct training owners_of(void)
{
	return (struct training){ .batch = site(0x1000),
				  .layer = site(0x2000),
				  .loss = site(0x3000),
				  .grad = site(0x4000),
				  .gradient = site(0x4800),
				  .optimizer = site(0x5000),
				  .eval = { site(0x6000), site(0x6100), site(0x6200) },
				  .table = site(0x7000),
				  .leak = site(0x8000) };
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
		struct training t = owners_of();
		set_up(&t);
		for (int epoch = 0; epoch < 5; epoch++) {
			for (int i = 0; i < 40; i++) {
				step();
				train_step(&t, 1);
			}
			evaluate(&t);
		}
		run(&s);
		const struct step_list *steps = steps_of(s.steps, 0);
		CHECK(steps && steps->source == LOOP_SITES);
		CHECK_EQ(steps ? steps->total : 0, 200);
		CHECK_EQ(steps ? steps->micro : 0, 1);
		if (steps)
			check_points(steps, 199); /* the last is open */
		CHECK_EQ(steps ? steps->rare : 0, 4);
		CHECK_EQ(steps ? steps->rare_first : 0, 40);
		CHECK_EQ(steps ? steps->rare_last : 0, 160);
		end(&s);
	}
}

TEST(micro_steps_are_no_steps)
{
	struct passes s;
	begin(7);
	struct training t = owners_of();
	set_up(&t);
	for (int i = 0; i < 60; i++) {
		step();
		train_step(&t, 4);
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK(steps && steps->source == LOOP_SITES);
	CHECK_EQ(steps ? steps->total : 0, 60);
	CHECK_EQ(steps ? steps->micro : 0, 4);
	end(&s);
}

TEST(marked_steps_have_their_numbers)
{
	struct passes s;
	begin(3);
	struct training t = owners_of();
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
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK(steps && steps->source == LOOP_MARKS);
	CHECK_EQ(steps ? steps->total : 0, 50);
	if (steps) {
		CHECK_EQ(steps->steps[0].number, 100);
		CHECK_EQ(steps->steps[49].number, 149);
		CHECK_EQ(step_find(steps, 120), 20);
		check_points(steps, 50);
		CHECK_EQ(step_low(heap_of(steps), 49), 49 * 5000);
	}
	end(&s);
}

TEST(ranges_called_step_are_steps)
{
	struct passes s;
	char name[32];
	begin(4);
	struct training t = owners_of();
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "Train step #%d", 7 + i);
		mark(MT_MARK_BEGIN, 0, name, MT_MARK_NVTX);
		step();
		train_step(&t, 1);
		mark(MT_MARK_END, 0, NULL, MT_MARK_NVTX);
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK(steps && steps->source == LOOP_NVTX);
	CHECK_EQ(steps ? steps->total : 0, 20);
	CHECK_EQ(steps ? steps->steps[3].number : 0, 10);
	if (steps)
		check_points(steps, 20);
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
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK_EQ(steps ? steps->total : 0, N);
	CHECK(steps && steps->count <= STEPS_MOST && steps->count > STEPS_MOST / 4);
	if (steps)
		check_points(steps, N);
	const struct step_track *t = steps ? heap_of(steps) : NULL;
	double x[STEPS_MOST], low[STEPS_MOST];
	size_t n = 0;
	for (; t && n < steps->count; n++) {
		x[n] = step_x(steps, n);
		low[n] = (double)step_low(t, n);
	}
	struct growth g = growth_of(x, low, n);
	CHECK_EQ(g.kind, GROWTH_LINEAR);
	CHECK(fabs(g.rate - 1024) < 11);
	CHECK_EQ(cohorts_live(s.cohorts, 0, 2, NULL), 1024 * N);
	struct outlook_found f = outlook_of_site(&s, 2);
	CHECK_EQ(f.outlook, OUTLOOK_LEAKS);
	CHECK_EQ(f.bytes, 1024 * N);
	end(&s);
}

/* Batches of steps, and before each something that is kept: as a server does that reads requests between its handlers'
 * turns. */
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
	struct outlook_found f = outlook_of_site(&s, 0);
	CHECK(outlook_goes_on(f.outlook));
	CHECK_EQ(f.bytes, 2000000);
	CHECK_EQ(f.blocks, 100);
	CHECK(f.members >= 5);
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
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK(steps && steps->source == LOOP_NONE);
	CHECK(steps && steps->count > 10 && steps->count <= STEPS_WINDOWS);
	for (size_t i = 1; steps && i < steps->count; i++)
		CHECK(steps->steps[i].begin_ns >= steps->steps[i - 1].end_ns - 1);
	end(&s);
}

/* What told the steps of the program that was made; LOOP_MARKS: it has no list of steps. */
static enum loop_source source_of_steps(void)
{
	struct passes s;
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	enum loop_source source = steps ? steps->source : LOOP_MARKS;
	end(&s);
	return source;
}

/* Turns that each need some of the host for a moment, and make a block on a device, which is freed in the next turn or
 * kept. */
static enum loop_source turns_on_a_device(bool kept)
{
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
	return source_of_steps();
}

TEST(loading_has_no_steps)
{
	CHECK_EQ(turns_on_a_device(false), LOOP_SITES);
	CHECK_EQ(turns_on_a_device(true), LOOP_NONE);
}

/* The same turns, of a site of the heap or of one of mappings, as the interpreter's next arena is made by whoever needs
 * one. */
static enum loop_source turns_of(bool mapped)
{
	begin(11);
	uint32_t work = site(0x1000), other = site(0x1100);
	for (uint64_t i = 0; i < 60; i++) {
		prog.now += MS;
		if (mapped)
			synth_map(prog.p, 0, prog.now, (i + 1) << 32, 1 << 20,
				  (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, work);
		else
			take(work, 1 << 20);
		for (uint64_t k = 0; k < 5 + rnd(100); k++)
			drop(take(other, 100));
	}
	return source_of_steps();
}

TEST(arenas_are_no_steps)
{
	CHECK_EQ(turns_of(false), LOOP_SITES);
	CHECK_EQ(turns_of(true), LOOP_NONE);
}

/* Turns of some microseconds, which make 1.6 MiB, and before them one block of so many bytes. */
static enum loop_source quick_turns_behind(uint64_t bytes)
{
	begin(12);
	uint32_t table = site(0x1000), kept = site(0x1100), passes = site(0x1200);
	drop(take(table, bytes));
	for (int i = 0; i < 400; i++) {
		prog.now += MS / 100;
		take(kept, 4000);
		drop(take(passes, 100));
	}
	return source_of_steps();
}

TEST(quick_turns_are_steps_where_most_is_made_in_them)
{
	CHECK_EQ(quick_turns_behind(1 << 20), LOOP_SITES);
	CHECK_EQ(quick_turns_behind(8 << 20), LOOP_NONE);
}

/* ---- short loops ------------------------------------------------------------------------------------------- */

static struct held take_on_device(uint32_t node, uint64_t size)
{
	struct held h = { prog.next_addr += size + 64, size };
	synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, h.addr, size, node);
	return h;
}

/* Shards are read for a minute, each with a buffer that is freed; then so many requests of some microseconds, and
 * nothing for a while. */
static struct step_list short_loop(int turns, bool on_device, uint64_t quiet_ns)
{
	struct passes s;
	begin(21);
	synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
	uint32_t shard = site(0x1000), buffer = site(0x1100), words = site(0x2000), answer = site(0x2100),
		 log = site(0x2200);
	for (int i = 0; i < 7; i++) {
		prog.now += 9000 * MS;
		drop(take(buffer, 1 << 20));
		take_on_device(shard, 1 << 20);
	}
	prog.now += 3000 * MS;
	for (int i = 0; i < turns; i++) {
		struct held h = take(words, 9000), other = take(log, 300);
		if (on_device)
			for (int k = 0; k < 4; k++)
				synth_dev(prog.p, 0, prog.now += 500, MT_DEVICE_FREE, MT_CLASS_DEVICE, 1,
					  take_on_device(answer, 5000).addr, 0, 0);
		prog.now += on_device ? 0 : MS / 5;
		drop(other);
		drop(h);
	}
	prog.now += quiet_ns;
	take(site(0x3000), 50);
	run(&s);
	struct step_list p = *steps_of(s.steps, 0);
	end(&s);
	return p;
}

/* A model is put onto eight devices, then each in turn is tried ten times. */
TEST(what_each_device_does_for_a_moment_is_no_loop_of_all)
{
	struct passes s;
	begin(25);
	uint32_t load = site(0x1000), words = site(0x2000), hidden = site(0x2100), shape = site(0x2200),
		 log = site(0x2300);
	for (int device = 1; device <= 8; device++) {
		char uuid[] = "GPU-1";
		uuid[4] = (char)('0' + device);
		synth_device(prog.p, device, MT_BACKEND_CUDA, uuid, 1ull << 40);
	}
	for (int i = 0; i < 40; i++)
		synth_dev(prog.p, 0, prog.now += 200 * MS, MT_DEVICE_ALLOC, MT_CLASS_POOL, 1 + i % 8,
			  prog.next_addr += 10000, 9000, load);
	for (int i = 0; i < 80; i++) {
		struct held word = take(words, 900);
		for (int k = 0; k < 3; k++)
			drop(take(shape, 300));
		uint64_t addr = prog.next_addr += 10000;
		synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_POOL, 1 + i / 10, addr, 5000, hidden);
		synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_FREE, MT_CLASS_POOL, 1 + i / 10, addr, 0, 0);
		drop(take(log, 700));
		drop(word);
	}
	prog.now += 1000 * MS;
	take(site(0x3000), 50);
	run(&s);
	CHECK_EQ(steps_of(s.steps, 0)->source, LOOP_NONE);
	end(&s);
}

/* A list is filled for a moment, and right behind that every second item is dropped; sixteen rounds of work follow. */
TEST(what_fills_a_list_is_no_loop_of_steps_though_half_is_dropped_behind_it)
{
	struct passes s;
	begin(26);
	uint32_t fill = site(0x1000), item = site(0x1100), work = site(0x2000), text = site(0x2100);
	struct held items[400];
	synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
	for (int i = 0; i < 6; i++) {
		prog.now += 10000 * MS;
		take(site(0x9000), 5000);
	}
	for (int i = 0; i < 400; i++) {
		struct held h = take(item, 64);
		items[i] = take_on_device(fill, 120 << 10);
		drop(h);
	}
	for (int i = 0; i < 400; i += 2)
		synth_dev(prog.p, 0, prog.now += 100, MT_DEVICE_FREE, MT_CLASS_DEVICE, 1, items[i].addr, 0, 0);
	for (int i = 0; i < 16; i++) {
		struct held h = take(text, 3000), block = take_on_device(work, 30 << 20);
		prog.now += 20 * MS;
		synth_dev(prog.p, 0, prog.now, MT_DEVICE_FREE, MT_CLASS_DEVICE, 1, block.addr, 0, 0);
		drop(h);
	}
	run(&s);
	CHECK(steps_of(s.steps, 0)->source == LOOP_NONE || steps_of(s.steps, 0)->total == 16);
	end(&s);
}

/* However long loading took before it, and however fast it is. */
TEST(a_short_loop_that_uses_the_device_has_steps)
{
	struct step_list p = short_loop(60, true, 0);
	CHECK_EQ(p.source, LOOP_SITES);
	CHECK_EQ(p.total, 60);
	CHECK_EQ(short_loop(60, true, 20000 * MS).total, 60);
	CHECK_EQ(short_loop(15, true, 0).source, LOOP_NONE);
}

TEST(a_short_loop_that_the_process_ends_with_has_steps)
{
	struct step_list p = short_loop(200, false, 0);
	CHECK_EQ(p.source, LOOP_SITES);
	CHECK_EQ(p.total, 200);
	CHECK_EQ(short_loop(200, false, 20000 * MS).source, LOOP_NONE);
	CHECK_EQ(short_loop(30, false, 0).source, LOOP_NONE);
}

/* ---- units of work ----------------------------------------------------------------------------------------- */

/* Requests of three calls each; every second one something else allocates. */
TEST(a_request_of_three_calls_is_one_step)
{
	struct passes s;
	begin(22);
	synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
	uint32_t words = site(0x1000), table = site(0x1100), calls[6];
	for (uint64_t k = 0; k < 6; k++)
		calls[k] = site(0x2000 + 0x100 * k);
	for (int i = 0; i < 80; i++) {
		struct held block = { prog.next_addr += 10000, 9000 };
		synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, block.addr, block.size,
			  words);
		step();
		if (i % 2)
			drop(take(table, 700));
		for (int call = 0; call < 3; call++)
			for (int k = 0; k < 6; k++) {
				struct held one = { prog.next_addr += 10000, 5000 };
				synth_dev(prog.p, 0, prog.now += 30000, MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, one.addr,
					  one.size, calls[k]);
				synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_FREE, MT_CLASS_POOL, 1, one.addr, 0,
					  0);
			}
		synth_dev(prog.p, 0, prog.now += 1000, MT_DEVICE_FREE, MT_CLASS_POOL, 1, block.addr, 0, 0);
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK_EQ(steps->source, LOOP_SITES);
	CHECK_EQ(steps->total, 80);
	CHECK_EQ(steps->micro, 3);
	end(&s);
}

/* Of six layers a turn; in the first turn all but what comes behind them goes by other stacks. */
TEST(a_loops_first_turn_counts_though_it_has_stacks_of_its_own)
{
	struct passes s;
	begin(25);
	uint32_t input[5], layers[4], behind[4], sum = site(0x4000);
	for (uint64_t k = 0; k < 5; k++)
		input[k] = site(0x1000 + 0x100 * k);
	for (uint64_t k = 0; k < 4; k++) {
		layers[k] = site(0x2000 + 0x100 * k);
		behind[k] = site(0x3000 + 0x100 * k);
	}
	for (int turn = 0; turn < 80; turn++) {
		uint64_t first = turn ? 0 : 0x10000;
		for (int k = 0; k < 5; k++)
			drop(take(turn ? input[k] : site(first + 0x100 * (uint64_t)k), 3000));
		for (int layer = 0; layer < 6; layer++)
			for (int k = 0; k < 4; k++)
				drop(take(turn ? layers[k] : site(first + 0x1000 + 0x100 * (uint64_t)(4 * layer + k)),
					  8000));
		for (int k = 0; k < 4; k++)
			drop(take(behind[k], 700));
		drop(take(turn ? sum : site(first + 0x4000), 300));
		step();
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK_EQ(steps->source, LOOP_SITES);
	CHECK_EQ(steps->total, 80);
	CHECK_EQ(steps->micro, 6);
	end(&s);
}

/* Step i goes back through all i steps before it. */
TEST(a_backward_pass_that_gets_longer_is_no_loop_of_steps)
{
	struct passes s;
	begin(23);
	uint32_t forward[8], backward[3], kept = site(0x5000);
	for (uint64_t k = 0; k < 8; k++)
		forward[k] = site(0x1000 + 0x100 * k);
	for (uint64_t k = 0; k < 3; k++)
		backward[k] = site(0x3000 + 0x100 * k);
	for (int i = 0; i < 60; i++) {
		step();
		for (int k = 0; k < 8; k++)
			drop(take(forward[k], 8000));
		take(kept, 6000);
		for (int back = 0; back <= i; back++)
			for (int k = 0; k < 3; k++)
				drop(take(backward[k], 7000));
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK_EQ(steps->source, LOOP_SITES);
	CHECK_EQ(steps->total, 60);
	CHECK_EQ(steps->micro, 1);
	end(&s);
}

static void block_on_device(uint32_t stack, uint32_t node)
{
	synth_dev(prog.p, 0, prog.now += 50000, MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, prog.next_addr += 10000, 9000, node);
	prog.p->slots[prog.p->count - 2].event.node2 = stack;
}

/* A model of six layers is called so often, and all that it makes stays; once, its layers alone recur. Behind a minute
 * of loading. */
static struct step_list forward_passes(int calls, int layers)
{
	struct passes s;
	begin(24);
	synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
	synth_code(prog.p, 1, "/home/u/train.py", "main");
	synth_code(prog.p, 2, "/lib/torch/nn/modules/module.py", "Module._call_impl");
	uint32_t node = site(0x1000), input = synth_frame(prog.p, 0, 1, 3), loss = synth_frame(prog.p, 0, 1, 5);
	uint32_t layer = synth_frame(prog.p, synth_frame(prog.p, 0, 1, 4), 2, 10),
		 hidden = synth_frame(prog.p, synth_frame(prog.p, 0, 1, 4), 2, 11);
	for (int i = 0; i < 6; i++) {
		prog.now += 10000 * MS;
		take(site(0x9000), 5000);
	}
	for (int i = 0; i < calls; i++) {
		block_on_device(input, node);
		for (int k = 0; k < layers; k++) {
			block_on_device(layer, node);
			block_on_device(hidden, node);
		}
		block_on_device(loss, node);
	}
	run(&s);
	struct step_list p = *steps_of(s.steps, 0);
	end(&s);
	return p;
}

TEST(what_calls_a_model_is_a_loop_and_layers_are_none)
{
	struct step_list p = forward_passes(13, 6);
	CHECK_EQ(p.source, LOOP_SITES);
	CHECK(p.whole);
	CHECK_EQ(p.total, 13);
	CHECK_EQ(forward_passes(1, 13).source, LOOP_NONE);
}

TEST_MAIN
