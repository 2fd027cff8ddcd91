/*
 * A trace that is read while it is written: what the model has at each stage is what was done until then, and in the
 * end what a reader finds that comes later. Events lie in the rings first and then in blocks, in all mixtures; the
 * recorder may put another file in the trace's place; processes begin and end.
 */
#include "analyzer/model/model.h"
#include "analyzer/timeline/loop_finder.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <dlfcn.h>

enum { RINGS = 3, LIVE = 4096, STAGES = 24 };

struct run {
	struct synth s;
	struct synth_process *p, *child;
	struct reader *reader;
	uint64_t ticks, seed;
	uint64_t addr[LIVE], size[LIVE]; /* 0 = free */
	uint64_t live, allocations, child_live;
	unsigned stage;
	bool replace;
};

/* ---- a process that is alive: this one ------------------------------------------------------------------- */

static uint64_t own_start(void)
{
	char text[1024];
	unsigned long long start = 0;
	FILE *f = fopen("/proc/self/stat", "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = 0;
	char *end = strrchr(text, ')');
	if (end)
		sscanf(end + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		       &start);
	if (f)
		fclose(f);
	return start;
}

static void set_session(struct synth *s)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fgets(s->session.boot_id, sizeof(s->session.boot_id), f))
		s->session.boot_id[strcspn(s->session.boot_id, "\n")] = 0;
	if (f)
		fclose(f);
	synth_save_session(s);
}

static struct synth_process *alive(struct run *r, uint32_t image)
{
	struct stat st;
	struct synth_process *p = synth_process(&r->s, (uint32_t)getpid(), image);
	p->info.boot_start = own_start();
	p->info.pid_ns = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
	p->info.rings = RINGS;
	return p;
}

/* ---- what it does ---------------------------------------------------------------------------------------- */

static void act(struct run *r, size_t events)
{
	for (size_t n = 0; n < events; n++) {
		size_t i = random_next(&r->seed) % LIVE;
		uint32_t ring = (uint32_t)(random_next(&r->seed) % RINGS);
		r->ticks += 1 + random_next(&r->seed) % 50;
		if (r->size[i]) {
			synth_plain(r->p, ring, r->ticks, MT_FREE, r->addr[i]);
			r->live -= r->size[i];
			r->size[i] = 0;
			continue;
		}
		r->addr[i] = 0x100000 + 16 * (uint64_t)i;
		r->size[i] = 1 + random_next(&r->seed) % 1000;
		r->live += r->size[i];
		r->allocations++;
		synth_alloc(r->p, ring, r->ticks, r->addr[i], r->size[i], 1);
	}
}

static void remove_file(const struct synth_process *p, const char *extension)
{
	char name[64], path[256];
	synth_name(p, extension, name);
	synth_path(p->synth, name, path);
	unlink(path);
}

/* Another file of the same name: as one that was folded. */
static void replace_trace(struct run *r)
{
	char name[64], path[256], away[300];
	synth_name(r->p, "trace", name);
	synth_path(&r->s, name, path);
	snprintf(away, sizeof(away), "%s-away", path);
	rename(path, away);
	r->p->block_slots = 500;
	synth_write(r->p, SYNTH_MIXED);
	unlink(away);
}

static void finish(struct run *r)
{
	static const char *const raw[] = { "info", "nodes", "ring" };
	r->p->info.exit_kind = MT_EXIT_CODE;
	r->p->info.end_ticks = r->ticks;
	synth_write(r->p, SYNTH_BLOCKS);
	for (int i = 0; i < 3; i++)
		remove_file(r->p, raw[i]);
}

static void next_stage(struct run *r)
{
	act(r, 2000);
	if (r->stage == STAGES / 2 && r->replace)
		replace_trace(r);
	else
		synth_write(r->p, r->stage < 3 ? SYNTH_RAW : SYNTH_MIXED);
	if (r->stage == 5) {
		r->child = alive(r, 7);
		r->child->info.start_ticks = r->ticks;
		synth_node(r->child, 0, 0x1000);
		synth_alloc(r->child, 0, r->ticks, 0x5000, 777, 1);
		synth_write(r->child, SYNTH_RAW);
		r->child_live = 777;
	}
	if (r->stage == STAGES)
		finish(r);
}

/* ---- the test -------------------------------------------------------------------------------------------- */

static int on_idle(void *arg, const struct model *m)
{
	struct run *r = arg;
	CHECK_EQ(model_live(m, 0, MODEL_HEAP), r->live);
	if (r->child && reader_processes(r->reader) > 1)
		CHECK_EQ(model_live(m, 1, MODEL_HEAP), r->child_live);
	if (test_failures)
		return 0;
	if (r->stage++ == STAGES) {
		CHECK_EQ(reader_processes(r->reader), 2);
		CHECK_EQ(reader_process(r->reader, 0)->exit_kind, MT_EXIT_CODE);
		CHECK(!reader_ended(r->reader)); /* the other one runs */
		return 0;
	}
	next_stage(r);
	CHECK_EQ(reader_refresh(r->reader), 0);
	return 1;
}

static struct model_totals totals_of(const char *dir)
{
	struct reader *r;
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	struct model_totals t = { 0 };
	CHECK_EQ(reader_open(&r, &dir, 1, 0), 0);
	CHECK_EQ(model_run(&m, r, &q), 0);
	if (m)
		t = model_process(m, 0)->kind[MODEL_HEAP];
	model_free(m);
	reader_close(r);
	return t;
}

static struct run *begin(uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));
	r->seed = seed;
	r->ticks = SYNTH_START;
	synth_begin(&r->s);
	set_session(&r->s);
	r->p = alive(r, 0);
	synth_node(r->p, 0, 0x1000);
	act(r, 2000);
	synth_write(r->p, SYNTH_RAW);
	return r;
}

/* NULL if it can't be followed. */
static struct model *model_of(struct run *r, int (*idle)(void *arg, const struct model *m))
{
	struct model *m = NULL;
	struct model_query q = MODEL_QUERY_ALL;
	const char *dir = r->s.dir;
	q.on_idle = idle;
	q.idle_arg = r;
	CHECK_EQ(reader_open(&r->reader, &dir, 1, READER_FOLLOW), 0);
	CHECK_EQ(r->reader ? model_run(&m, r->reader, &q) : -1, 0);
	return m;
}

static void end(struct run *r, struct model *m)
{
	model_free(m);
	reader_close(r->reader);
	synth_end(&r->s);
	free(r);
}

static void follow(uint64_t seed, bool replace)
{
	struct run *r = begin(seed * 0x9E3779B97F4A7C15ull);
	r->replace = replace;
	struct model *m = model_of(r, on_idle);
	if (m) {
		struct model_totals seen = model_process(m, 0)->kind[MODEL_HEAP], whole = totals_of(r->s.dir);
		CHECK_EQ(r->stage, STAGES + 1);
		CHECK_EQ(seen.allocations, r->allocations);
		CHECK_EQ(seen.allocations, whole.allocations);
		CHECK_EQ(seen.frees, whole.frees);
		CHECK_EQ(seen.live_bytes, whole.live_bytes);
		CHECK_EQ(seen.peak_bytes, whole.peak_bytes);
		CHECK_EQ(seen.unknown_frees + seen.missed_frees, 0);
		CHECK_EQ(reader_notes(r->reader), 0);
	}
	end(r, m);
}

TEST(a_model_follows_what_is_written)
{
	for (uint64_t seed = 1; seed <= 4 && !test_failures; seed++)
		follow(seed, false);
}

TEST(another_file_in_its_place_says_nothing_twice)
{
	for (uint64_t seed = 11; seed <= 14 && !test_failures; seed++)
		follow(seed, true);
}

/* All it did lies in one folded block, which leaves everything out, and nothing is in its rings any more. */
static void fold_all(struct run *r)
{
	static uint8_t states[MT_MAX_CHUNKS];
	static const uint32_t rings[4];
	struct mt_event slots[4] = {
		{ .kind = MT_FOLD, .ticks = SYNTH_START }, { 0 }, { .kind = MT_FOLD, .ticks = r->ticks }, { 0 }
	};
	struct mt_ext_device ext = { .class = MT_FOLD_BEGIN };
	struct mt_cover covers[RINGS];
	uint64_t next[RINGS + 1] = { 0 }, *at = synth_positions(r->p, next);
	struct synth_trace t;
	for (int i = 0; i < 2; i++, ext.class = MT_FOLD_END) {
		memcpy(&slots[2 * i + 1], &ext, sizeof(ext));
		slots[2 * i + 1].kind = MT_EXT;
	}
	for (uint32_t i = 0; i < RINGS; i++)
		covers[i] = (struct mt_cover){ .ring = i, .thread = i, .to = next[i] };
	synth_open_trace(&t, r->p);
	synth_put(&t, codec_encode_folded(t.codec, slots, rings, 4, covers, RINGS, 0, 1, &t.block));
	synth_close_trace(&t);
	memset(states, 0, sizeof(states));
	synth_write_ring(r->p, at, r->p->count, states);
	synth_write_info(r->p, states);
	free(at);
}

static int on_idle_fold(void *arg, const struct model *m)
{
	struct run *r = arg;
	CHECK_EQ(model_live(m, 0, MODEL_HEAP), r->live); /* nothing is taken for freed, and nothing comes twice */
	if (r->stage++)
		return 0;
	uint64_t live = r->live;
	size_t before = r->p->count;
	act(r, 3000);
	r->allocations = r->p->count - before;
	r->live = live;
	fold_all(r);
	CHECK_EQ(reader_refresh(r->reader), 0);
	return 1;
}

/* What was folded before it could be read is missing, and counted. */
TEST(what_is_folded_before_it_was_read_is_skipped)
{
	struct run *r = begin(21);
	struct model *m = model_of(r, on_idle_fold);
	CHECK_EQ(r->stage, 2);
	if (m) {
		CHECK_EQ(reader_process(r->reader, 0)->skipped_slots, r->allocations);
		CHECK(!reader_complete(r->reader));
	}
	end(r, m);
}

static size_t events_of(struct reader *r)
{
	struct reader_step step;
	size_t n = 0;
	while (reader_next(r, &step) > 0)
		n += step.count;
	return n;
}

/* The recorder goes on between two passes of one command. */
TEST(another_pass_has_the_events_of_the_first)
{
	struct run *r = calloc(1, sizeof(*r));
	struct reader *again = NULL;
	r->seed = 1;
	r->ticks = SYNTH_START;
	synth_begin(&r->s);
	r->s.session.recorder_pid = (uint32_t)getpid();
	set_session(&r->s);
	r->p = alive(r, 0);
	r->p->block_slots = 50;
	act(r, 2000);
	synth_write(r->p, SYNTH_MIXED);
	const char *dir = r->s.dir;
	CHECK_EQ(reader_open(&r->reader, &dir, 1, 0), 0);
	CHECK_EQ(events_of(r->reader), 2000);
	act(r, 20000);
	synth_write(r->p, SYNTH_MIXED);
	CHECK_EQ(reader_open_again(&again, r->reader), 0);
	CHECK_EQ(events_of(again), 2000);
	reader_close(again);
	reader_close(r->reader);
	synth_end(&r->s);
	free(r);
}

/* ---- a directory that changes while it is read ----------------------------------------------------------- */

/* at the next entry that the directory's reader asks for; what is made then, this pass is already behind */
static struct run *finishes;
static DIR *passed;

/* As one may see it: file systems say nothing of an entry that is made or removed during a pass. */
struct dirent *readdir(DIR *dir)
{
	struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir"), *entry = next(dir);
	if (entry && finishes) {
		finish(finishes);
		finishes = NULL;
		passed = dir;
		rewinddir(dir);
		entry = next(dir);
	}
	while (entry && dir == passed && strstr(entry->d_name, ".trace"))
		entry = next(dir);
	passed = entry ? passed : NULL;
	return entry;
}

/* At no moment are both its raw files and its trace missing. */
TEST(a_process_that_is_finished_meanwhile_is_not_overlooked)
{
	struct run *r = begin(31);
	const char *dir = r->s.dir;
	finishes = r;
	CHECK_EQ(reader_open(&r->reader, &dir, 1, 0), 0);
	CHECK(!finishes);
	CHECK_EQ(r->reader ? reader_processes(r->reader) : 0, 1);
	CHECK_EQ(r->reader ? events_of(r->reader) : 0, r->p->count);
	end(r, NULL);
}

TEST_MAIN
