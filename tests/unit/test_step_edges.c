/* Steps at their edges: where joined ones are, how the last one ends, what marks are called, memory that begins late,
 * folded blocks. */
#include "tests/unit/program.h"

#include <math.h>

static void next_step(uint64_t number)
{
	mark(MT_MARK_STEP, number, NULL, MT_MARK_PROGRAM);
	step();
}

static const struct step_track *track(const struct step_list *steps, enum model_kind kind)
{
	for (size_t i = 0; steps && i < steps->track_count; i++)
		if (steps->tracks[i].kind == kind)
			return &steps->tracks[i];
	return NULL;
}

/* ---- places ---------------------------------------------------------------------------------------------- */

/* An entry stands at the mean number of its steps. */
TEST(joined_steps_are_at_their_middle)
{
	static const uint64_t totals[] = { 100, 5000, 9000 };
	for (size_t k = 0; k < 3; k++) {
		struct passes s;
		begin(5);
		uint32_t kept = site(0x2000);
		for (uint64_t i = 0; i < totals[k]; i++) {
			next_step(11 + i);
			take(kept, 5000);
		}
		run(&s);
		const struct step_list *steps = steps_of(s.steps, 0);
		size_t wrong = 0;
		uint64_t at = 11;
		for (size_t i = 0; i < steps->count; at += steps->steps[i++].count) {
			wrong += steps->steps[i].number != at ||
				 step_x(steps, i) != (double)at + (steps->steps[i].count - 1) / 2.0;
			wrong += step_find(steps, at) != i || step_find(steps, at + steps->steps[i].count - 1) != i;
		}
		CHECK_EQ(wrong, 0);
		CHECK_EQ(at, 11 + totals[k]);
		CHECK_EQ(step_find(steps, at), steps->count);
		CHECK_EQ(step_find(steps, 10), steps->count);
		CHECK(!steps_of(s.steps, 1));
		end(&s);
	}
}

/* Without steps places are seconds since the start: of entries their ends. */
TEST(windows_are_at_their_time)
{
	struct passes s;
	begin(6);
	uint32_t odd = site(0x1000);
	for (int i = 0; i < 200; i++) {
		prog.now += rnd(rnd(20) ? MS : 60 * MS);
		take(odd, 5000 + rnd(3000));
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	CHECK_EQ(steps->source, LOOP_NONE);
	for (size_t i = 0; i + 1 < steps->count; i++)
		CHECK(fabs(step_x(steps, i) - (double)steps->steps[i].end_ns / 1e9) < 1e-9 &&
		      steps->steps[i].end_ns == steps->steps[i + 1].begin_ns);
	end(&s);
}

/* Nothing may happen for long. */
TEST(windows_before_the_first_event_are_empty)
{
	struct passes s;
	begin(6);
	uint32_t odd = site(0x1000);
	prog.now += 9000 * MS;
	for (int i = 0; i < 200; i++) {
		prog.now += rnd(rnd(20) ? MS : 60 * MS);
		take(odd, 5000 + rnd(3000));
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	size_t wrong = 0;
	CHECK(steps->source == LOOP_NONE && steps->count > 100);
	for (size_t i = 0; i + 1 < steps->count; i++)
		wrong += steps->steps[i].end_ns != steps->steps[i + 1].begin_ns ||
			 steps->steps[i].end_ns <= steps->steps[i].begin_ns || step_x(steps, i) > 13;
	CHECK(wrong <= 1); /* the first event is within its window */
	end(&s);
}

/* Of a process that starts later they are since its own start, on everybody's clock. */
TEST(windows_begin_with_their_process)
{
	struct passes s;
	begin(6);
	struct synth_process *first = synth_process(&prog.synth, 99, 0);
	synth_alloc(first, 0, SYNTH_START + MS, 0x1000, 10, 0);
	first->info.exit_kind = MT_EXIT_CODE;
	first->info.end_ticks = SYNTH_START + 2 * MS;
	synth_write(first, SYNTH_BLOCKS);
	uint64_t start = 3000 * MS;
	prog.p->info.start_ticks = prog.p->info.start_mono_ns = SYNTH_START + start;
	prog.p->info.start_real_ns = SYNTH_REAL + start;
	prog.now = SYNTH_START + start;
	uint32_t odd = site(0x1000);
	for (int i = 0; i < 200; i++) {
		prog.now += rnd(rnd(20) ? MS : 60 * MS);
		take(odd, 5000 + rnd(3000));
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 1);
	CHECK(steps && steps->source == LOOP_NONE && steps->count > 10 && steps->steps[0].begin_ns >= start &&
	      steps->steps[0].begin_ns < start + 100 * MS);
	for (size_t i = 0; steps && i + 1 < steps->count; i++)
		CHECK(fabs(step_x(steps, i) - (double)(steps->steps[i].end_ns - start) / 1e9) < 1e-9);
	CHECK(steps && fabs(step_x(steps, steps->count - 2) - (double)(prog.now - SYNTH_START - start) / 1e9) < 0.1);
	end(&s);
}

/* ---- the end --------------------------------------------------------------------------------------------- */

/* 20 steps of about 10 ms, and a last one that has taken so long when the process ends that way. */
static struct step last_step(uint64_t ms, enum mt_exit kind, int32_t code)
{
	struct passes s;
	begin(7);
	uint32_t work = site(0x1000);
	for (uint64_t i = 0; i < 21; i++) {
		next_step(i + 1);
		for (uint64_t k = 0; k < (i < 20 ? 10 : ms); k++) {
			drop(take(work, 100));
			prog.now += MS - 30000;
		}
	}
	prog.p->info.exit_kind = kind;
	prog.p->info.exit_code = code;
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	struct step last = steps->steps[steps->count - 1];
	CHECK_EQ(steps->total, 21);
	CHECK_EQ(last.number, 21);
	CHECK_EQ(last.begin_ns, steps->steps[19].end_ns);
	last.end_ns -= last.begin_ns;
	end(&s);
	return last;
}

TEST(the_last_step_ends_when_steps_do)
{
	static const struct {
		uint64_t ms;
		enum mt_exit kind;
		int32_t code;
		bool partial;
	} rows[] = {
		{ 8, MT_EXIT_CODE, 0, false },
		{ 8, MT_EXIT_CODE, 1, true },
		{ 8, MT_EXIT_SIGNAL, 9, true },
		{ 8, MT_EXIT_EXEC, 0, true },
		/* it went on to other things */
		{ 40, MT_EXIT_CODE, 0, false },
		{ 40, MT_EXIT_CODE, 1, false },
		{ 40, MT_EXIT_SIGNAL, 6, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct step last = last_step(rows[i].ms, rows[i].kind, rows[i].code);
		double ms = (double)last.end_ns / 1e6, want = rows[i].ms == 8 ? 8 : 15; /* half as long again */
		if (last.partial != rows[i].partial || fabs(ms - want) > 1)
			printf("# row %zu: %g ms\n", i, ms);
		CHECK(last.partial == rows[i].partial && fabs(ms - want) < 1);
	}
}

/* What is freed behind the last step, when the program cleans up, is none of its low points. */
/* ---- held up ----------------------------------------------------------------------------------------------- */

static void at(uint32_t node, uint32_t stack, uint64_t size)
{
	struct held h = take(node, size);
	synth_python(prog.p, stack);
	drop(h);
}

/* Steps of a forward pass, a loss, a backward pass through six layers and an optimizer; before the last backward pass
 * the machine takes so long for something else. Returns the micro-steps. */
static unsigned micro_steps_of(uint64_t held_up)
{
	struct passes s;
	begin(5);
	synth_code(prog.p, 1, "/home/u/train.py", "main");
	synth_code(prog.p, 2, "/home/u/train.py", "Layer.forward");
	synth_code(prog.p, 3, "/lib/torch/optim/adam.py", "Adam.step");
	uint32_t block = site(0x1000), other = site(0x2000), forward = synth_frame(prog.p, 0, 1, 3),
		 loss = synth_frame(prog.p, 0, 1, 4);
	uint32_t backward = synth_frame(prog.p, 0, 1, 5), layer = synth_frame(prog.p, backward, 2, 8);
	uint32_t optimizer = synth_frame(prog.p, synth_frame(prog.p, 0, 1, 6), 3, 20);
	for (int i = 0; i < 60; i++) {
		step();
		at(block, forward, 5000);
		at(other, forward, 6000);
		at(block, loss, 64);
		prog.now += i == 59 ? held_up : 0;
		for (int k = 0; k < 12; k++)
			at(k % 2 ? other : block, layer, 7000);
		at(block, optimizer, 900);
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	unsigned micro = steps && steps->source == LOOP_OPTIMIZER && steps->total == 60 ? steps->micro : 0;
	end(&s);
	return micro;
}

TEST(a_last_step_that_is_held_up_has_all_of_the_loop)
{
	CHECK_EQ(micro_steps_of(0), 1);
	CHECK_EQ(micro_steps_of(20 * MS), 1);
}

TEST(cleaning_up_is_no_step)
{
	struct passes s;
	begin(8);
	uint32_t work = site(0x1000), kept = site(0x2000);
	struct held all[20];
	for (uint64_t i = 0; i < 20; i++) {
		next_step(i + 1);
		all[i] = take(kept, 9000);
		for (int k = 0; k < 5; k++)
			drop(take(work, 100));
	}
	prog.now += 50 * MS;
	for (int i = 0; i < 20; i++)
		drop(all[i]);
	run(&s);
	CHECK_EQ(step_low(heap_of(steps_of(s.steps, 0)), 19), 19 * 9000);
	end(&s);
}

/* ---- marks ----------------------------------------------------------------------------------------------- */

TEST(steps_have_the_numbers_of_their_ranges)
{
	static const struct {
		const char *format;
		enum mt_mark_source source;
		enum loop_source found;
		uint64_t first;
	} rows[] = {
		{ "step %u", MT_MARK_NVTX, LOOP_NVTX, 5 },    { "Step 3/%u:", MT_MARK_NVTX, LOOP_NVTX, 5 },
		{ "train_step", MT_MARK_NVTX, LOOP_NVTX, 1 }, { "step %u", MT_MARK_MSTX, LOOP_MSTX, 5 },
		{ "step", MT_MARK_MSTX, LOOP_MSTX, 1 },       { "step %u", MT_MARK_PROGRAM, LOOP_NVTX, 5 },
		{ "step 00%u", MT_MARK_NVTX, LOOP_NVTX, 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct passes s;
		begin(10);
		uint32_t work = site(0x1000);
		for (uint64_t k = 0; k < 12; k++) {
			char name[64];
			snprintf(name, sizeof(name), rows[i].format, (unsigned)(rows[i].first ? 5 + k : k));
			mark(MT_MARK_BEGIN, 0, name, rows[i].source);
			mark(MT_MARK_BEGIN, 0, "forward", rows[i].source);
			drop(take(work, 1000));
			mark(MT_MARK_END, 0, NULL, rows[i].source);
			mark(MT_MARK_POINT, 0, "step 7", rows[i].source);
			mark(MT_MARK_END, 0, NULL, rows[i].source);
		}
		run(&s);
		const struct step_list *steps = steps_of(s.steps, 0);
		CHECK_EQ(steps->source, rows[i].found);
		CHECK(steps->total == 12 && steps->steps[0].number == rows[i].first &&
		      steps->steps[11].number == rows[i].first + 11);
		end(&s);
	}
}

/* A mark is what the program said. */
TEST(marked_steps_may_begin_with_0)
{
	struct passes s;
	begin(10);
	uint32_t work = site(0x1000);
	for (uint64_t k = 0; k < 12; k++) {
		next_step(k);
		drop(take(work, 1000));
	}
	run(&s);
	const struct step_list *steps = steps_of(s.steps, 0);
	size_t wrong = 0;
	for (size_t i = 0; i < steps->count; i++)
		wrong += steps->steps[i].number != i || step_find(steps, i) != i;
	CHECK_EQ(steps->count, 12);
	CHECK_EQ(wrong, 0);
	end(&s);
}

/* ---- what stays ------------------------------------------------------------------------------------------------ */

/* 60 steps: what the last one made is freed in each behind what it makes itself, which is larger every ten steps;
 * `kept` bytes stay. What the whole loop needs is made before it, or in its first step. */
static void by_plan(uint64_t kept, struct outlook_found *results, struct outlook_found *list)
{
	struct passes s;
	struct held last = { 0, 0 };
	begin(13);
	uint32_t result = site(0x1000), work = site(0x2000), entry = site(0x3000);
	take(result, 700000);
	for (uint64_t i = 0; i < 60; i++) {
		next_step(i + 1);
		struct held now = take(result, 50000 + i / 10 * 90000), more = take(work, 3 * now.size);
		if (last.addr)
			drop(last);
		last = now;
		if (!i)
			take(work, 300000);
		if (kept)
			take(entry, kept);
		drop(more);
	}
	run(&s);
	*results = outlook_of_site(&s, 0);
	*list = outlook_of_site(&s, 2);
	end(&s);
}

TEST(what_steps_need_is_not_kept)
{
	struct outlook_found results, list;
	by_plan(0, &results, &list);
	CHECK(!outlook_goes_on(results.outlook));
	CHECK_EQ(list.outlook, OUTLOOK_NONE);
	by_plan(5000, &results, &list);
	CHECK(!outlook_goes_on(results.outlook));
	CHECK_EQ(list.outlook, OUTLOOK_LEAKS);
	CHECK_EQ(list.bytes, 59 * 5000); /* the last one comes behind the highest moment of its step */
}

/* ---- tracks ---------------------------------------------------------------------------------------------- */

/* A device that comes into use in the middle of the run, at each place of what is joined later. */
TEST(memory_that_begins_late_was_none_before)
{
	enum { N = 9000 };
	static uint64_t low[N], high[N];
	for (uint64_t first = 4095; first < 4099; first++) {
		struct passes s;
		begin(11);
		synth_device(prog.p, 1, MT_BACKEND_CUDA, "GPU-1", 1ull << 40);
		uint32_t work = site(0x1000), on_device = site(0x2000);
		uint64_t live = 0;
		for (uint64_t i = 0; i < N; i++) {
			next_step(i + 1);
			drop(take(work, 100));
			low[i] = live;
			if (i >= first && i % 3 == 0) {
				live += 1000;
				synth_dev(prog.p, 0, prog.now += 100, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1,
					  (i + 1) << 20, 1000, on_device);
			}
			high[i] = live;
		}
		run(&s);
		const struct step_list *steps = steps_of(s.steps, 0);
		const struct step_track *t = track(steps, MODEL_DEVICE);
		size_t wrong = 0, at = 0;
		for (size_t i = 0; i < steps->count; at += steps->steps[i++].count)
			wrong += step_low(t, i) != low[at] || step_high(t, i) != high[at + steps->steps[i].count - 1];
		CHECK_EQ(at, N);
		CHECK_EQ(wrong, 0);
		CHECK_EQ(step_low(t, steps->count), 0);
		CHECK_EQ(step_high(t, steps->count), 0);
		end(&s);
	}
}

/* ---- folded blocks --------------------------------------------------------------------------------------- */

static unsigned changes;

/* In step 2 a folded block says that there were 400 to 5000 bytes, of which 900 are left out and there now, and 7
 * allocations more; in step 4 that changes say all again. */
static void say_levels(struct steps *s, const struct model_change *c)
{
	struct model_level_change l = {
		.process = c->process, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE, .ns = c->ns
	};
	changes++;
	if (changes == 2) {
		l.low = 50;
		l.high = 5000;
		l.now = 1000;
		steps_level(s, &l);
		l = (struct model_level_change){
			.process = c->process, .kind = MODEL_KINDS, .allocations = 7, .ns = c->ns, .high = 99999
		};
		steps_level(s, &l);
	} else if (changes == 4) {
		l.end = true;
		l.low = l.now = l.high = 100 + 1 + 1;
		steps_level(s, &l);
	}
}

TEST(folded_blocks_say_what_steps_had)
{
	struct passes s;
	begin(12);
	changes = 0;
	before_change = say_levels;
	uint32_t work = site(0x1000);
	static const uint64_t sizes[] = { 100, 1, 1, 1, 10 };
	for (uint64_t i = 0; i < 5; i++) {
		next_step(i + 1);
		take(work, sizes[i]);
	}
	run(&s);
	before_change = NULL;
	const struct step_list *steps = steps_of(s.steps, 0);
	const struct step_track *t = heap_of(steps);
	static const struct {
		uint64_t low, high, allocations;
	} rows[] = {
		{ 0, 100, 1 }, { 50, 5000, 8 }, { 1001, 1001, 1 }, { 102, 1002, 1 }, { 103, 113, 1 },
	};
	CHECK_EQ(steps->count, 5);
	for (size_t i = 0; i < 5; i++) {
		CHECK_EQ(step_low(t, i), rows[i].low);
		CHECK_EQ(step_high(t, i), rows[i].high);
		CHECK_EQ(steps->steps[i].allocations, rows[i].allocations);
	}
	end(&s);
}

TEST_MAIN
