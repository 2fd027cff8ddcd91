/* A generated program, the truth about its steps as it counts them itself, and the two passes that find them and its
 * cohorts. */
#ifndef MT_TEST_PROGRAM_H
#define MT_TEST_PROGRAM_H

#include "analyzer/diagnosis/growth/outlook.h"
#include "analyzer/timeline/steps.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

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
static void (*before_change)(struct steps *s, const struct model_change *c); /* of the second pass; NULL = nothing */

static SYNTH_UNUSED uint64_t rnd(uint64_t n)
{
	return (random_next(&prog.seed) >> 20) % n;
}

static SYNTH_UNUSED void begin(uint64_t seed)
{
	prog = (struct program){ .now = SYNTH_START + MS,
				 .next_addr = 0x10000,
				 .seed = seed * 0x9E3779B97F4A7C15ull + 1 };
	synth_begin(&prog.synth);
	prog.p = synth_process(&prog.synth, 100, 0);
}

static SYNTH_UNUSED uint32_t site(uint64_t pc)
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
static SYNTH_UNUSED void step(void)
{
	prog.low[prog.steps] = prog.high[prog.steps] = prog.live;
	prog.steps++;
}

struct held {
	uint64_t addr, size;
};

static SYNTH_UNUSED struct held take(uint32_t node, uint64_t size)
{
	struct held h = { prog.next_addr, size };
	prog.next_addr += size + 64;
	prog.now += 20000 + rnd(20000);
	synth_alloc(prog.p, 0, prog.now, h.addr, size, node);
	prog.live += size;
	note();
	return h;
}

static SYNTH_UNUSED void drop(struct held h)
{
	prog.now += 5000;
	synth_plain(prog.p, 0, prog.now, MT_FREE, h.addr);
	prog.live -= h.size;
	note();
}

static SYNTH_UNUSED void mark(enum mt_mark what, uint64_t value, const char *name, enum mt_mark_source source)
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
	struct loop_finder *finder;
	struct steps *steps;
	struct cohorts *cohorts;
	struct reader *reader[2];
};

static void on_event(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread)
{
	struct passes *s = arg;
	(void)ring;
	if (s->steps)
		steps_event(s->steps, p, slot, thread);
	else
		loop_finder_event(s->finder, p, slot);
}

static void on_change(void *arg, const struct model_change *c)
{
	struct passes *s = arg;
	if (s->steps && before_change)
		before_change(s->steps, c);
	if (!s->steps) {
		loop_finder_change(s->finder, c);
		cohorts_count(s->cohorts, c);
		return;
	}
	steps_change(s->steps, c);
	const struct steps_now now = steps_now(s->steps, c->process->id);
	cohorts_change(s->cohorts, c, now.begin_ns, now.before_ns);
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

static SYNTH_UNUSED void run(struct passes *s)
{
	*s = (struct passes){ .finder = loop_finder_new(), .cohorts = cohorts_new() };
	if (!prog.p->info.exit_kind)
		prog.p->info.exit_kind = MT_EXIT_CODE;
	prog.p->info.end_ticks = prog.now;
	synth_write(prog.p, SYNTH_BLOCKS);
	run_pass(s, 0);
	cohorts_begin(s->cohorts, false);
	s->steps = steps_new(s->finder);
	run_pass(s, 1);
	struct cohorts *none = cohorts_new(); /* nobody is known to clean up */
	steps_finish(s->steps, none);
	cohorts_free(none);
}

static SYNTH_UNUSED void end(struct passes *s)
{
	steps_free(s->steps);
	cohorts_free(s->cohorts);
	loop_finder_free(s->finder);
	reader_close(s->reader[0]);
	reader_close(s->reader[1]);
	synth_end(&prog.synth);
}

static SYNTH_UNUSED const struct step_track *heap_of(const struct step_list *steps)
{
	for (size_t i = 0; i < steps->track_count; i++)
		if (steps->tracks[i].kind == MODEL_HEAP)
			return &steps->tracks[i];
	return NULL;
}

/* Of what the first process's site has on the heap; its sites are numbered as they come. */
static SYNTH_UNUSED struct outlook_found outlook_of_site(const struct passes *s, uint32_t number)
{
	static struct cohort_table table;
	const struct cohort_clock clock = cohorts_clock(s->cohorts, 0, MODEL_HEAP, MODEL_NO_DEVICE);
	table = (struct cohort_table){ 0 };
	cohorts_add_site(s->cohorts, 0, number, 1, &table);
	return outlook_of(&table, &clock, 1);
}

#endif
