/* Folding: what a model says of a trace is the same before and after the recorder folded it, again and again, also when
 * it is killed at any moment. The recorder itself does it, on finished traces of random programs that reach their
 * limit. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "analyzer/model/pool_layout.h"
#include "analyzer/model/model.h"
#include "analyzer/recorder/recorder.h"
#include "tests/lib/synth.h"
#include "tests/unit/test.h"

#define PID   4194000u
#define RINGS 3
#define NODES 40

enum { SLOTS = 20000, FORKS = 3, ADDRESSES = 60000, DEVICES = 2, SEGMENTS = 12, BLOCKS = 24, RAWS = 16, VIEWS = 12 };

#define MIB (1ull << 20)

/* ---- a random program ------------------------------------------------------------------------------------ */

struct program {
	struct synth s;
	struct synth_process *p;
	uint64_t random, ticks;
	uint32_t nodes[NODES];
	struct {
		uint64_t addr, size;
	} live[SLOTS];             /* some place of many */
	uint64_t spare[ADDRESSES]; /* freed addresses, which come again */
	size_t spares;
	uint64_t next_addr;
	uint32_t owner[RINGS];
	/* devices: some of what each has, by place */
	struct segment {
		uint64_t addr;
		bool mapped;
		uint32_t blocks;
		uint64_t size[BLOCKS];
	} segments[DEVICES][SEGMENTS];
	struct {
		uint64_t addr, size;
	} raw[RAWS]; /* even ones linear, odd ones pinned */
	struct {
		uint64_t addr, size;
	} views[VIEWS]; /* mappings */
	uint64_t handles;
	bool gpu;
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
	if (rnd(g, 20) == 0)
		synth_ext(g->p, ring,
			  (struct mt_event){
				  .ticks = g->ticks, .addr = addr, .kind = MT_MARK, .node = g->nodes[rnd(g, NODES)] },
			  (struct mt_ext_device){ .class = MT_MARK_OWNER });
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

/* ---- its devices ----------------------------------------------------------------------------------------- */

static uint32_t node_of(struct program *g)
{
	return g->nodes[rnd(g, NODES)];
}

static uint64_t segment_addr(unsigned device, unsigned i)
{
	return 0x100000000000ull * (1 + device) + 64 * MIB * i;
}

static void dev(struct program *g, uint32_t ring, enum mt_kind kind, enum mt_class class, unsigned device,
		uint64_t addr, uint64_t size)
{
	synth_dev(g->p, ring, g->ticks, kind, class, device + 1, addr, size,
		  kind == MT_DEVICE_ALLOC || kind == MT_DEVICE_FAIL ? node_of(g) : 0);
}

/* Every third one is physical memory that is mapped. */
static void new_segment(struct program *g, struct segment *s, unsigned device, unsigned i, uint32_t ring)
{
	*s = (struct segment){ .addr = segment_addr(device, i), .mapped = i % 3 == 2 };
	if (!s->mapped) {
		dev(g, ring, MT_DEVICE_ALLOC, MT_CLASS_DEVICE, device, s->addr, 48 * MIB);
		return;
	}
	dev(g, ring, MT_DEVICE_ALLOC, MT_CLASS_PHYSICAL, device, ++g->handles, 48 * MIB);
	synth_dev_map(g->p, ring, g->ticks, device + 1, s->addr, 48 * MIB, g->handles);
	dev(g, ring, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, device, g->handles, 0);
}

static void old_segment(struct program *g, struct segment *s, unsigned device, uint32_t ring)
{
	if (s->mapped)
		dev(g, ring, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, device, s->addr, 48 * MIB);
	else
		dev(g, ring, MT_DEVICE_FREE, MT_CLASS_DEVICE, device, s->addr, 0);
	s->addr = 0;
}

/* Blocks of the pool come and go; the latest most of all. */
static void pool_block(struct program *g, unsigned device, uint32_t ring)
{
	unsigned i = (unsigned)(rnd(g, 3) ? rnd(g, 2) : rnd(g, SEGMENTS)),
		 k = (unsigned)(rnd(g, 4) ? rnd(g, 4) : rnd(g, BLOCKS));
	struct segment *s = &g->segments[device][i];
	uint64_t addr = segment_addr(device, i) + k * 2 * MIB;
	if (!s->addr) {
		new_segment(g, s, device, i, ring);
	} else if (s->size[k]) {
		dev(g, ring, MT_DEVICE_FREE, MT_CLASS_POOL, rnd(g, 50) ? device : UINT32_MAX, addr, 0);
		s->size[k] = 0;
		s->blocks--;
	} else if (!s->blocks && i > 3 && !rnd(g, 3)) {
		old_segment(g, s, device, ring);
	} else {
		s->size[k] = 512 * (1 + rnd(g, rnd(g, 20) ? 100 : 4096));
		s->blocks++;
		dev(g, ring, MT_DEVICE_ALLOC, MT_CLASS_POOL, device, addr, s->size[k]);
	}
}

static void raw_block(struct program *g, uint32_t ring)
{
	unsigned i = (unsigned)rnd(g, RAWS), device = i / 2 % DEVICES, other = rnd(g, 5) ? device : 1 - device;
	enum mt_class class = i % 2 ? MT_CLASS_PINNED : MT_CLASS_DEVICE;
	if (g->raw[i].addr) {
		dev(g, ring, MT_DEVICE_FREE, class, other, g->raw[i].addr, 0);
		if (!rnd(g, 30))
			dev(g, ring, MT_DEVICE_UNDO, class, other, g->raw[i].addr, 0);
		else
			g->raw[i].addr = 0;
		return;
	}
	g->raw[i].size = 1 + rnd(g, 3 * MIB);
	g->raw[i].addr = 0x700000000000ull + i * 4 * MIB;
	dev(g, ring, MT_DEVICE_ALLOC, class, device, g->raw[i].addr, g->raw[i].size);
}

static void selection(struct program *g, uint32_t ring)
{
	unsigned i = (unsigned)rnd(g, VIEWS);
	uint64_t addr = 0x7e0000000000ull + i * 64 * MIB;
	struct mt_ext_map ext = { .prot = rnd(g, 9) ? 3 : 0,
				  .flags = (i % 3 ? MT_MAP_ANON : 0) | (i % 5 ? 0 : MT_MAP_ARENA) |
					   (rnd(g, 20) ? 0 : MT_MAP_FIXED) };
	if (!g->views[i].addr) {
		g->views[i].addr = addr;
		g->views[i].size = 4096 * (1 + rnd(g, 1000)) - rnd(g, 2);
		synth_map(g->p, ring, g->ticks, addr, g->views[i].size, ext, node_of(g));
	} else if (!rnd(g, 10)) { /* something of it changes in place */
		uint64_t at = rnd(g, 3) ? 0 : 4096, protect = rnd(g, 3);
		ext = (struct mt_ext_map){ .prot = protect && rnd(g, 2) ? 0 : 3,
					   .flags = MT_MAP_ANON | MT_MAP_FIXED |
						    (protect ? MT_MAP_PROTECT : MT_MAP_GIVEN) };
		synth_map(g->p, ring, g->ticks, addr + at, g->views[i].size > at ? g->views[i].size - at : 4096, ext,
			  node_of(g));
	} else if (!rnd(g, 20)) { /* a part of it */
		synth_unmap(g->p, ring, g->ticks, addr, 4096);
	} else {
		synth_unmap(g->p, ring, g->ticks, addr, rnd(g, 5) ? g->views[i].size : 0);
		if (!rnd(g, 30))
			synth_plain(g->p, ring, g->ticks, MT_UNDO, addr);
		else
			g->views[i].addr = 0;
	}
}

/* The driver refuses; sometimes the pool gives up, or tries again with success. */
static void refuse(struct program *g, unsigned device, uint32_t ring)
{
	uint64_t bytes = MIB * (1 + rnd(g, 4));
	synth_dev_info(g->p, ring, g->ticks, device + 1, MIB, 1024 * MIB);
	dev(g, ring, MT_DEVICE_FAIL, MT_CLASS_DEVICE, device, bytes, 0);
	if (rnd(g, 2))
		dev(g, ring, MT_DEVICE_FAIL, MT_CLASS_POOL, device, bytes, 0);
}

static void on_devices(struct program *g, uint32_t ring)
{
	unsigned device = (unsigned)(rnd(g, 4) == 0);
	if (rnd(g, 12))
		pool_block(g, device, ring);
	else if (rnd(g, 3))
		raw_block(g, ring);
	else
		selection(g, ring);
	if (!rnd(g, 20000))
		refuse(g, device, ring);
	if (!rnd(g, 60000)) {
		dev(g, ring, MT_DEVICE_RESET, MT_CLASS_DEVICE, 1, 0, 0);
		memset(g->segments[1], 0, sizeof(g->segments[1]));
	}
}

/* Most blocks live short, few long; what is alive goes up and down. */
static void one(struct program *g, size_t count, size_t slots)
{
	uint32_t ring = (uint32_t)rnd(g, RINGS);
	if (g->gpu && rnd(g, 3)) {
		g->ticks += 1 + rnd(g, 500);
		on_devices(g, ring);
		return;
	}
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
		synth_map(g->p, ring, g->ticks, 0x7f0000000000 + rnd(g, 1000) * 4096, 4096,
			  (struct mt_ext_map){ .prot = 3, .flags = MT_MAP_ANON }, g->nodes[rnd(g, NODES)]);
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

static struct program *make(uint64_t seed, size_t slots, enum mt_stacks stacks, bool gpu)
{
	struct program *g = calloc(1, sizeof(*g));
	g->random = seed;
	g->gpu = gpu;
	g->ticks = SYNTH_START;
	g->next_addr = 0x10000;
	synth_begin(&g->s);
	g->p = synth_process(&g->s, PID, 0);
	g->p->info.stacks = stacks;
	g->p->info.sample_bytes = 1000;
	g->p->block_slots = 2500;
	for (uint32_t i = 0; gpu && i < DEVICES; i++)
		synth_device(g->p, i + 1, MT_BACKEND_CUDA, i ? "GPU-b" : "GPU-a", 1024 * MIB);
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
	synth_save_session(&g->s);
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

struct selection {
	struct reader *r;
	struct model *m;
};

static struct selection look_until(const struct program *g, enum model_split split, uint64_t event)
{
	struct selection v = { 0 };
	const char *dir = g->s.dir;
	const struct model_query q = {
		.until_ns = UINT64_MAX, .split = split, .keep_blocks = true, .until_event = event
	};
	CHECK_EQ(reader_open(&v.r, &dir, 1, 0), 0);
	CHECK_EQ(v.r ? model_run(&v.m, v.r, &q) : -1, 0);
	if (!v.r || !v.m)
		abort();
	CHECK(reader_complete(v.r));
	return v;
}

static struct selection look(const struct program *g, enum model_split split)
{
	return look_until(g, split, 0);
}

static void forget(struct selection v)
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
	CHECK_EQ(b->trials, a->trials);
	CHECK_EQ(b->inherited_bytes, a->inherited_bytes);
	CHECK_EQ(b->inherited_blocks, a->inherited_blocks);
	CHECK_EQ(b->missed_frees, a->missed_frees);
	CHECK_EQ(b->unknown_frees, a->unknown_frees);
}

static const struct model_site *find(const struct model_process *p, const struct model_site *s)
{
	for (uint32_t i = 0; i < p->site_count; i++) {
		const struct model_site *t = &p->sites[i];
		if (t->node == s->node && t->node2 == s->node2 && t->kind == s->kind && t->device == s->device &&
		    t->split == s->split && t->sampled == s->sampled)
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

struct blocks {
	uint64_t count, sum;
};

static int add_block(void *arg, const struct model_block *b)
{
	struct blocks *all = arg;
	all->count++;
	all->sum += (b->addr * 3 + b->size * 5 + b->ns * 7 + b->thread) * 0x9E3779B97F4A7C15ull;
	return 0;
}

/* No moment of a folded trace has more alive than there was, or less than it admits. */
static void same_course(const struct model_series *x, const struct model_series *y, uint64_t most)
{
	CHECK_EQ(y->count, x->count);
	for (uint32_t i = 0; i < x->count && i < y->count; i++) {
		CHECK(y->buckets[i].high <= x->buckets[i].high);
		CHECK(y->buckets[i].high + most >= x->buckets[i].high);
		CHECK(y->buckets[i].low <= x->buckets[i].low);
		CHECK(y->buckets[i].low + most >= x->buckets[i].low);
	}
}

enum { AROUND = 6 };

/* Lowest and highest value in AROUND buckets on both sides of one. */
static struct model_bucket around(const struct model_series *s, uint32_t i)
{
	struct model_bucket b = s->buckets[i];
	for (uint32_t k = i - AROUND; k <= i + AROUND; k++) {
		b.low = s->buckets[k].low < b.low ? s->buckets[k].low : b.low;
		b.high = s->buckets[k].high > b.high ? s->buckets[k].high : b.high;
	}
	return b;
}

/* All points of a pool are told, though somewhat later. */
static void same_points(const struct model_series *x, const struct model_series *y)
{
	CHECK_EQ(y->count, x->count);
	for (uint32_t i = AROUND; i + AROUND < x->count && i + AROUND < y->count; i++) {
		struct model_bucket was = around(x, i), is = around(y, i);
		CHECK(y->buckets[i].low >= was.low && y->buckets[i].high <= was.high);
		CHECK(x->buckets[i].low >= is.low && x->buckets[i].high <= is.high);
	}
}

static void same_layout(const struct pool_layout *a, const struct pool_layout *b)
{
	CHECK_EQ(!b, !a);
	if (!a || !b)
		return;
	CHECK_EQ(b->allocated, a->allocated);
	CHECK_EQ(b->reserved, a->reserved);
	CHECK_EQ(b->idle, a->idle);
	CHECK_EQ(b->stray, a->stray);
	CHECK_EQ(b->largest_hole, a->largest_hole);
	CHECK_EQ(b->segment_count, a->segment_count);
	CHECK_EQ(b->block_count, a->block_count);
	for (size_t i = 0; i < a->block_count && i < b->block_count; i++)
		CHECK(a->blocks[i].addr == b->blocks[i].addr && a->blocks[i].size == b->blocks[i].size &&
		      a->blocks[i].ns == b->blocks[i].ns);
}

static void same_moment(const struct model_moment *a, const struct model_moment *b)
{
	CHECK_EQ(b->ns, a->ns);
	CHECK_EQ(b->free_bytes, a->free_bytes);
	CHECK(!memcmp(a->layer, b->layer, sizeof(a->layer)));
	CHECK_EQ(b->part_count, a->part_count);
	CHECK_EQ(b->outside_count, a->outside_count);
	for (unsigned i = 0; i < a->outside_count && i < b->outside_count; i++)
		CHECK_EQ(b->outside[i].bytes, a->outside[i].bytes);
}

static void same_oom(const struct model_oom *a, const struct model_oom *b)
{
	CHECK_EQ(b->pool, a->pool);
	CHECK_EQ(b->refusal_count, a->refusal_count);
	CHECK_EQ(b->retries, a->retries);
	CHECK_EQ(b->outcome, a->outcome);
	CHECK_EQ(b->allocated_bytes, a->allocated_bytes);
	CHECK_EQ(b->reserved_bytes, a->reserved_bytes);
	CHECK_EQ(b->largest_hole_bytes, a->largest_hole_bytes);
	CHECK_EQ(b->whole_free_bytes, a->whole_free_bytes);
	CHECK_EQ(b->limit_bytes, a->limit_bytes);
	same_moment(&a->at, &b->at);
	same_layout(a->layout, b->layout);
}

static void same_devices(const struct selection *before, const struct selection *after)
{
	CHECK_EQ(model_devices(after->m), model_devices(before->m));
	for (unsigned i = 0; i < model_devices(before->m) && i < model_devices(after->m); i++) {
		const struct model_device *a = model_device(before->m, i), *b = model_device(after->m, i);
		for (int k = 0; k < MODEL_LAYERS; k++)
			same_totals(&a->layer[k], &b->layer[k]);
		same_points(&a->timeline[LAYER_POOL], &b->timeline[LAYER_POOL]);
		CHECK_EQ(b->used_before, a->used_before);
		CHECK_EQ(b->retries, a->retries);
		CHECK_EQ(b->ooms, a->ooms);
		CHECK_EQ(b->oom_count, a->oom_count);
		same_moment(&a->peak, &b->peak);
		for (unsigned k = 0; k < a->oom_count && k < b->oom_count; k++)
			same_oom(&a->oom[k], &b->oom[k]);
		CHECK_EQ(b->share_count, a->share_count);
		CHECK_EQ(b->shares[0]->first_ns, a->shares[0]->first_ns);
	}
}

/* Where blocks lay at each device's peak. */
static void same_peaks(const struct program *g, const struct selection *before, const struct selection *after,
		       struct pool_layout **was)
{
	for (unsigned i = 0; i < model_devices(after->m) && model_device(after->m, i)->peak.event; i++) {
		struct selection v = look_until(g, MODEL_SPLIT_NONE, model_device(after->m, i)->peak.event);
		struct pool_layout *l = NULL;
		CHECK_EQ(pool_layout_take(&l, v.m, i, UINT32_MAX), 0);
		if (before)
			same_layout(was[i], l);
		pool_layout_free(before ? l : was[i]);
		if (!before)
			was[i] = l;
		forget(v);
	}
}

static void same(const struct selection *before, const struct selection *after)
{
	same_devices(before, after);
	for (unsigned id = 0; id < reader_processes(before->r); id++) {
		const struct model_process *a = model_process(before->m, id), *b = model_process(after->m, id);
		struct blocks x = { 0 }, y = { 0 };
		for (int k = 0; k < MODEL_KINDS; k++) {
			same_totals(&a->kind[k], &b->kind[k]);
			if (k != MODEL_POOL)
				same_course(&a->timeline[k], &b->timeline[k],
					    k == MODEL_HEAP ? b->fold.most_bytes : b->fold.most_other_bytes);
		}
		CHECK(!memcmp(a->map, b->map, sizeof(a->map)));
		CHECK_EQ(b->map_given_bytes, a->map_given_bytes);
		same_sites(a, b);
		CHECK(!memcmp(a->bins, b->bins, sizeof(a->bins)));
		CHECK_EQ(b->events, a->events);
		CHECK_EQ(b->odd_undos, a->odd_undos);
		for (int k = 0; k < MODEL_KINDS; k++) {
			model_each_block(before->m, id, (enum model_kind)k, add_block, &x);
			model_each_block(after->m, id, (enum model_kind)k, add_block, &y);
		}
		CHECK_EQ(y.count, x.count);
		CHECK_EQ(y.sum, x.sum);
	}
}

/* ---- tests ----------------------------------------------------------------------------------------------- */

#define FEW (SANITIZED || !getenv("LONG"))
enum { TIMES = 4 };

static void fold_often(uint64_t seed, size_t slots, enum mt_stacks stacks, enum model_split split, bool gpu)
{
	slots /= FEW ? 4 : 1;
	struct program *g = make(seed, slots, stacks, gpu);
	struct selection before = look(g, split);
	struct pool_layout *peaks[DEVICES] = { NULL };
	same_peaks(g, NULL, &before, peaks);
	uint64_t first = trace_bytes(g), folded = 0;
	for (int i = 0; i < TIMES && !test_failures; i++) {
		uint64_t bytes = trace_bytes(g);
		fold(g);
		CHECK(trace_bytes(g) <= bytes);
		struct selection after = look(g, split);
		same(&before, &after);
		same_peaks(g, &before, &after, peaks);
		CHECK(model_process(after.m, 0)->fold.blocks >= folded);
		folded = model_process(after.m, 0)->fold.blocks;
		forget(after);
	}
	CHECK(folded > slots / 10);
	CHECK(trace_bytes(g) < first / (stacks == MT_STACKS_SAMPLE || gpu ? 1 : 2));
	for (int i = 0; i < DEVICES; i++)
		pool_layout_free(peaks[i]);
	forget(before);
	drop(g);
}

TEST(fold_and_the_model_says_the_same)
{
	fold_often(1, 300000, MT_STACKS_ALL, MODEL_SPLIT_NONE, false);
}
TEST(fold_by_thread)
{
	fold_often(2, 200000, MT_STACKS_ALL, MODEL_SPLIT_THREAD, false);
}
TEST(fold_by_size)
{
	fold_often(3, 200000, MT_STACKS_ALL, MODEL_SPLIT_SIZE, false);
}
TEST(fold_sampled_stacks)
{
	fold_often(4, 200000, MT_STACKS_SAMPLE, MODEL_SPLIT_NONE, false);
}
TEST(fold_devices)
{
	fold_often(6, 400000, MT_STACKS_ALL, MODEL_SPLIT_NONE, true);
}
TEST(fold_devices_by_thread)
{
	fold_often(7, 300000, MT_STACKS_ALL, MODEL_SPLIT_THREAD, true);
}
TEST(fold_devices_by_size)
{
	fold_often(8, 300000, MT_STACKS_ALL, MODEL_SPLIT_SIZE, true);
}

/* Whenever it is killed the trace is whole, and what it left behind is cleared away by the next one. */
TEST(fold_killed_anywhere)
{
	struct program *g = make(5, 300000, MT_STACKS_ALL, true);
	struct selection before = look(g, MODEL_SPLIT_NONE);
	char path[256];
	for (unsigned i = 0; i < 25 && !test_failures; i += FEW ? 4 : 1) {
		near_limit(g);
		pid_t pid = start(g);
		usleep(1000 + i * i * 200);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		struct selection after = look(g, MODEL_SPLIT_NONE);
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
