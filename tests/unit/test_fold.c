/* Folding: what a model says of a trace is the same before and after the recorder folded it, again and again, also when it is killed
 * at any moment. The recorder itself does it, on finished traces of random programs that reach their limit. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "analyzer/model.h"
#include "analyzer/record.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define PID   4194000u
#define RINGS 3
#define NODES 40

enum { SLOTS = 20000, FORKS = 3, ADDRESSES = 60000 };

/* ---- a random program ------------------------------------------------------------------------------------ */

struct program {
	struct synth s;
	struct synth_process *p;
	uint64_t random, ticks;
	uint32_t nodes[NODES];
	struct { uint64_t addr, size; } live[SLOTS]; /* some place of many */
	uint64_t spare[ADDRESSES]; /* freed addresses, which come again */
	size_t spares;
	uint64_t next_addr;
	uint32_t owner[RINGS];
};

static uint64_t rnd(struct program *g, uint64_t below)
{
	g->random = g->random * 6364136223846793005u + 1442695040888963407u;
	return (g->random >> 20) % below;
}

static void new_block(struct program *g, unsigned i, uint32_t ring)
{
	uint64_t size = rnd(g, 50) ? rnd(g, 300) : rnd(g, 100) ? rnd(g, 20000) : 1 + rnd(g, 4000000);
	uint64_t addr = g->spares && rnd(g, 4) ? g->spare[--g->spares] : (g->next_addr += 16 * (1 + rnd(g, 20)));
	g->live[i].addr = addr;
	g->live[i].size = size;
	synth_alloc(g->p, ring, g->ticks, addr, size, g->nodes[rnd(g, NODES)]);
}

static void old_block(struct program *g, unsigned i, uint32_t ring)
{
	uint64_t addr = g->live[i].addr;
	if (rnd(g, 40) == 0) { /* a realloc that failed */
		synth_plain(g->p, ring, g->ticks, MT_FREE, addr);
		synth_plain(g->p, ring, g->ticks, MT_UNDO, addr);
		return;
	}
	if (rnd(g, 300)) /* else nobody saw it */
		synth_plain(g->p, ring, g->ticks, MT_FREE, addr);
	g->live[i].addr = 0;
	if (g->spares < ADDRESSES)
		g->spare[g->spares++] = addr;
}

/* Most blocks live short, few long; what is alive goes up and down. */
static void one(struct program *g, size_t count, size_t slots)
{
	uint32_t ring = (uint32_t)rnd(g, RINGS);
	size_t wave = count < slots / 3 ? count : 2 * slots / 3 > count ? 2 * slots / 3 - count : slots / 10;
	unsigned range = 16 + (unsigned)(wave * (SLOTS - 16) / slots);
	unsigned i = rnd(g, 8) ? (unsigned)rnd(g, 16) : rnd(g, 3) ? (unsigned)rnd(g, range) : (unsigned)rnd(g, SLOTS);
	g->ticks += rnd(g, 3) ? 1 + rnd(g, 500) : 0;
	if (g->live[i].addr)
		old_block(g, i, ring);
	else if (i < range)
		new_block(g, i, ring);
	else if (rnd(g, 50) == 0)
		synth_plain(g->p, ring, g->ticks, MT_FREE, 0x500000000000 + rnd(g, 1000) * 16);
	if (rnd(g, 900) == 0)
		synth_map(g->p, ring, g->ticks, 0x7f0000000000 + rnd(g, 1000) * 4096, 4096, (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON },
			  g->nodes[rnd(g, NODES)]);
	if (rnd(g, 900) == 0)
		synth_fail(g->p, ring, g->ticks, 1ull << 46, g->nodes[rnd(g, NODES)]);
	if (rnd(g, 2000) == 0)
		synth_plain(g->p, ring, g->ticks, MT_THREAD, g->owner[ring] = (uint32_t)rnd(g, 50));
}

/* A child frees what it inherited, some of it twice over. */
static void fork_one(struct program *g, unsigned n)
{
	g->ticks += 1000;
	struct synth_process *child = synth_fork(g->p, PID + 1 + n, g->ticks);
	uint32_t node = synth_node(child, 0, 0x9000);
	for (unsigned i = 0, k = 0; i < SLOTS && k < 200; i++) {
		if (!g->live[i].addr)
			continue;
		synth_plain(child, 0, g->ticks + 2000 + i, MT_FREE, g->live[i].addr);
		k++;
	}
	synth_alloc(child, 0, g->ticks + 50000, 0x600000000000, 100, node);
	child->info.exit_kind = MT_EXIT_CODE;
	child->info.end_ticks = g->ticks + 60000;
	synth_write(child, SYNTH_BLOCKS);
	g->ticks += 1000;
}

static struct program *make(uint64_t seed, size_t slots, enum mt_stacks stacks)
{
	struct program *g = calloc(1, sizeof(*g));
	g->random = seed;
	g->ticks = SYNTH_START;
	g->next_addr = 0x10000;
	synth_begin(&g->s);
	g->p = synth_process(&g->s, PID, 0);
	g->p->info.stacks = stacks;
	g->p->info.sample_bytes = 1000;
	g->p->block_slots = 2500;
	for (unsigned i = 0; i < NODES; i++)
		g->nodes[i] = synth_node(g->p, i ? g->nodes[rnd(g, i)] : 0, 0x1000 + i);
	while (g->p->count < slots) {
		size_t before = g->p->count;
		one(g, before, slots);
		if (before * FORKS / slots != g->p->count * FORKS / slots && g->p->count < slots)
			fork_one(g, (unsigned)(before * FORKS / slots));
	}
	synth_write(g->p, SYNTH_BLOCKS);
	return g;
}

static void drop(struct program *g)
{
	synth_end(&g->s);
	free(g);
}

/* ---- the recorder ---------------------------------------------------------------------------------------- */

static uint64_t trace_bytes(const struct program *g)
{
	struct stat st;
	uint64_t sum = 0;
	char name[64], path[256];
	for (struct synth_process *p = g->s.processes; p; p = p->next) {
		synth_name(p, "trace", name);
		synth_path(&g->s, name, path);
		sum += stat(path, &st) ? 0 : (uint64_t)st.st_size;
	}
	return sum;
}

/* The limit is near: what is left is little more than the trace takes. */
static void near_limit(struct program *g)
{
	struct mt_session *s = &g->s.session;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	if (f && fread(s->boot_id, 1, 36, f) == 36)
		s->boot_id[36] = 0;
	if (f)
		fclose(f);
	s->trace_bytes = trace_bytes(g);
	s->limit_bytes = 4 * s->trace_bytes;
	s->used_bytes = s->limit_bytes - s->trace_bytes / 10 * 11;
	unsigned char page[4096] = { 0 };
	memcpy(page, s, sizeof(*s));
	synth_save(&g->s, "session", page, sizeof(page));
}

static pid_t start(const struct program *g)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(record_run(g->s.dir) ? 1 : 0);
	return pid;
}

static void fold(struct program *g)
{
	int status = -1;
	near_limit(g);
	pid_t pid = start(g);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* ---- what a model says ----------------------------------------------------------------------------------- */

struct view { struct reader *r; struct model *m; };

static struct view look(const struct program *g, enum model_split split)
{
	struct view v = { 0 };
	const char *dir = g->s.dir;
	const struct model_query q = { .until_ns = UINT64_MAX, .split = split, .keep_blocks = true };
	CHECK_EQ(reader_open(&v.r, &dir, 1, 0), 0);
	CHECK_EQ(v.r ? model_run(&v.m, v.r, &q) : -1, 0);
	if (!v.r || !v.m)
		abort();
	CHECK(reader_complete(v.r));
	return v;
}

static void forget(struct view v)
{
	model_free(v.m);
	reader_close(v.r);
}

static void same_totals(const struct model_totals *a, const struct model_totals *b)
{
	CHECK_EQ(b->allocations, a->allocations);
	CHECK_EQ(b->frees, a->frees);
	CHECK_EQ(b->allocated_bytes, a->allocated_bytes);
	CHECK_EQ(b->live_bytes, a->live_bytes);
	CHECK_EQ(b->live_blocks, a->live_blocks);
	CHECK_EQ(b->peak_bytes, a->peak_bytes);
	CHECK_EQ(b->peak_blocks, a->peak_blocks);
	CHECK_EQ(b->peak_ns, a->peak_ns);
	CHECK_EQ(b->temporary, a->temporary);
	CHECK_EQ(b->failed, a->failed);
	CHECK_EQ(b->inherited_bytes, a->inherited_bytes);
	CHECK_EQ(b->inherited_blocks, a->inherited_blocks);
	CHECK_EQ(b->missed_frees, a->missed_frees);
	CHECK_EQ(b->unknown_frees, a->unknown_frees);
}

static const struct model_site *find(const struct model_process *p, const struct model_site *s)
{
	for (uint32_t i = 0; i < p->site_count; i++) {
		const struct model_site *t = &p->sites[i];
		if (t->node == s->node && t->node2 == s->node2 && t->kind == s->kind && t->split == s->split && t->sampled == s->sampled)
			return t;
	}
	return NULL;
}

static void same_sites(const struct model_process *a, const struct model_process *b)
{
	CHECK_EQ(b->site_count, a->site_count);
	for (uint32_t i = 0; i < a->site_count; i++) {
		const struct model_site *s = &a->sites[i], *t = find(b, s);
		CHECK(t != NULL);
		if (!t)
			continue;
		CHECK_EQ(t->allocations == t->peak_blocks, s->allocations == s->peak_blocks);
		CHECK_EQ(t->temporary, s->temporary);
		CHECK_EQ(t->live_bytes, s->live_bytes);
		CHECK_EQ(t->live_blocks, s->live_blocks);
		CHECK_EQ(t->peak_bytes, s->peak_bytes);
		CHECK_EQ(t->peak_blocks, s->peak_blocks);
	}
}

struct blocks { uint64_t count, sum; };

static int add_block(void *arg, const struct model_block *b)
{
	struct blocks *all = arg;
	all->count++;
	all->sum += (b->addr * 3 + b->size * 5 + b->ns * 7 + b->thread) * 0x9E3779B97F4A7C15ull;
	return 0;
}

/* No moment of a folded trace has more alive than there was, or less than it admits. */
static void same_course(const struct model_process *a, const struct model_process *b)
{
	const struct model_series *x = &a->timeline[MODEL_HEAP], *y = &b->timeline[MODEL_HEAP];
	CHECK_EQ(y->count, x->count);
	for (uint32_t i = 0; i < x->count && i < y->count; i++) {
		CHECK(y->buckets[i].high <= x->buckets[i].high);
		CHECK(y->buckets[i].high + b->fold.most_bytes >= x->buckets[i].high);
		CHECK(y->buckets[i].low <= x->buckets[i].low);
		CHECK(y->buckets[i].low + b->fold.most_bytes >= x->buckets[i].low);
	}
}

static void same(const struct view *before, const struct view *after)
{
	for (unsigned id = 0; id < reader_processes(before->r); id++) {
		const struct model_process *a = model_process(before->m, id), *b = model_process(after->m, id);
		struct blocks x = { 0 }, y = { 0 };
		for (int k = 0; k < MODEL_DEVICE; k++)
			same_totals(&a->kind[k], &b->kind[k]);
		same_sites(a, b);
		same_course(a, b);
		CHECK(!memcmp(a->bins, b->bins, sizeof(a->bins)));
		CHECK_EQ(b->events, a->events);
		CHECK_EQ(b->odd_undos, a->odd_undos);
		model_each_block(before->m, id, MODEL_HEAP, add_block, &x);
		model_each_block(after->m, id, MODEL_HEAP, add_block, &y);
		CHECK_EQ(y.count, x.count);
		CHECK_EQ(y.sum, x.sum);
	}
}

/* ---- tests ----------------------------------------------------------------------------------------------- */

enum { TIMES = 4 };

static void fold_often(uint64_t seed, size_t slots, enum mt_stacks stacks, enum model_split split)
{
	struct program *g = make(seed, slots, stacks);
	struct view before = look(g, split);
	uint64_t first = trace_bytes(g), folded = 0;
	for (int i = 0; i < TIMES && !test_failures; i++) {
		fold(g);
		struct view after = look(g, split);
		same(&before, &after);
		CHECK(model_process(after.m, 0)->fold.blocks >= folded);
		folded = model_process(after.m, 0)->fold.blocks;
		forget(after);
	}
	CHECK(folded > slots / 10);
	CHECK(trace_bytes(g) < first / (stacks == MT_STACKS_SAMPLE ? 1 : 2));
	forget(before);
	drop(g);
}

TEST(fold_and_the_model_says_the_same) { fold_often(1, 300000, MT_STACKS_ALL, MODEL_SPLIT_NONE); }
TEST(fold_by_thread) { fold_often(2, 200000, MT_STACKS_ALL, MODEL_SPLIT_THREAD); }
TEST(fold_by_size) { fold_often(3, 200000, MT_STACKS_ALL, MODEL_SPLIT_SIZE); }
TEST(fold_sampled_stacks) { fold_often(4, 200000, MT_STACKS_SAMPLE, MODEL_SPLIT_NONE); }

/* Whenever it is killed the trace is whole, and what it left behind is cleared away by the next one. */
TEST(fold_killed_anywhere)
{
	struct program *g = make(5, 300000, MT_STACKS_ALL);
	struct view before = look(g, MODEL_SPLIT_NONE);
	char path[256];
	for (unsigned i = 0; i < 25 && !test_failures; i++) {
		near_limit(g);
		pid_t pid = start(g);
		usleep(1000 + i * i * 200);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		struct view after = look(g, MODEL_SPLIT_NONE);
		same(&before, &after);
		forget(after);
	}
	fold(g);
	synth_path(&g->s, "4194000-0.trace.fold", path);
	CHECK(access(path, F_OK) != 0);
	forget(before);
	drop(g);
}

TEST_MAIN
