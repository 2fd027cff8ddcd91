/* What was alive at the end and what grows, of programs that are made up; and suppression files. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/diagnosis/growth/leaks.h"
#include "analyzer/symbols/symbol_file.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#include <math.h>

#define MS     1000000ull
#define KIB    1024ull
#define MIB    (1024 * KIB)
#define SCRIPT "/home/u/train.py"

static struct {
	struct synth synth;
	struct synth_process *p;
	uint64_t now, next_addr;
	uint32_t ring, codes, in_c;
	enum by by;
	struct suppress *suppress;
	struct options options;
	struct selection selection;
	struct leaks leaks;
} w;

/* A C function of a library that keeps what it allocates: builtin_suppressions.def knows such names. */
static void library(void)
{
	static const char path[] = "/nowhere/libgomp.so.1";
	synth_record(w.p, MT_REC_MODULE, SYNTH_START, &(struct mt_rec_module){ .start = 0x100000, .end = 0x200000 },
		     sizeof(struct mt_rec_module), path, sizeof(path));
	struct symbols *symbols = symbols_new();
	struct symbol_module *module = symbols_module(symbols, &(struct module_id){ .path = path, .build_id = "" });
	symbols_add_known(symbols, module, 0x10000f, &(struct frame){ .function = "gomp_team_start" }, 1);
	if (symbol_file_write(symbols, w.synth.dir))
		abort();
	symbols_free(symbols);
}

static void begin(void)
{
	memset(&w, 0, sizeof(w));
	w.now = SYNTH_START;
	w.next_addr = 0x10000;
	w.by = BY_SITE;
	synth_begin(&w.synth);
	w.p = synth_process(&w.synth, 100, 0);
	library();
}

static uint32_t function_in(uint32_t stack, const char *name)
{
	synth_code(w.p, ++w.codes, SCRIPT, name);
	return synth_frame(w.p, stack, w.codes, 10 * w.codes);
}

static uint32_t function(const char *name)
{
	return function_in(0, name);
}

static uint64_t take(uint32_t stack, uint64_t bytes)
{
	w.next_addr += bytes + 64;
	synth_alloc(w.p, w.ring, w.now += 10000, w.next_addr, bytes, 0);
	synth_python(w.p, stack);
	return w.next_addr;
}

static uint64_t take_in_c(uint64_t bytes)
{
	w.next_addr += bytes + 64;
	w.in_c = w.in_c ? w.in_c : synth_node(w.p, 0, 0x100010);
	synth_alloc(w.p, w.ring, w.now += 10000, w.next_addr, bytes, w.in_c);
	return w.next_addr;
}

static void drop(uint64_t addr)
{
	synth_plain(w.p, w.ring, w.now += 10000, MT_FREE, addr);
}

static void step(uint64_t number)
{
	w.now += MS;
	synth_ext(w.p, 0, (struct mt_event){ .ticks = w.now, .addr = number, .kind = MT_MARK },
		  (struct mt_ext_device){ .class = MT_MARK_STEP, .source = MT_MARK_PROGRAM });
}

static void write_all(void)
{
	for (struct synth_process *p = w.synth.processes; p; p = p->next) {
		if (!p->info.exit_kind)
			p->info.exit_kind = MT_EXIT_CODE;
		p->info.end_ticks = w.now + MS;
		synth_write(p, SYNTH_BLOCKS);
	}
}

static void run(void)
{
	static const char *dir;
	struct model_query q = MODEL_QUERY_ALL;
	struct timeline *timeline = timeline_new();
	dir = w.synth.dir;
	w.options = (struct options){ .dirs = &dir, .ndirs = 1, .by = w.by };
	write_all();
	timeline_attach(timeline, &q);
	if (selection_open(&w.selection, &w.options) || selection_run(&w.selection, &q) ||
	    timeline_run(timeline, &w.selection) || leaks_init(&w.leaks, &w.selection, timeline, w.suppress, NULL))
		abort();
}

static void remove_all(void)
{
	char path[256];
	synth_path(&w.synth, "symbols", path);
	unlink(path);
	synth_end(&w.synth);
}

static void end(void)
{
	leaks_fini(&w.leaks);
	selection_close(&w.selection);
	remove_all();
}

static const struct leak *leak_of(const char *name)
{
	for (size_t i = 0; i < w.leaks.count; i++) {
		const struct owner *o = w.leaks.list[i].owner;
		if ((o->label && strstr(o->label, name)) ||
		    (o->frame && o->frame->name && !strcmp(o->frame->name, name)))
			return &w.leaks.list[i];
	}
	return NULL;
}

static void suppressions(const char *text)
{
	char path[256];
	synth_save(&w.synth, "rules", text, strlen(text));
	synth_path(&w.synth, "rules", path);
	if (suppressions_read(&w.suppress, path))
		abort();
	unlink(path);
}

/* ---- what is alive --------------------------------------------------------------------------------------- */

TEST(what_is_alive_is_told_largest_first)
{
	begin();
	uint32_t train = function("train"), test = function("test"), large = function("large"), gone = function("gone"),
		 late = function("late");
	/* called by two */
	uint32_t small = function_in(train, "small"), again = synth_frame(w.p, test, w.codes, 10 * w.codes);
	uint64_t first = w.now + 10000 - SYNTH_START;
	take(again, 3 * KIB);
	take(small, 2 * KIB);
	drop(take(large, 50 * KIB));
	uint64_t second = w.now + 10000 - SYNTH_START;
	take(large, 40 * KIB);
	drop(take(gone, 500 * KIB));
	take(late, 5 * KIB); /* as much as another, and nothing at the peak */
	run();
	CHECK_EQ(w.leaks.count, 3);
	CHECK_EQ(w.leaks.bytes, 50 * KIB);
	CHECK_EQ(w.leaks.blocks, 4);
	CHECK_EQ(w.leaks.in_use, 0);
	CHECK(w.leaks.list == leak_of("large"));
	CHECK_EQ(leak_of("large")->bytes, 40 * KIB);
	CHECK_EQ(leak_of("large")->oldest_ns, second);
	CHECK_EQ(leak_of("small")->blocks, 2);
	CHECK_EQ(leak_of("small")->oldest_ns, first);
	CHECK(!leak_of("small")->owner_growth && leak_counts(leak_of("small")));
	end();
}

/* Mapped and pinned memory are not the heap's. */
TEST(other_memory_is_told_apart)
{
	begin();
	uint32_t keep = function("keep"), mapped = function("mapped");
	take(keep, 8 * KIB);
	synth_map(w.p, 0, w.now += 10000, 1ull << 40, 8 * KIB, (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON },
		  0);
	w.p->slots[w.p->count - 2].event.node2 = mapped;
	run();
	CHECK_EQ(w.leaks.count, 2);
	CHECK_EQ(w.leaks.bytes, 8 * KIB);
	CHECK_EQ(w.leaks.blocks, 1);
	CHECK(w.leaks.list == leak_of("mapped")); /* of the same size, mappings come first: always in the same order */
	CHECK_EQ(leak_of("mapped")->kind, MODEL_MAP);
	CHECK_EQ(leak_of("mapped")->bytes, 8 * KIB);
	CHECK_EQ(leak_of("keep")->kind, MODEL_HEAP);
	end();
}

TEST(what_a_killed_process_had_was_in_use)
{
	begin();
	uint32_t keep = function("keep");
	take(keep, 3 * KIB);
	struct synth_process *first = w.p;
	w.p = synth_process(&w.synth, 101, 0);
	w.codes = 0;
	take(function("keep"), 7 * KIB);
	w.p->info.exit_kind = MT_EXIT_SIGNAL;
	w.p->info.exit_code = 9;
	w.p = first;
	run();
	CHECK_EQ(w.leaks.bytes, 10 * KIB);
	CHECK_EQ(w.leaks.in_use, 7 * KIB);
	end();
}

/* What libraries keep is no leak, by site as by stack. */
TEST(what_libraries_keep_is_benign)
{
	for (int by = 0; by < 2; by++) {
		begin();
		w.by = by ? BY_STACK : BY_SITE;
		take(function("keep"), 3 * KIB);
		take_in_c(100 * KIB);
		take_in_c(10 * KIB);
		run();
		CHECK_EQ(w.leaks.bytes, 3 * KIB);
		CHECK_EQ(w.leaks.blocks, 1);
		CHECK_EQ(w.leaks.benign_bytes, 110 * KIB);
		CHECK_EQ(w.leaks.benign_blocks, 2);
		CHECK_EQ(w.leaks.suppressed_bytes, 0);
		CHECK(w.leaks.list == leak_of("keep")); /* benign ones come last, however large */
		CHECK(w.leaks.count > 1 && w.leaks.list[1].benign && !strcmp(w.leaks.list[1].benign, "OpenMP threads"));
		end();
	}
}

TEST(what_the_user_suppresses_does_not_count)
{
	begin();
	uint32_t keep = function("keep"), cache = function("Cache.fill");
	take(keep, 3 * KIB);
	take(cache, 20 * KIB);
	take(cache, 30 * KIB);
	take_in_c(KIB);
	suppressions("leak:Cache.\n");
	run();
	CHECK_EQ(w.leaks.bytes, 3 * KIB);
	CHECK_EQ(w.leaks.blocks, 1);
	CHECK_EQ(w.leaks.suppressed_bytes, 50 * KIB);
	CHECK_EQ(w.leaks.suppressed_blocks, 2);
	CHECK_EQ(w.leaks.benign_bytes, KIB);
	CHECK_EQ(w.leaks.benign_blocks, 1);
	CHECK(leak_of("suppressed") && !strcmp(leak_of("suppressed")->suppressed, "Cache."));
	CHECK(!leak_counts(leak_of("suppressed")));
	end();
}

/* ---- growth ---------------------------------------------------------------------------------------------- */

enum { STEPS = 40 };

/* Each step saves `saved` bytes in a block and two blocks of 30 KiB; something comes and goes. */
static void train(uint32_t save, uint64_t saved, uint32_t log, uint64_t *blocks)
{
	uint32_t batch = function("batch");
	for (uint64_t i = 0; i < STEPS; i++) {
		step(i);
		uint64_t a = take(batch, 500 * KIB);
		blocks[i] = take(save, saved);
		take(log, 30 * KIB);
		take(log, 30 * KIB);
		drop(a);
	}
	step(STEPS);
	take(batch, 1);
}

TEST(what_grows_is_told_by_step)
{
	begin();
	uint64_t blocks[STEPS];
	uint32_t save = function("save"), log = function("log");
	train(save, 100 * KIB, log, blocks);
	run();
	const struct leak *leak = leak_of("save"), *other = leak_of("log");
	CHECK(leak && leak_grows(leak) && leak->owner_growth->growth.stepped);
	CHECK(other && leak_grows(other));
	CHECK(fabs(leak->owner_growth->growth.rate - 100.0 * KIB) < 10);
	CHECK(fabs(other->owner_growth->blocks_per_x - 2) < 0.001);
	CHECK(!leak_grows(leak_of("batch")));
	/* both grow by a block or two a step: at the same pace */
	CHECK_EQ(w.leaks.groups, 1);
	struct leak_group g = leaks_group(&w.leaks, 1);
	CHECK_EQ(g.sites, 2);
	CHECK(g.most == leak);
	CHECK(fabs(g.rate - 160.0 * KIB) < 20);
	CHECK(fabs(g.bytes - leak->owner_growth->growth.bytes - other->owner_growth->growth.bytes) < 1);
	CHECK(fabs(g.per_second - g.rate / leak->owner_growth->period_s) < 1e-6 * g.per_second);
	CHECK(fabs(g.error - leak->owner_growth->growth.rate_error - other->owner_growth->growth.rate_error) < 1e-6 &&
	      g.error < 0.02 * g.rate);
	CHECK_EQ(leaks_group(&w.leaks, 2).sites, 0);
	end();
}

/* Only in the end it is freed: it grew all the same, and nothing of it is alive. */
TEST(what_grew_and_was_freed_in_the_end_grew)
{
	for (uint64_t left = 0; left < 2; left++) {
		begin();
		uint64_t blocks[STEPS];
		uint32_t save = function("save"), log = function("log");
		train(save, 100 * KIB, log, blocks);
		for (uint64_t i = left; i < STEPS; i++)
			drop(blocks[i]);
		run();
		const struct leak *leak = leak_of("save");
		CHECK(leak && leak_grows(leak));
		CHECK_EQ(leak ? leak->bytes : 0, left * 100 * KIB);
		CHECK_EQ(leak ? leak->blocks : 0, left);
		CHECK_EQ(w.leaks.bytes, STEPS * 60 * KIB + left * 100 * KIB + 1);
		if (leak && !left)
			CHECK_EQ(leak->oldest_ns, UINT64_MAX);
		CHECK(left || leak == &w.leaks.list[2]); /* behind what is alive, a byte of "batch", too */
		end();
	}
}

/* It is called by two, and what is left is the first one's alone: how it grew is what both did. */
TEST(what_grew_is_told_of_all_callers)
{
	begin();
	uint64_t blocks[STEPS], others[STEPS];
	uint32_t train_one = function("train_one"), test_one = function("test_one"), batch = function("batch");
	uint32_t save = function_in(train_one, "save"), again = synth_frame(w.p, test_one, w.codes, 10 * w.codes);
	for (uint64_t i = 0; i < STEPS; i++) {
		step(i);
		uint64_t a = take(batch, 500 * KIB);
		blocks[i] = take(save, 100 * KIB);
		others[i] = take(again, 50 * KIB);
		drop(a);
	}
	step(STEPS);
	take(batch, 1);
	for (uint64_t i = 0; i < STEPS; i++) {
		drop(others[i]);
		if (i > 1)
			drop(blocks[i]);
	}
	run();
	const struct leak *leak = leak_of("save");
	CHECK(leak && leak_grows(leak));
	CHECK_EQ(leak->blocks, 2);
	CHECK(fabs(leak->owner_growth->growth.rate - 150.0 * KIB) < 15);
	end();
}

TEST(suppressed_growth_is_in_no_group)
{
	begin();
	uint64_t blocks[STEPS];
	uint32_t save = function("save"), log = function("log");
	w.by = BY_STACK; /* by site all that is suppressed would be one */
	train(save, 100 * KIB, log, blocks);
	suppressions("leak:save");
	run();
	CHECK_EQ(leaks_group(&w.leaks, 1).sites, 1);
	CHECK_EQ(w.leaks.suppressed_bytes, STEPS * 100 * KIB);
	end();
}

/* A pool of threads that gets more with every step is worth a look. */
TEST(benign_things_that_grow_count)
{
	begin();
	uint32_t batch = function("batch");
	for (uint64_t i = 0; i < STEPS; i++) {
		step(i);
		drop(take(batch, 500 * KIB));
		take_in_c(10 * KIB);
	}
	step(STEPS);
	run();
	CHECK_EQ(w.leaks.bytes, STEPS * 10 * KIB);
	CHECK_EQ(w.leaks.benign_bytes, 0);
	CHECK(w.leaks.count == 1 && leak_grows(w.leaks.list) && !w.leaks.list[0].benign);
	end();
}

/* ---- memtrace leaks -------------------------------------------------------------------------------------- */

/* The status of `memtrace leaks --fail-over LIMITS`, and what it says. What is allocated in "log" is suppressed. */
static int fails_over(const char *limits, char *said, size_t size)
{
	char rules[256], *words[] = { "leaks",     "--fail-over", (char *)(uintptr_t)limits, "--suppressions", rules,
				      w.synth.dir, NULL };
	synth_save(&w.synth, "rules", "leak:log\n", 9);
	synth_path(&w.synth, "rules", rules);
	char out[256], err[256];
	synth_path(&w.synth, "out", out);
	synth_path(&w.synth, "err", err);
	fflush(NULL);
	int out_fd = dup(1), err_fd = dup(2);
	if (!freopen(out, "we", stdout) || !freopen(err, "we", stderr))
		abort();
	int status = cmd_leaks(6, words);
	fflush(NULL);
	dup2(out_fd, 1);
	dup2(err_fd, 2);
	close(out_fd);
	close(err_fd);
	FILE *f = fopen(err, "re");
	said[f ? fread(said, 1, size - 1, f) : 0] = '\0';
	if (f)
		fclose(f);
	unlink(out);
	unlink(err);
	unlink(rules);
	return status;
}

TEST(limits_are_kept_or_not)
{
	static const struct {
		const char *limits;
		int status;
		const char *said;
	} rows[] = {
		{ "4000K", 1, "3.9 MiB are alive at the end, more than 3.9 MiB" },
		{ "4001K", 0, "" },
		{ "99K/step", 1, "save  train.py:10: grows by 100.0 KiB/step, more than 99.0 KiB/step" },
		{ "101K/step", 0, "" },
		{ "1M,101K/step", 1, "are alive" },
		{ "10M,200K/step,1G/s", 0, "" },
		{ "50M/s", 1, "more than 50.0 MiB/s" },
	};
	begin();
	uint64_t blocks[STEPS];
	uint32_t save = function("save"), log = function("log");
	train(save, 100 * KIB, log, blocks);
	write_all();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char said[2000];
		int status = fails_over(rows[i].limits, said, sizeof(said));
		if (status != rows[i].status || !strstr(said, rows[i].said) || (!status && *said))
			printf("# --fail-over %s: %d \"%s\"\n", rows[i].limits, status, said);
		CHECK_EQ(status, rows[i].status);
		CHECK(strstr(said, rows[i].said) && (status || !*said));
	}
	char said[2000];
	CHECK(fails_over("1M/hour", said, sizeof(said)) < 0);
	CHECK(fails_over("much", said, sizeof(said)) < 0);
	remove_all();
}

/* A check that could not look must not pass. */
TEST(a_limit_per_step_wants_steps)
{
	char said[2000];
	begin();
	take(function("keep"), KIB);
	write_all();
	CHECK_EQ(fails_over("1G/step", said, sizeof(said)), 1);
	CHECK(strstr(said, "no steps were found"));
	CHECK_EQ(fails_over("1G,1G/s", said, sizeof(said)), 0);
	remove_all();
}

/* ---- suppression files ----------------------------------------------------------------------------------- */

/* Whether `leak:PATTERN` suppresses what was allocated in that function, which another one called. */
static bool suppresses(const char *pattern, const char *name)
{
	char line[256];
	begin();
	synth_code(w.p, ++w.codes, SCRIPT, "outermost");
	uint32_t outer = synth_frame(w.p, 0, w.codes, 1);
	synth_code(w.p, ++w.codes, "/home/u/models/net.py", name);
	take(synth_frame(w.p, outer, w.codes, 2), KIB);
	snprintf(line, sizeof(line), "# for nobody\n\nrace:%s\nleak:%s", name, pattern);
	suppressions(line);
	run();
	bool yes = w.leaks.suppressed_bytes == KIB;
	end();
	return yes;
}

TEST(patterns_are_as_leak_sanitizers)
{
	CHECK(suppresses("fill", "Cache.fill") && suppresses("Cache", "Cache.fill") && suppresses("e.f", "Cache.fill"));
	CHECK(!suppresses("filled", "Cache.fill") && !suppresses("file", "Cache.fill"));
	CHECK(suppresses("^Cache", "Cache.fill") && !suppresses("^fill", "Cache.fill") &&
	      !suppresses("^Cache.fill2", "Cache.fill"));
	CHECK(suppresses("fill$", "Cache.fill") && !suppresses("Cache$", "Cache.fill"));
	CHECK(suppresses("^Cache.fill$", "Cache.fill") && !suppresses("^Cache.fil$", "Cache.fill"));
	CHECK(suppresses("Ca*ll", "Cache.fill") && suppresses("C*.*l", "Cache.fill") &&
	      !suppresses("C*x", "Cache.fill"));
	CHECK(suppresses("^C*l$", "Cache.fill") && !suppresses("^C*i$", "Cache.fill") &&
	      suppresses("Cache.fill*", "Cache.fill"));
	CHECK(suppresses("C**l", "Cache.fill") && suppresses("*", "Cache.fill"));
	CHECK(suppresses("a$b", "a$b"));
	CHECK(suppresses("outermost", "f") && suppresses("models/net.py", "f") && suppresses("train", "f"));
}

static int read_rules(const char *text)
{
	struct suppress *s = NULL;
	char path[256];
	begin();
	synth_save(&w.synth, "rules", text, strlen(text));
	synth_path(&w.synth, "rules", path);
	int e = suppressions_read(&s, path);
	CHECK(e == 0 || s == NULL);
	suppressions_free(s);
	unlink(path);
	remove_all();
	return e;
}

TEST(other_lines_are_skipped_and_nonsense_is_said)
{
	CHECK_EQ(read_rules(""), 0);
	CHECK_EQ(read_rules("# leak\r\n\t # also\n \nthread:x\nleak:y\r\n"), 0);
	CHECK_EQ(read_rules("leak:y\nnonsense\n"), -MT_EUSAGE);
	CHECK(strstr(error_get()->why, "line 2"));
	CHECK_EQ(read_rules("leak:\n"), -MT_EUSAGE);
	CHECK_EQ(suppressions_read(&(struct suppress *){ NULL }, "/nowhere/rules"), -MT_EIO);
}

TEST_MAIN
