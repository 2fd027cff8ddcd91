/* Phases of programs whose lines, stacks and marks are made up: which line a moment belongs to, and the memory then. */
#include "analyzer/timeline/phases.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define MS       1000000ull
#define SCRIPT   "/home/u/train.py"
#define LIBRARY  "/usr/lib/python3/site-packages/torch/nn.py"
#define IMPORTER "<frozen importlib._bootstrap>"

static struct {
	struct synth synth;
	struct synth_process *p;
	struct phases *phases;
	struct reader *reader[2];
	uint64_t now, next_addr;
	uint32_t ring, codes, names;
	bool second;
	void (*before)(const struct model_change *c); /* each change of the second pass */
} w;

static void begin(void)
{
	memset(&w, 0, sizeof(w));
	w.now = SYNTH_START;
	w.next_addr = 0x10000;
	synth_begin(&w.synth);
	w.p = synth_process(&w.synth, 100, 0);
	synth_device(w.p, 1, MT_BACKEND_CUDA, "GPU-a", 1 << 30);
	synth_device(w.p, 2, MT_BACKEND_CUDA, "GPU-b", 1 << 30);
}

/* ---- Python ---------------------------------------------------------------------------------------------- */

static uint32_t function(const char *file, const char *name)
{
	synth_code(w.p, ++w.codes, file, name);
	return w.codes;
}

/* A stack: that one, and further in a function at a line. */
static uint32_t in(uint32_t stack, uint32_t function, uint32_t line)
{
	return synth_frame(w.p, stack, function, line);
}

static uint64_t take(uint32_t stack, uint64_t bytes)
{
	w.next_addr += 1 << 20;
	synth_alloc(w.p, w.ring, w.now += MS, w.next_addr, bytes, 0);
	synth_python(w.p, stack);
	return w.next_addr;
}

static void drop(uint64_t addr)
{
	synth_plain(w.p, w.ring, w.now += 1000, MT_FREE, addr);
}

/* It is there for that long, and nothing of it stays. */
static void spend(uint32_t stack, uint64_t ms)
{
	drop(take(stack, 100));
	w.now += ms * MS;
}

static uint32_t named(const char *text)
{
	synth_text(w.p, MT_REC_NAME, &(struct mt_rec_name){ ++w.names, 0 }, sizeof(struct mt_rec_name), text);
	return w.names;
}

/* `range`: of those that may overlap; 0 = it nests in its thread's others. */
static void mark(enum mt_mark what, uint32_t name, uint64_t range, enum mt_mark_source source)
{
	synth_ext(w.p, w.ring, (struct mt_event){ .ticks = w.now += 1000, .size = name, .kind = MT_MARK },
		  (struct mt_ext_device){ .class = what & 255, .source = source & 255, .other = range });
}

static void enter(uint32_t name)
{
	mark(MT_MARK_BEGIN, name, 0, MT_MARK_PROGRAM);
}
static void leave(void)
{
	mark(MT_MARK_END, 0, 0, MT_MARK_PROGRAM);
}

/* ---- the two passes -------------------------------------------------------------------------------------- */

static void on_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	(void)arg;
	(void)ring;
	if (w.second)
		phases_event(w.phases, p, slot, thread);
}

static void on_change(void *arg, const struct model_change *c)
{
	(void)arg;
	if (w.second && w.before)
		w.before(c);
	if (w.second)
		phases_change(w.phases, c);
	else
		phases_first_change(w.phases, c);
}

static size_t run(void)
{
	const char *dir = w.synth.dir;
	w.phases = phases_new();
	for (struct synth_process *p = w.synth.processes; p; p = p->next) {
		p->info.exit_kind = MT_EXIT_CODE;
		p->info.end_ticks = w.now + MS;
		synth_write(p, SYNTH_BLOCKS);
	}
	for (int i = 0; i < 2; i++) {
		struct model_query q = MODEL_QUERY_ALL;
		struct model *m = NULL;
		q.on_event = on_event;
		q.on_change = on_change;
		w.second = i;
		if (reader_open(&w.reader[i], &dir, 1, 0) < 0 || model_run(&m, w.reader[i], &q) < 0)
			abort();
		model_free(m);
	}
	phases_finish(w.phases);
	return phases_count(w.phases);
}

static void end(void)
{
	phases_free(w.phases);
	reader_close(w.reader[0]);
	reader_close(w.reader[1]);
	synth_end(&w.synth);
}

/* The names in order of their beginning, with spaces between. */
static bool are(const char *wanted)
{
	char found[1000] = "";
	for (size_t i = 0; i < phases_count(w.phases); i++) {
		strcat(found, i ? ", " : "");
		strcat(found, phases_get(w.phases, i)->name);
	}
	if (strcmp(found, wanted) != 0)
		printf("# \"%s\", not \"%s\"\n", found, wanted);
	return !strcmp(found, wanted);
}

static const struct phase_track *track(const struct phase *p, enum model_kind kind, uint32_t device)
{
	for (size_t i = 0; i < p->track_count; i++)
		if (p->tracks[i].kind == kind && p->tracks[i].device == device)
			return &p->tracks[i];
	return NULL;
}

static const struct phase_track *heap(size_t i)
{
	return track(phases_get(w.phases, i), MODEL_HEAP, MODEL_NO_DEVICE);
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

TEST(lines_of_the_script_are_phases)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), load = function(SCRIPT, "load"),
		 train = function(SCRIPT, "Trainer.train");
	uint32_t outer = in(0, script, 10), outer2 = in(0, script, 20);
	uint64_t a = take(in(outer, load, 31), 1000), b = take(in(outer, load, 32), 500);
	drop(b);
	take(in(outer2, train, 41), 300);
	w.now += 10 * MS;
	drop(a);
	take(in(outer2, train, 42), 50);
	take(in(0, script, 21), 7);
	w.now += 4 * MS;
	run();
	CHECK(are("train.py:10 load, train.py:20 Trainer.train, train.py:21"));
	const struct phase *p = phases_get(w.phases, 0);
	CHECK_EQ(p->source, PHASE_LINE);
	CHECK_EQ(p->visits, 1);
	CHECK_EQ(p->begin_ns, MS);
	CHECK_EQ(p->end_ns, 3 * MS + 1000);
	CHECK_EQ(p->busy_ns, 2 * MS + 1000);
	CHECK_EQ(heap(0)->peak_bytes, 1500);
	CHECK_EQ(heap(0)->peak_ns, 2 * MS);
	CHECK_EQ(heap(0)->end_bytes, 1000);
	CHECK_EQ(heap(0)->kept_bytes, 1000);
	CHECK_EQ(heap(1)->begin_bytes, 1000);
	CHECK_EQ(heap(1)->peak_bytes, 1300);
	CHECK_EQ(heap(1)->end_bytes, 350);
	CHECK_EQ(heap(1)->kept_bytes, -650);
	CHECK_EQ(heap(2)->begin_bytes, 350);
	CHECK_EQ(heap(2)->peak_bytes, 357);
	CHECK_EQ(phases_get(w.phases, 2)->end_ns, phases_get(w.phases, 2)->begin_ns + 5 * MS); /* with the process */
	end();
}

TEST(imports_are_one_phase)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), importer = function(IMPORTER, "_find_and_load"),
		 of = function(LIBRARY, "<module>");
	uint32_t own = function("/home/u/model.py", "<module>"), build = function(SCRIPT, "build");
	for (uint32_t line = 1; line < 3; line++)
		spend(in(in(in(0, script, line), importer, 5), of, 9), 10);
	spend(in(in(in(0, script, 3), importer, 5), own, 9), 10); /* a module of the program's own works ... */
	spend(in(in(in(in(in(0, script, 3), importer, 5), own, 2), importer, 5), of, 9), 10); /* ... and imports */
	uint32_t inner = in(in(0, script, 8), build, 30);
	spend(inner, 5);
	spend(in(in(inner, importer, 5), of, 9), 20); /* what a function imports is in that function's line */
	spend(in(0, script, 9), 5);
	run();
	CHECK(are("imports, train.py:3 <module>, imports, train.py:8 build, train.py:9"));
	CHECK_EQ(phases_get(w.phases, 0)->visits, 1);
	CHECK_EQ(phases_get(w.phases, 1)->busy_ns, 11 * MS + 1000);
	CHECK_EQ(phases_get(w.phases, 3)->busy_ns, (5 + 1 + 20 + 1) * MS + 2000);
	end();
}

/* Nearly all the time is in main(): then what it does are the phases, however deep. */
TEST(a_main_function_is_looked_into)
{
	for (int much = 0; much < 2; much++) {
		begin();
		uint32_t script = function(SCRIPT, "<module>"), start = function(SCRIPT, "main"),
			 run_it = function(SCRIPT, "run");
		uint32_t load = function(SCRIPT, "load");
		spend(in(0, script, 1), 9);
		uint32_t inner = in(in(0, script, 2), start, 30);
		spend(in(inner, run_it, 40), much ? 60 : 40);
		spend(in(in(inner, run_it, 41), load, 50), much ? 60 : 36);
		run();
		CHECK(are(much ? "train.py:1, train.py:40 run, train.py:41 load" : "train.py:1, train.py:2 main"));
		end();
	}
}

/* One line of main() takes more than 90 % of main()'s time, though less of all: it is looked into, and the others stay
 * phases. */
TEST(levels_are_cut_by_their_own_time)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), start = function(SCRIPT, "main"), fit = function(SCRIPT, "fit");
	uint32_t step = function(SCRIPT, "step");
	spend(in(0, script, 1), 5);
	uint32_t inner = in(0, script, 2);
	spend(in(inner, start, 30), 4);
	spend(in(in(inner, start, 31), fit, 40), 50);
	spend(in(in(in(inner, start, 31), fit, 41), step, 50), 50);
	spend(in(inner, start, 32), 1);
	run();
	CHECK(are("train.py:1, train.py:30 main, train.py:40 fit, train.py:41 step, train.py:32 main"));
	end();
}

/* Loading takes a part of the time; what fit() does behind its loop is a phase as it would be in the script itself.
 * What only loops is one. */
TEST(a_function_that_goes_on_behind_its_loop_is_looked_into)
{
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		begin();
		uint32_t script = function(SCRIPT, "<module>"), fit = function(SCRIPT, "fit"),
			 check = function(SCRIPT, "evaluate");
		uint32_t inner = in(0, script, 2);
		spend(in(0, script, 1), 50);
		for (int i = 0; i < 20; i++) {
			spend(in(inner, fit, 40), 3);
			spend(in(inner, fit, 41), 2);
		}
		if (goes_on)
			spend(in(in(inner, fit, 43), check, 60), 1);
		spend(in(inner, fit, 44), 1);
		run();
		CHECK(are(
			goes_on ? "train.py:1, train.py:40 fit, train.py:41 fit, train.py:43 evaluate, train.py:44 fit"
				: "train.py:1, train.py:2 fit"));
		end();
	}
}

/* However long loading waits: nearly all is made behind it. */
TEST(what_waits_is_not_what_a_program_does)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), fit = function(SCRIPT, "fit"),
		 check = function(SCRIPT, "evaluate");
	uint32_t inner = in(0, script, 2);
	spend(in(0, script, 1), 500);
	for (int i = 0; i < 20; i++) {
		spend(in(inner, fit, 40), 3);
		spend(in(inner, fit, 41), 2);
	}
	spend(in(in(inner, fit, 43), check, 60), 1);
	run();
	CHECK(are("train.py:1, train.py:40 fit, train.py:41 fit, train.py:43 evaluate"));
	end();
}

TEST(functions_are_looked_into_six_deep)
{
	begin();
	uint32_t stack = 0;
	for (uint32_t i = 0; i < 8; i++)
		stack = in(stack, function(SCRIPT, "f"), 10 + i);
	spend(stack, 100);
	run();
	CHECK(are("train.py:15 f"));
	end();
}

TEST(libraries_are_not_looked_into)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), call = function(LIBRARY, "Module.forward"),
		 mine = function(SCRIPT, "hook");
	uint32_t outer = in(in(0, script, 5), call, 60);
	spend(in(outer, call, 61), 50);
	spend(in(outer, mine, 33), 50); /* called back: a level further in */
	run();
	CHECK(are("train.py:33 hook"));
	end();
	begin();
	script = function(SCRIPT, "<module>"), call = function(LIBRARY, "Module.forward");
	spend(in(in(0, script, 5), call, 60), 50);
	run();
	CHECK(are("train.py:5 Module.forward"));
	end();
	begin(); /* nor has a program of libraries alone any lines */
	spend(in(0, function(LIBRARY, "main"), 5), 50);
	CHECK_EQ(run(), 0);
	end();
}

TEST(wrappers_say_whom_they_wrap)
{
	static const struct {
		const char *file, *wrapper, *phase;
	} rows[] = {
		{ LIBRARY, "no_grad.<locals>.decorate", "train.py:5 evaluate" },
		{ LIBRARY, "Module._call_impl", "train.py:5 evaluate" },
		{ LIBRARY, "_wrapped_call_impl", "train.py:5 evaluate" },
		{ LIBRARY, "Module.forward", "train.py:5 Module.forward" },
		{ SCRIPT, "timed.<locals>.inner", "train.py:5 timed.inner" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		begin();
		uint32_t script = function(SCRIPT, "<module>"), wrapper = function(rows[i].file, rows[i].wrapper);
		uint32_t evaluate = function("/usr/lib/python3/x.py", "evaluate"),
			 other = function(SCRIPT, "g.<locals>.h.<locals>.k");
		spend(in(in(in(0, script, 5), wrapper, 6), evaluate, 7), 10);
		spend(in(in(0, script, 6), other, 7), 10);
		run();
		char wanted[100];
		snprintf(wanted, sizeof(wanted), "%s, train.py:6 g.h.k", rows[i].phase);
		CHECK(are(wanted));
		end();
	}
	begin(); /* of a wrapper that was not seen to call anybody nothing is said */
	uint32_t script = function(SCRIPT, "<module>"), wrapper = function(LIBRARY, "no_grad.<locals>.decorate");
	spend(in(in(0, script, 5), wrapper, 6), 10);
	run();
	CHECK(are("train.py:5"));
	end();
}

/* Other threads have lines of their own, a forked child runs its parent's. */
TEST(the_main_thread_says_where_the_program_is)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), work = function(SCRIPT, "work"), first = in(0, script, 10);
	take(first, 1000);
	w.ring = 1;
	take(in(0, work, 50), 200);
	w.ring = 0;
	take(first, 10);
	take(0, 5); /* C without Python */
	struct synth_process *parent = w.p;
	w.p = synth_fork(parent, 101, w.now += 1000);
	w.now += MS;
	take(first, 30);
	w.p = parent;
	run();
	CHECK(are("train.py:10"));
	CHECK_EQ(phases_get(w.phases, 0)->visits, 1);
	CHECK_EQ(phases_get(w.phases, 0)->process->pid, 100);
	CHECK_EQ(heap(0)->peak_bytes, 1215);
	end();
}

/* Which need not be the first one that was seen. */
TEST(the_main_thread_has_the_process_s_number)
{
	begin();
	synth_text(w.p, MT_REC_THREAD, &(struct mt_rec_thread){ 0, 999 }, 8, "worker");
	synth_text(w.p, MT_REC_THREAD, &(struct mt_rec_thread){ 1, 100 }, 8, "main");
	w.p->info.threads = 2;
	uint32_t script = function(SCRIPT, "<module>"), work = function(SCRIPT, "work");
	take(in(0, work, 50), 200);
	w.ring = 1;
	take(in(0, script, 10), 1000);
	run();
	CHECK(are("train.py:10"));
	end();
}

/* A loop of two lines: so many visits each have a phase, and with one more they are all one. */
static void visit(unsigned times)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), one = in(0, script, 10), other = in(0, script, 11);
	for (unsigned i = 0; i < times; i++) {
		uint64_t high = take(one, 10000 - 100 * i);
		take(one, 10);
		drop(high);
		take(other, 1);
	}
	run();
}

TEST(visits_are_phases_while_they_are_few)
{
	visit(PHASE_VISITS);
	CHECK_EQ(phases_count(w.phases), 2 * PHASE_VISITS);
	for (size_t i = 0; i < phases_count(w.phases); i += 2) {
		CHECK(!strcmp(phases_get(w.phases, i)->name, "train.py:10"));
		CHECK_EQ(phases_get(w.phases, i)->visits, 1);
		CHECK_EQ(heap(i)->begin_bytes, 11 * i / 2);
		CHECK_EQ(heap(i)->peak_bytes, 11 * i / 2 + 10000 - 100 * i / 2 + 10);
		CHECK_EQ(heap(i)->kept_bytes, 10);
	}
	end();
	for (unsigned times = PHASE_VISITS + 1; times < PHASE_VISITS + 5; times += 3) {
		visit(times);
		CHECK(are("train.py:10, train.py:11"));
		const struct phase *p = phases_get(w.phases, 0);
		CHECK_EQ(p->visits, times);
		CHECK_EQ(p->begin_ns, MS);
		CHECK_EQ(p->busy_ns, times * (2 * MS + 1000));
		CHECK_EQ(p->end_ns, times * (3 * MS + 1000) - 0);
		CHECK_EQ(heap(0)->peak_bytes, 10010);
		CHECK_EQ(heap(0)->peak_ns, 2 * MS);
		CHECK_EQ(heap(0)->kept_bytes, 10 * times);
		CHECK_EQ(heap(0)->end_bytes, 11 * (times - 1) + 10);
		end();
	}
}

/* ---- marks ----------------------------------------------------------------------------------------------- */

TEST(ranges_of_a_thread_nest)
{
	begin();
	uint32_t outer = named("outer"), inner = named("inner");
	enter(outer);
	take(0, 100);
	enter(inner);
	take(0, 30);
	w.ring = 1;
	leave(); /* of another thread: it has nothing open */
	w.ring = 0;
	take(0, 5);
	leave();
	take(0, 7);
	leave();
	leave(); /* one too many */
	take(0, 1000);
	run();
	CHECK(are("outer, inner"));
	CHECK_EQ(heap(0)->peak_bytes, 142);
	CHECK_EQ(heap(1)->peak_bytes, 135);
	CHECK_EQ(heap(1)->begin_bytes, 100);
	CHECK_EQ(heap(1)->kept_bytes, 35);
	end();
}

/* memtrace_phase_end("outer") with "inner" still open; ranges with a number end by it, wherever; a mark that never ends
 * does with the process. */
TEST(what_ends_is_told_by_name_or_number)
{
	begin();
	uint32_t outer = named("outer"), inner = named("inner");
	enter(outer);
	take(0, 100);
	enter(inner);
	take(0, 30);
	mark(MT_MARK_END, outer, 0, MT_MARK_PROGRAM);
	take(0, 5);
	mark(MT_MARK_BEGIN, outer, 77, MT_MARK_NVTX);
	mark(MT_MARK_BEGIN, inner, 78, MT_MARK_MSTX);
	leave(); /* the inner one without a number */
	take(0, 2);
	w.ring = 1;
	mark(MT_MARK_END, 0, 77, MT_MARK_NVTX);
	take(0, 1);
	run();
	CHECK(are("outer, inner, outer, inner"));
	static const struct {
		uint64_t begin, end;
		enum phase_source source;
	} rows[] = {
		{ 0, 130, PHASE_MARK },
		{ 100, 135, PHASE_MARK },
		{ 135, 137, PHASE_NVTX },
		{ 135, 138, PHASE_MSTX },
	};
	for (size_t i = 0; i < 4; i++) {
		CHECK_EQ(heap(i) ? heap(i)->begin_bytes : 0, rows[i].begin);
		CHECK_EQ(heap(i)->end_bytes, rows[i].end);
		CHECK_EQ(phases_get(w.phases, i)->source, rows[i].source);
	}
	end();
}

/* Their lines go on below marks, and marks end no line. */
TEST(marks_and_lines_overlap)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), name = named("load");
	take(in(0, script, 10), 100);
	enter(name);
	take(in(0, script, 11), 50);
	leave();
	take(in(0, script, 11), 3);
	run();
	CHECK(are("train.py:10, load, train.py:11"));
	CHECK_EQ(heap(0)->end_bytes, 100);
	CHECK_EQ(heap(1)->peak_bytes, 150);
	CHECK_EQ(heap(2)->peak_bytes, 153);
	end();
}

TEST(marks_without_a_name_are_no_phases)
{
	begin();
	enter(named(""));
	take(0, 100);
	leave();
	CHECK_EQ(run(), 0);
	end();
}

TEST(names_are_so_many_at_most)
{
	begin();
	for (unsigned i = 0; i < PHASE_NAMES + 2; i++) {
		char text[32];
		snprintf(text, sizeof(text), "epoch %u", i);
		enter(named(text));
		leave();
	}
	enter(1);
	leave();
	CHECK_EQ(run(), PHASE_NAMES + 1);
	end();
}

/* ---- devices --------------------------------------------------------------------------------------------- */

static void device(enum mt_kind kind, enum mt_class class, uint32_t id, uint64_t addr, uint64_t bytes)
{
	synth_dev(w.p, 0, w.now += 1000, kind, class, id, addr, bytes, 0);
}

/* In the phase the pool has 500 of 1000 bytes at the peak, and gives all but 100 back to the driver. The peak is where
 * the pool's is, also when the driver had more before and another device has anything. */
TEST(what_the_driver_had_is_that_of_the_pools_peak)
{
	begin();
	device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 2, 0x100000, 9000);
	device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, 0x100000, 700);
	enter(named("step"));
	device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, 0x200000, 300);
	device(MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, 0x100000, 400);
	device(MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, 0x200000, 100);
	device(MT_DEVICE_FREE, MT_CLASS_POOL, 1, 0x100000, 0);
	device(MT_DEVICE_FREE, MT_CLASS_DEVICE, 1, 0x100000, 0);
	take(0, 10);
	leave();
	run();
	const struct phase *p = phases_get(w.phases, 0);
	const struct phase_track *pool = track(p, MODEL_POOL, 0), *memory = track(p, MODEL_DEVICE, 0),
				 *other = track(p, MODEL_DEVICE, 1);
	CHECK(pool && memory && other);
	CHECK_EQ(pool->peak_bytes, 500);
	CHECK_EQ(pool->driver_bytes, 1000);
	CHECK_EQ(memory->peak_bytes, 1000);
	CHECK_EQ(memory->begin_bytes, 700);
	CHECK_EQ(memory->end_bytes, 300);
	CHECK_EQ(memory->driver_bytes, 0);
	CHECK_EQ(other->peak_bytes, 9000);
	struct phase_freed freed;
	CHECK(phase_freed(p, pool, &freed));
	CHECK_EQ(freed.freed, 400);
	CHECK_EQ(freed.to_driver, 700);
	CHECK(!phase_freed(p, memory, &freed));
	end();
}

/* A second phase begins with blocks in the pool that are its peak, too: the driver had what it had then. */
TEST(a_peak_may_be_the_beginning)
{
	begin();
	device(MT_DEVICE_ALLOC, MT_CLASS_DEVICE, 1, 0x100000, 700);
	device(MT_DEVICE_ALLOC, MT_CLASS_POOL, 1, 0x100000, 400);
	uint64_t block = take(0, 50);
	enter(named("step"));
	device(MT_DEVICE_FREE, MT_CLASS_POOL, 1, 0x100000, 0);
	drop(block);
	leave();
	run();
	const struct phase_track *pool = track(phases_get(w.phases, 0), MODEL_POOL, 0);
	CHECK_EQ(pool->peak_bytes, 400);
	CHECK_EQ(pool->driver_bytes, 700);
	CHECK_EQ(pool->peak_ns, phases_get(w.phases, 0)->begin_ns);
	CHECK_EQ(pool->kept_bytes, -400);
	CHECK_EQ(heap(0)->peak_bytes, 50);
	end();
}

/* A pool that had 900 in blocks at its peak, of 1200 the process had of the driver; at the end 100 and DRIVER_END. */
static bool freed(uint64_t visits, uint64_t driver_end, uint64_t driver_at_peak, struct phase_freed *out)
{
	struct phase_track tracks[] = {
		{ .kind = MODEL_POOL,
		  .device = 1,
		  .peak_bytes = 900,
		  .end_bytes = 100,
		  .driver_bytes = driver_at_peak },
		{ .kind = MODEL_DEVICE, .device = 1, .peak_bytes = 1200, .end_bytes = driver_end },
		{ .kind = MODEL_DEVICE, .device = 2, .peak_bytes = 77, .end_bytes = 77 },
	};
	struct phase p = { .visits = visits, .tracks = tracks, .track_count = 3 };
	return phase_freed(&p, &tracks[0], out);
}

TEST(what_a_phase_frees_goes_to_the_driver_or_stays)
{
	struct phase_freed f;
	CHECK(freed(1, 1200, 1200, &f) && f.freed == 800 && f.to_driver == 0 && f.in_pool == 800); /* all kept */
	CHECK(freed(1, 400, 1200, &f) && f.freed == 800 && f.to_driver == 800 && f.in_pool == 0);  /* empty_cache() */
	CHECK(freed(1, 700, 1200, &f) && f.to_driver == 500 && f.in_pool == 300);
	/* it has taken more since */
	CHECK(freed(1, 1500, 1200, &f) && f.to_driver == -300 && f.in_pool == 1100);
	/* which visit's? */
	CHECK(!freed(2, 1200, 1200, &f));
	/* nothing was seen of the driver */
	CHECK(!freed(1, 1200, 0, &f));
}

/* ---- folded blocks --------------------------------------------------------------------------------------- */

static unsigned changes;

/* Before the second change a folded block says that there were 5000 bytes in between and are 1100 now, of which 1000
 * are left out; before the third that changes show all again, and that there were 300. */
static void say_levels(const struct model_change *c)
{
	struct model_level_change l = {
		.process = c->process, .kind = MODEL_HEAP, .device = MODEL_NO_DEVICE, .ns = c->ns
	};
	changes++;
	if (changes == 2) {
		l.low = l.now = 1100;
		l.high = 5000;
		phases_level(w.phases, &l);
		l.kind = MODEL_KINDS; /* says but how many allocations there were */
		l.high = 99999;
		phases_level(w.phases, &l);
	} else if (changes == 3) {
		l.end = true;
		l.low = l.now = l.high = 107;
		phases_level(w.phases, &l);
	}
}

TEST(folded_blocks_say_what_is_left_out)
{
	begin();
	changes = 0;
	w.before = say_levels;
	uint32_t one = named("one"), two = named("two"), three = named("three");
	take(0, 100);
	enter(one);
	take(0, 7);
	leave();
	enter(two);
	leave();
	take(0, 3);
	enter(three);
	take(0, 2);
	leave();
	run();
	CHECK_EQ(heap(0)->begin_bytes, 100);
	CHECK_EQ(heap(0)->peak_bytes, 5000);
	CHECK_EQ(heap(0)->end_bytes, 1107);
	CHECK_EQ(heap(1)->begin_bytes, 1107);
	CHECK_EQ(heap(1)->peak_bytes, 1107);
	CHECK_EQ(heap(2)->begin_bytes, 110);
	CHECK_EQ(heap(2)->peak_bytes, 112);
	end();
}

/* ---- finding --------------------------------------------------------------------------------------------- */

TEST(phases_are_found_by_name_place_or_callee)
{
	begin();
	uint32_t script = function(SCRIPT, "<module>"), train = function(SCRIPT, "train"),
		 retrain = function(SCRIPT, "retrain");
	spend(in(in(0, script, 2), retrain, 50), 10);
	spend(in(in(0, script, 20), train, 50), 10);
	spend(in(in(0, script, 21), retrain, 50), 10);
	run();
	CHECK(are("train.py:2 retrain, train.py:20 train, train.py:21 retrain"));
	CHECK_EQ(phases_find(w.phases, "train.py:20 train", 0), 1);
	CHECK_EQ(phases_find(w.phases, "train", 0), 1);
	CHECK_EQ(phases_find(w.phases, "train.py:2", 0), 0);
	CHECK_EQ(phases_find(w.phases, "train.py:20", 0), 1);
	CHECK_EQ(phases_find(w.phases, "retrain", 1), 2);
	CHECK_EQ(phases_find(w.phases, "py:21", 0), 2);
	CHECK_EQ(phases_find(w.phases, "py:21", 2), 2);
	CHECK_EQ(phases_find(w.phases, "evaluate", 0), 3);
	CHECK_EQ(phases_find(w.phases, "train.py:2 retrain", 1), 3);
	end();
}

TEST_MAIN
