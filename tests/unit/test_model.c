/* The model against a naive one: random streams are written as traces, and every figure is computed a second time in
 * the simplest way that could be right. */
#include "analyzer/model/model.h"
#include "tests/lib/synth.h"
#include "tests/unit/random.h"
#include "tests/unit/test.h"

enum { PROCESSES = 4, RINGS = 3, SITES = 12, ADDRESSES = 40, PAGES = 48, OPS = 1500 };

#define PAGE 4096ull

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	return (uint32_t)(random_next(&seed) >> 20) % n;
}

/* ---- the naive model ------------------------------------------------------------------------------------- */

struct n_block {
	uint64_t size;
	uint32_t node, thread;
	bool live, inherited;
	uint64_t born;
};
struct n_site {
	uint64_t allocations, allocated, live, blocks, temporary;
};
struct n_snapshot {
	uint64_t live, blocks;
};

struct n_process {
	struct synth_process *synth;
	int model_id;
	bool started, ended;
	struct n_block heap[ADDRESSES];
	uint32_t page[PAGES]; /* mapping that has it; 0 = none */
	struct model_totals kind[MODEL_KINDS];
	struct n_site site[MODEL_KINDS][SITES];
	struct n_snapshot peak[MODEL_KINDS][SITES], host_peak[MODEL_KINDS][SITES];
	uint64_t class_bytes[MAP_CLASSES];
	uint64_t given;
	uint64_t bins[MODEL_BINS];
	uint32_t owner[RINGS];
	uint32_t threads;
	uint64_t last[MODEL_KINDS][64]; /* by thread: address index + 1 of its latest allocation */
};

/* origin: the call that gave it; 0 = none */
struct n_mapping {
	uint32_t node, thread, class, usable;
	bool inherited;
	uint32_t origin;
};

struct naive {
	struct synth synth;
	struct n_process p[PROCESSES];
	int count;
	uint64_t now, sum[MODEL_KINDS], sum_blocks[MODEL_KINDS], sum_peak[MODEL_KINDS], sum_peak_ns[MODEL_KINDS];
	struct n_mapping *mappings;
	size_t mapping_count, mapping_room;
};

static uint64_t address(int i)
{
	return 0x10000 + 64ull * (uint64_t)i;
}
static uint64_t page_address(int i)
{
	return 0x7f0000000000ull + PAGE * (uint64_t)i;
}

static uint64_t mapped_bytes(const struct naive *n, const struct n_process *p, bool inherited, int class)
{
	uint64_t bytes = 0;
	for (int i = 0; i < PAGES; i++) {
		const struct n_mapping *m = &n->mappings[p->page[i]];
		if (p->page[i] && m->inherited == inherited &&
		    (class < 0 ? map_class_counts(m->class) : m->class == (uint32_t)class))
			bytes += PAGE;
	}
	return bytes;
}

/* Runs of pages of one mapping, of one site or (node 0) of all. */
static uint64_t mapped_runs(const struct naive *n, const struct n_process *p, bool inherited, uint32_t node)
{
	uint64_t runs = 0;
	for (int i = 0; i < PAGES; i++) {
		const struct n_mapping *m = &n->mappings[p->page[i]];
		bool starts = p->page[i] && (!i || p->page[i - 1] != p->page[i]);
		runs += starts && m->inherited == inherited && map_class_counts(m->class) && (!node || m->node == node);
	}
	return runs;
}

/* Everything live is counted anew after each operation. */
static void recount_maps(const struct naive *n, struct n_process *p)
{
	struct model_totals *t = &p->kind[MODEL_MAP];
	t->live_bytes = mapped_bytes(n, p, false, -1);
	t->live_blocks = mapped_runs(n, p, false, 0);
	t->inherited_bytes = mapped_bytes(n, p, true, -1);
	t->inherited_blocks = mapped_runs(n, p, true, 0);
	for (int c = 0; c < MAP_CLASSES; c++)
		p->class_bytes[c] = mapped_bytes(n, p, false, c);
	for (uint32_t s = 1; s < SITES; s++) {
		p->site[MODEL_MAP][s].blocks = mapped_runs(n, p, false, s);
		p->site[MODEL_MAP][s].live = 0;
	}
	for (int i = 0; i < PAGES; i++) {
		const struct n_mapping *m = &n->mappings[p->page[i]];
		if (p->page[i] && !m->inherited && map_class_counts(m->class))
			p->site[MODEL_MAP][m->node].live += PAGE;
	}
}

static void recount_heap(struct n_process *p)
{
	struct model_totals *t = &p->kind[MODEL_HEAP];
	t->live_bytes = t->live_blocks = t->inherited_bytes = t->inherited_blocks = 0;
	for (int s = 0; s < SITES; s++)
		p->site[MODEL_HEAP][s].live = p->site[MODEL_HEAP][s].blocks = 0;
	for (int i = 0; i < ADDRESSES; i++) {
		const struct n_block *b = &p->heap[i];
		if (b->live && b->inherited) {
			t->inherited_bytes += b->size;
			t->inherited_blocks++;
		} else if (b->live) {
			t->live_bytes += b->size;
			t->live_blocks++;
			p->site[MODEL_HEAP][b->node].live += b->size;
			p->site[MODEL_HEAP][b->node].blocks++;
		}
	}
}

static void snapshot(struct n_process *p, int kind, struct n_snapshot to[MODEL_KINDS][SITES])
{
	for (int s = 0; s < SITES; s++)
		to[kind][s] = (struct n_snapshot){ p->site[kind][s].live, p->site[kind][s].blocks };
}

static void note_peaks(struct naive *n, struct n_process *p, int kind)
{
	struct model_totals *t = &p->kind[kind];
	if (t->live_bytes > t->peak_bytes) {
		t->peak_bytes = t->live_bytes;
		t->peak_ns = n->now - SYNTH_START;
		snapshot(p, kind, p->peak);
	}
	n->sum[kind] = 0;
	for (int i = 0; i < n->count; i++)
		n->sum[kind] += n->p[i].started && !n->p[i].ended ? n->p[i].kind[kind].live_bytes : 0;
	if (n->sum[kind] <= n->sum_peak[kind])
		return;
	n->sum_peak[kind] = n->sum[kind];
	n->sum_peak_ns[kind] = n->now - SYNTH_START;
	for (int i = 0; i < n->count; i++) {
		if (n->p[i].started && !n->p[i].ended)
			snapshot(&n->p[i], kind, n->p[i].host_peak);
		else
			memset(n->p[i].host_peak[kind], 0, sizeof(n->p[i].host_peak[kind]));
	}
}

static void settle(struct naive *n, struct n_process *p)
{
	recount_heap(p);
	recount_maps(n, p);
	note_peaks(n, p, MODEL_HEAP);
	note_peaks(n, p, MODEL_MAP);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

static unsigned bin_of(uint64_t size)
{
	unsigned b = 0;
	for (; size; size >>= 1)
		b++;
	return b;
}

static bool drop(struct n_process *p, int i)
{
	struct n_block *b = &p->heap[i];
	bool temporary = !b->inherited && p->last[MODEL_HEAP][b->thread] == (uint64_t)i + 1;
	b->live = false;
	return temporary;
}

static void op_alloc(struct naive *n, struct n_process *p, uint32_t ring, int i)
{
	uint32_t node = rnd(SITES), thread = p->owner[ring];
	uint64_t size = rnd(4) ? rnd(5000) : rnd(60) * 100000ull;
	struct model_totals *t = &p->kind[MODEL_HEAP];
	t->missed_frees += p->heap[i].live;
	p->heap[i] = (struct n_block){ size, node, thread, true, false, n->now };
	t->allocations++;
	t->allocated_bytes += size;
	p->site[MODEL_HEAP][node].allocations++;
	p->site[MODEL_HEAP][node].allocated += size;
	p->bins[bin_of(size)]++;
	p->last[MODEL_HEAP][thread] = (uint64_t)i + 1;
	synth_alloc(p->synth, ring, n->now, address(i), size, node);
}

static void op_free(struct naive *n, struct n_process *p, uint32_t ring, int i)
{
	struct model_totals *t = &p->kind[MODEL_HEAP];
	synth_plain(p->synth, ring, n->now, MT_FREE, address(i));
	if (!p->heap[i].live) {
		t->unknown_frees++;
		return;
	}
	t->frees++;
	uint32_t node = p->heap[i].node;
	if (drop(p, i)) {
		t->temporary++;
		p->site[MODEL_HEAP][node].temporary++;
	}
}

/* Whoever asked for the block is another: also at the peaks that it was a part of. */
static void move_snapshot(struct n_snapshot *to, const struct n_block *b, uint64_t peak_ns, int sign)
{
	if (b->born - SYNTH_START > peak_ns)
		return;
	to->live += (uint64_t)sign * b->size;
	to->blocks += (uint64_t)sign;
}

static void op_own(struct naive *n, struct n_process *p, uint32_t ring, int i)
{
	struct n_block *b = &p->heap[i];
	uint32_t node = rnd(SITES);
	synth_ext(p->synth, ring,
		  (struct mt_event){ .ticks = n->now, .addr = address(i), .kind = MT_MARK, .node = node },
		  (struct mt_ext_device){ .class = MT_MARK_OWNER });
	if (!b->live || b->inherited || b->node == node)
		return;
	for (int sign = -1; sign <= 1; sign += 2) {
		uint32_t of = sign < 0 ? b->node : node;
		p->site[MODEL_HEAP][of].allocations += sign > 0;
		move_snapshot(&p->peak[MODEL_HEAP][of], b, p->kind[MODEL_HEAP].peak_ns, sign);
		move_snapshot(&p->host_peak[MODEL_HEAP][of], b, n->sum_peak_ns[MODEL_HEAP], sign);
	}
	b->node = node;
}

/* A realloc that fails: nothing changes but the failure. What other rings do in between is another operation's. */
static void op_failed_realloc(struct naive *n, struct n_process *p, uint32_t ring, int i)
{
	synth_plain(p->synth, ring, n->now, MT_FREE, address(i));
	if (rnd(2)) {
		n->now += 10;
		synth_fail(p->synth, ring, n->now, 1ull << 60, 3);
		p->kind[MODEL_HEAP].failed++;
		p->kind[MODEL_HEAP].failed_bytes_max = 1ull << 60;
	}
	n->now += 10;
	synth_plain(p->synth, ring, n->now, MT_UNDO, address(i));
}

static void op_thread(struct naive *n, struct n_process *p, uint32_t ring)
{
	p->owner[ring] = p->threads++ % 64;
	synth_plain(p->synth, ring, n->now, MT_THREAD, p->owner[ring]);
}

static uint32_t new_mapping(struct naive *n, struct n_mapping m)
{
	n->mappings = synth_grow(n->mappings, &n->mapping_room, n->mapping_count + 1, sizeof(m));
	n->mappings[n->mapping_count] = m;
	return (uint32_t)n->mapping_count++;
}

static bool is_left(const struct naive *n, const struct n_process *p, uint32_t origin)
{
	for (int i = 0; i < PAGES; i++)
		if (p->page[i] && n->mappings[p->page[i]].origin == origin)
			return true;
	return false;
}

/* Of what calls gave before, how much nothing is left of. */
static uint64_t origins_gone(const struct naive *n, const struct n_process *p, const uint32_t *before)
{
	uint64_t gone = 0;
	for (int i = 0; i < PAGES; i++) {
		uint32_t origin = before[i] ? n->mappings[before[i]].origin : 0;
		bool first = origin != 0;
		for (int k = 0; k < i; k++)
			first &= !before[k] || n->mappings[before[k]].origin != origin;
		gone += first && !is_left(n, p, origin);
	}
	return gone;
}

static const struct mt_ext_map exts[] = {
	[MAP_ANON] = { .prot = 3, .flags = MT_MAP_ANON },
	[MAP_FILE] = { .prot = 1 },
	[MAP_MEMFD] = { .prot = 3, .flags = MT_MAP_SHARED | MT_MAP_MEMFD },
	[MAP_SHARED] = { .prot = 3, .flags = MT_MAP_ANON | MT_MAP_SHARED },
	[MAP_ARENA] = { .prot = 3, .flags = MT_MAP_ANON | MT_MAP_ARENA },
	[MAP_RESERVED] = { .prot = 0, .flags = MT_MAP_ANON },
};

static uint64_t runs_in(const struct n_process *p, int from, int to)
{
	uint64_t runs = 0;
	for (int i = from; i < to; i++)
		runs += p->page[i] && (i == from || p->page[i - 1] != p->page[i]);
	return runs;
}

static void put_mapping(struct naive *n, struct n_process *p, int from, int pages, uint32_t id,
			const struct mt_ext_map *ext, uint32_t ring, uint32_t node, uint32_t thread)
{
	struct model_totals *t = &p->kind[MODEL_MAP];
	const struct n_mapping *m = &n->mappings[id];
	uint64_t bytes = map_class_counts(m->class) ? PAGE * (uint64_t)pages : 0;
	if (!(ext->flags & MT_MAP_FIXED))
		t->missed_frees += runs_in(p, from, from + pages);
	n->mappings[id].origin = id;
	for (int i = from; i < from + pages; i++)
		p->page[i] = id;
	t->allocations++;
	t->allocated_bytes += bytes;
	p->site[MODEL_MAP][m->node].allocations++;
	p->site[MODEL_MAP][m->node].allocated += bytes;
	p->last[MODEL_MAP][thread] = (uint64_t)from + 1;
	synth_map(p->synth, ring, n->now, page_address(from), PAGE * (uint64_t)pages, *ext, node);
}

static void op_map(struct naive *n, struct n_process *p, uint32_t ring, int from, int pages)
{
	uint32_t class = rnd(MAP_CLASSES), node = 1 + rnd(SITES - 1), thread = p->owner[ring];
	struct mt_ext_map ext = exts[class];
	ext.flags |= rnd(2) ? MT_MAP_FIXED : 0;
	put_mapping(n, p, from, pages,
		    new_mapping(n, (struct n_mapping){ node, thread, class, class == MAP_RESERVED ? MAP_ANON : class,
						       false, 0 }),
		    &ext, ring, node, thread);
}

static uint64_t map_temporaries(const struct naive *n, const struct n_process *p, int from, int to)
{
	uint64_t count = 0;
	for (int i = from; i < to; i++) {
		const struct n_mapping *m = &n->mappings[p->page[i]];
		bool starts = p->page[i] && (!i || p->page[i - 1] != p->page[i]);
		int end = i;
		while (end < PAGES && p->page[end] == p->page[i])
			end++;
		count += starts && end <= to && !m->inherited && p->last[MODEL_MAP][m->thread] == (uint64_t)i + 1;
	}
	return count;
}

static void op_unmap(struct naive *n, struct n_process *p, uint32_t ring, int from, int pages)
{
	struct model_totals *t = &p->kind[MODEL_MAP];
	bool any = runs_in(p, from, from + pages) > 0;
	uint32_t before[PAGES];
	memcpy(before, p->page, sizeof(before));
	t->unknown_frees += !any;
	t->temporary += map_temporaries(n, p, from, from + pages);
	for (int i = from; i < from + pages; i++) {
		p->page[i] = 0;
	}
	t->frees += origins_gone(n, p, before);
	synth_unmap(p->synth, ring, n->now, page_address(from), PAGE * (uint64_t)pages);
}

static void op_failed_unmap(struct naive *n, struct n_process *p, uint32_t ring, int from, int pages)
{
	synth_unmap(p->synth, ring, n->now, page_address(from), PAGE * (uint64_t)pages);
	n->now += 10;
	synth_plain(p->synth, ring, n->now, MT_UNDO, page_address(from));
}

/* Unmaps a whole mapping's run and maps it elsewhere, larger or smaller, with what it was. */
static void op_move(struct naive *n, struct n_process *p, uint32_t ring, int from, int to, int pages)
{
	uint32_t id = p->page[from], thread = p->owner[ring], node = 1 + rnd(SITES - 1);
	int end = from;
	if (!id || (from && p->page[from - 1] == id))
		return;
	while (end < PAGES && p->page[end] == id)
		end++;
	struct n_mapping moved = n->mappings[id];
	op_unmap(n, p, ring, from, end - from);
	settle(n, p);
	n->now += 10;
	if (moved.inherited)
		moved.node = node;
	moved.inherited = false;
	moved.thread = thread;
	struct mt_ext_map ext = { .old = page_address(from), .flags = MT_MAP_MOVED | MT_MAP_FIXED };
	put_mapping(n, p, to, pages, new_mapping(n, moved), &ext, ring, node, thread);
}

/* Pages that change between usable and not: each run of one mapping becomes one of its own. */
static void op_protect(struct naive *n, struct n_process *p, uint32_t ring, int from, int pages)
{
	struct model_totals *t = &p->kind[MODEL_MAP];
	uint32_t node = 1 + rnd(SITES - 1), thread = p->owner[ring], before = 0, id = 0;
	struct mt_ext_map ext = { .prot = rnd(2) ? 0 : 1 + rnd(7),
				  .flags = MT_MAP_ANON | MT_MAP_FIXED | MT_MAP_PROTECT };
	uint64_t turned = 0;
	uint32_t pages_before[PAGES], origin = 0;
	memcpy(pages_before, p->page, sizeof(pages_before));
	for (int i = from; i < from + pages; i++) {
		uint32_t old = p->page[i];
		if (!old || (n->mappings[old].class == MAP_RESERVED) != (ext.prot != 0)) {
			before = 0;
			continue;
		}
		if (old != before) {
			struct n_mapping m = n->mappings[old];
			m.class = ext.prot ? m.usable : MAP_RESERVED;
			if (ext.prot)
				m = (struct n_mapping){ node, thread, m.class, m.usable, false, 0 };
			id = new_mapping(n, m);
			origin = origin ? origin : id;
			n->mappings[id].origin = ext.prot ? origin : 0;
		}
		before = old;
		p->page[i] = id;
		turned += map_class_counts(n->mappings[id].usable) ? PAGE : 0;
	}
	t->frees += ext.prot ? 0 : origins_gone(n, p, pages_before);
	if (turned && ext.prot) {
		t->allocations++;
		t->allocated_bytes += turned;
		p->site[MODEL_MAP][node].allocations++;
		p->site[MODEL_MAP][node].allocated += turned;
	}
	synth_map(p->synth, ring, n->now, page_address(from), PAGE * (uint64_t)pages, ext, node);
}

/* What madvise gives back stays. */
static void op_give(struct naive *n, struct n_process *p, uint32_t ring, int from, int pages)
{
	struct mt_ext_map ext = { .prot = 3, .flags = MT_MAP_ANON | MT_MAP_FIXED | MT_MAP_GIVEN };
	for (int i = from; i < from + pages; i++)
		p->given += p->page[i] && map_class_counts(n->mappings[p->page[i]].class) ? PAGE : 0;
	synth_map(p->synth, ring, n->now, page_address(from), PAGE * (uint64_t)pages, ext, 1 + rnd(SITES - 1));
}

static void op(struct naive *n, struct n_process *p)
{
	uint32_t ring = rnd(RINGS);
	int i = (int)rnd(ADDRESSES), from = (int)rnd(PAGES - 9), pages = 1 + (int)rnd(8);
	n->now += 10 + rnd(100) * (rnd(50) ? 1 : 100000);
	switch (rnd(25)) {
	case 23:
	case 24:
		op_own(n, p, ring, i);
		break;
	case 20:
	case 21:
		op_protect(n, p, ring, from, pages);
		break;
	case 22:
		op_give(n, p, ring, from, pages);
		break;
	case 0:
		op_thread(n, p, ring);
		break;
	case 1:
		op_failed_realloc(n, p, ring, i);
		break;
	case 2:
	case 3:
	case 4:
		op_map(n, p, ring, from, pages);
		break;
	case 5:
	case 6:
		op_unmap(n, p, ring, from, pages);
		break;
	case 7:
		op_failed_unmap(n, p, ring, from, pages);
		break;
	case 8:
		op_move(n, p, ring, from, (int)rnd(PAGES - 9), pages);
		break;
	case 9:
	case 10:
	case 11:
	case 12:
	case 13:
		op_alloc(n, p, ring, i);
		break;
	default:
		op_free(n, p, ring, i);
		break;
	}
	settle(n, p);
}

/* ---- processes ------------------------------------------------------------------------------------------- */

static void begin_process(struct naive *n, struct n_process *p, struct synth_process *sp)
{
	p->synth = sp;
	p->started = true;
	p->threads = RINGS;
	sp->block_slots = 50 + rnd(200);
	for (uint32_t r = 0; r < RINGS; r++) {
		p->owner[r] = r;
		n->now += 10;
		synth_plain(sp, r, n->now, MT_THREAD, r);
	}
}

static void fork_process(struct naive *n, struct n_process *parent, struct n_process *p, uint32_t pid)
{
	n->now += 1000;
	struct synth_process *sp = synth_fork(parent->synth, pid, n->now);
	n->now += 2000;
	memcpy(p->heap, parent->heap, sizeof(p->heap));
	for (int i = 0; i < ADDRESSES; i++)
		p->heap[i].inherited = true;
	uint32_t last = 0, id = 0;
	for (int i = 0; i < PAGES; i++) {
		uint32_t from = parent->page[i];
		if (from && (from != last || !i)) {
			struct n_mapping m = n->mappings[from];
			m.inherited = true;
			id = new_mapping(n, m);
		}
		p->page[i] = from ? id : 0;
		last = from;
	}
	begin_process(n, p, sp);
	settle(n, p);
}

static void end_process(struct naive *n, struct n_process *p)
{
	n->now += 1000;
	p->ended = true;
	p->synth->info.exit_kind = MT_EXIT_CODE;
	p->synth->info.exit_code = 7;
	p->synth->info.end_ticks = n->now;
	note_peaks(n, p, MODEL_HEAP);
	note_peaks(n, p, MODEL_MAP);
}

static struct naive *simulate(void)
{
	struct naive *n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	new_mapping(n, (struct n_mapping){ 0 });
	synth_begin(&n->synth);
	n->now = SYNTH_START;
	n->count = 2;
	for (int i = 0; i < 2; i++)
		begin_process(n, &n->p[i], synth_process(&n->synth, 100 + (uint32_t)i, 0));
	for (uint32_t node = 1; node < SITES; node++)
		for (int i = 0; i < 2; i++)
			synth_node(n->p[i].synth, node - 1, 0x1000 * node);
	for (int k = 0; k < OPS; k++) {
		if (k == 400 || k == 800) {
			fork_process(n, &n->p[k == 400 ? 0 : 2], &n->p[n->count], 100 + (uint32_t)n->count);
			n->count++;
		}
		if (k == 600)
			end_process(n, &n->p[1]);
		if (k == 1200)
			end_process(n, &n->p[2]);
		struct n_process *p;
		do
			p = &n->p[rnd((uint32_t)n->count)];
		while (p->ended);
		op(n, p);
	}
	for (int i = 0; i < n->count; i++)
		if (!n->p[i].ended)
			end_process(n, &n->p[i]);
	return n;
}

static void write_traces(struct naive *n)
{
	for (int i = 0; i < n->count; i++)
		synth_write(n->p[i].synth, (enum synth_form)rnd(3));
}

static void release(struct naive *n)
{
	synth_end(&n->synth);
	free(n->mappings);
	free(n);
}

/* ---- comparing ------------------------------------------------------------------------------------------- */

static void compare_totals(const struct model_totals *got, const struct model_totals *want)
{
	CHECK_EQ(got->allocations, want->allocations);
	CHECK_EQ(got->frees, want->frees);
	CHECK_EQ(got->allocated_bytes, want->allocated_bytes);
	CHECK_EQ(got->live_bytes, want->live_bytes);
	CHECK_EQ(got->live_blocks, want->live_blocks);
	CHECK_EQ(got->temporary, want->temporary);
	CHECK_EQ(got->failed, want->failed);
	CHECK_EQ(got->failed_bytes_max, want->failed_bytes_max);
	CHECK_EQ(got->missed_frees, want->missed_frees);
	CHECK_EQ(got->unknown_frees, want->unknown_frees);
	CHECK_EQ(got->inherited_bytes, want->inherited_bytes);
	CHECK_EQ(got->inherited_blocks, want->inherited_blocks);
	CHECK_EQ(got->peak_bytes, want->peak_bytes);
	CHECK_EQ(got->peak_ns, want->peak_ns);
}

static const struct model_site *find_site(const struct model_process *mp, uint32_t kind, uint32_t node)
{
	for (uint32_t i = 0; i < mp->site_count; i++)
		if (mp->sites[i].kind == kind && mp->sites[i].node == node)
			return &mp->sites[i];
	return NULL;
}

static void compare_sites(const struct model_process *mp, const struct n_process *p)
{
	static const struct model_site none;
	for (uint32_t kind = 0; kind < MODEL_KINDS; kind++)
		for (uint32_t node = 0; node < SITES; node++) {
			const struct model_site *s = find_site(mp, kind, node);
			const struct n_site *want = &p->site[kind][node];
			if (!s)
				s = &none;
			CHECK(s->allocations <= want->allocations);
			if (s->peak_blocks)
				CHECK_EQ(s->peak_blocks == s->allocations,
					 p->peak[kind][node].blocks == want->allocations);
			CHECK_EQ(s->live_bytes, want->live);
			CHECK_EQ(s->live_blocks, want->blocks);
			CHECK_EQ(s->temporary, want->temporary);
			CHECK_EQ(s->peak_bytes, p->peak[kind][node].live);
			CHECK_EQ(s->peak_blocks, p->peak[kind][node].blocks);
			CHECK_EQ(s->host_peak_bytes, p->host_peak[kind][node].live);
			CHECK_EQ(s->host_peak_blocks, p->host_peak[kind][node].blocks);
		}
}

static void compare(const struct naive *n, const struct model *m, struct reader *r)
{
	CHECK_EQ(reader_processes(r), n->count);
	for (unsigned id = 0; id < reader_processes(r); id++) {
		const struct model_process *mp = model_process(m, id);
		const struct n_process *p = &n->p[mp->process->pid - 100];
		compare_totals(&mp->kind[MODEL_HEAP], &p->kind[MODEL_HEAP]);
		compare_totals(&mp->kind[MODEL_MAP], &p->kind[MODEL_MAP]);
		compare_sites(mp, p);
		for (int c = 0; c < MAP_CLASSES; c++)
			CHECK_EQ(mp->map[c].bytes, p->class_bytes[c]);
		CHECK_EQ(mp->map_given_bytes, p->given);
		for (int b = 0; b < MODEL_BINS; b++)
			CHECK_EQ(mp->bins[b].allocations, p->bins[b]);
		CHECK_EQ(mp->odd_undos, 0);
	}
	for (int k = 0; k < MODEL_KINDS; k++) {
		struct model_totals sum = model_totals(m, (enum model_kind)k);
		CHECK_EQ(sum.peak_bytes, n->sum_peak[k]);
		CHECK_EQ(sum.peak_ns, n->sum_peak_ns[k]);
	}
}

static void check_timelines(const struct model *m, struct reader *r)
{
	for (unsigned id = 0; id < reader_processes(r); id++)
		for (int k = 0; k < MODEL_KINDS; k++) {
			const struct model_process *mp = model_process(m, id);
			const struct model_series *s = &mp->timeline[k];
			uint64_t high = 0;
			for (uint32_t i = 0; i < s->count; i++) {
				high = s->buckets[i].high > high ? s->buckets[i].high : high;
				CHECK(s->buckets[i].low <= s->buckets[i].last &&
				      s->buckets[i].last <= s->buckets[i].high);
			}
			CHECK_EQ(high, mp->kind[k].peak_bytes);
			CHECK(s->first + s->count <= MODEL_TIMELINE_BUCKETS);
			CHECK_EQ(s->count ? s->buckets[s->count - 1].last : 0, mp->kind[k].live_bytes);
		}
}

TEST(model_equals_the_naive_one)
{
	for (uint64_t round = 1; round <= 100 && !test_failures; round++) {
		seed = round * 0x9E3779B97F4A7C15ull;
		struct naive *n = simulate();
		write_traces(n);
		struct reader *r;
		struct model *m = NULL;
		struct model_query q = MODEL_QUERY_ALL;
		const char *dir = n->synth.dir;
		CHECK_EQ(reader_open(&r, &dir, 1, 0), 0);
		CHECK_EQ(r ? model_run(&m, r, &q) : -1, 0);
		if (m) {
			compare(n, m, r);
			check_timelines(m, r);
		}
		if (test_failures)
			printf("# round %" PRIu64 "\n", round);
		model_free(m);
		reader_close(r);
		release(n);
	}
}

/* ---- single facts ---------------------------------------------------------------------------------------- */

struct fixture {
	struct synth s;
	struct synth_process *p;
	struct reader *r;
	struct model *m;
};

static void fixture_begin(struct fixture *f)
{
	synth_begin(&f->s);
	f->p = synth_process(&f->s, 100, 0);
	synth_node(f->p, 0, 0x1000);
	synth_node(f->p, 0, 0x2000);
	f->r = NULL;
	f->m = NULL;
}

static const struct model_process *fixture_run(struct fixture *f, struct model_query q)
{
	const char *dir = f->s.dir;
	for (struct synth_process *p = f->s.processes; p; p = p->next)
		synth_write(p, SYNTH_RAW);
	if (reader_open(&f->r, &dir, 1, 0) || model_run(&f->m, f->r, &q))
		abort();
	return model_process(f->m, 0);
}

static void fixture_end(struct fixture *f)
{
	model_free(f->m);
	reader_close(f->r);
	synth_end(&f->s);
}

static void three_blocks(struct fixture *f)
{
	fixture_begin(f);
	synth_alloc(f->p, 0, SYNTH_START + 1000, 0x1000, 100, 1);
	synth_alloc(f->p, 0, SYNTH_START + 2000, 0x2000, 200, 2);
	synth_plain(f->p, 0, SYNTH_START + 3000, MT_FREE, 0x1000);
	synth_alloc(f->p, 0, SYNTH_START + 4000, 0x3000, 50, 1);
	synth_plain(f->p, 0, SYNTH_START + 5000, MT_FREE, 0x3000);
}

/* One call gave it, ten took it away: it was freed once. */
TEST(a_mapping_is_freed_with_its_last_piece)
{
	struct fixture f;
	fixture_begin(&f);
	synth_map(f.p, 0, SYNTH_START + 1000, page_address(0), 10 * PAGE, exts[MAP_ANON], 1);
	for (int i = 0; i < 10; i++)
		synth_unmap(f.p, 0, SYNTH_START + 2000 + (uint64_t)i, page_address(9 - i), PAGE);
	const struct model_totals *t = &fixture_run(&f, MODEL_QUERY_ALL)->kind[MODEL_MAP];
	CHECK_EQ(t->allocations, 1);
	CHECK_EQ(t->frees, 1);
	CHECK_EQ(t->unknown_frees, 0);
	CHECK_EQ(t->live_bytes, 0);
	fixture_end(&f);
}

/* What is detached has the size of what was attached there; what begins elsewhere is not that. */
TEST(an_unmapping_without_a_size_is_of_what_begins_there)
{
	struct fixture f;
	fixture_begin(&f);
	synth_map(f.p, 0, SYNTH_START + 1000, page_address(0), 10 * PAGE, exts[MAP_MEMFD], 1);
	synth_map(f.p, 0, SYNTH_START + 2000, page_address(10), 10 * PAGE, exts[MAP_MEMFD], 1);
	synth_unmap(f.p, 0, SYNTH_START + 3000, page_address(10), 0);
	synth_unmap(f.p, 0, SYNTH_START + 4000, page_address(5), 0);
	const struct model_totals *t = &fixture_run(&f, MODEL_QUERY_ALL)->kind[MODEL_MAP];
	CHECK_EQ(t->frees, 1);
	CHECK_EQ(t->unknown_frees, 1);
	CHECK_EQ(t->live_bytes, 10 * PAGE);
	fixture_end(&f);
}

/* Of the blocks before the gap so many may be gone as events were lost, the largest; of those behind it none. */
TEST(lost_events_leave_an_interval)
{
	struct fixture f;
	fixture_begin(&f);
	for (uint64_t i = 1; i <= 10; i++)
		synth_alloc(f.p, 0, SYNTH_START + 1000 * i, 0x10000 * i, 100 * i, 1);
	synth_plain(f.p, 0, SYNTH_START + 20000, MT_LOST, 3);
	synth_alloc(f.p, 0, SYNTH_START + 21000, 0x500000, 5000, 2);
	f.p->info.lost_events = 3;
	const struct model_process *mp = fixture_run(&f, MODEL_QUERY_ALL);
	const struct model_totals *t = &mp->kind[MODEL_HEAP];
	CHECK_EQ(t->live_bytes, 10500);
	CHECK_EQ(t->doubt_blocks, 3);
	CHECK_EQ(t->doubt_bytes, 1000 + 900 + 800);
	CHECK_EQ(mp->doubts[0].bytes, 2700);
	CHECK_EQ(mp->doubts[1].bytes, 0);
	CHECK_EQ(model_lost(f.m, 0), 3);
	fixture_end(&f);
}

/* What the stream does not tell of was lost at any time, to the end. */
TEST(untold_losses_reach_to_the_end)
{
	struct fixture f;
	fixture_begin(&f);
	synth_alloc(f.p, 0, SYNTH_START + 1000, 0x10000, 100, 1);
	synth_alloc(f.p, 0, SYNTH_START + 2000, 0x20000, 200, 1);
	synth_alloc(f.p, 0, SYNTH_START + 3000, 0x30000, 300, 2);
	f.p->info.lost_events = 1;
	const struct model_process *mp = fixture_run(&f, MODEL_QUERY_ALL);
	CHECK_EQ(mp->kind[MODEL_HEAP].doubt_bytes, 300);
	CHECK_EQ(mp->doubts[0].bytes, 200);
	CHECK_EQ(mp->doubts[1].bytes, 300);
	fixture_end(&f);
}

/* Newer blocks lie in an older one, and one in the newest: memory is given out once. */
TEST(blocks_that_overlap_were_freed)
{
	struct fixture f;
	fixture_begin(&f);
	synth_alloc(f.p, 0, SYNTH_START + 1000, 0x10000, 4000, 1);
	synth_alloc(f.p, 0, SYNTH_START + 2000, 0x20100, 100, 1);
	synth_alloc(f.p, 0, SYNTH_START + 2500, 0x30000, 70, 1);
	synth_plain(f.p, 0, SYNTH_START + 3000, MT_LOST, 50);
	synth_alloc(f.p, 0, SYNTH_START + 4000, 0x10010, 10, 2);
	synth_alloc(f.p, 0, SYNTH_START + 5000, 0x10020, 20, 2);
	synth_alloc(f.p, 0, SYNTH_START + 6000, 0x20000, 400, 2);
	f.p->info.lost_events = 50;
	const struct model_totals *t = &fixture_run(&f, MODEL_QUERY_ALL)->kind[MODEL_HEAP];
	CHECK_EQ(t->live_bytes, 10 + 20 + 400 + 70);
	CHECK_EQ(t->missed_frees, 2);
	CHECK_EQ(t->missed_bytes, 4100);
	CHECK_EQ(t->doubt_bytes, 70);
	fixture_end(&f);
}

TEST(until_stops_there)
{
	struct fixture f;
	three_blocks(&f);
	struct model_query q = MODEL_QUERY_ALL;
	q.until_ns = 4000;
	const struct model_process *mp = fixture_run(&f, q);
	CHECK_EQ(mp->kind[MODEL_HEAP].live_bytes, 250);
	CHECK_EQ(mp->kind[MODEL_HEAP].peak_bytes, 300);
	CHECK_EQ(mp->kind[MODEL_HEAP].frees, 1);
	CHECK_EQ(model_end_ns(f.m), 4000);
	fixture_end(&f);
}

/* Of stacks of which nothing is left, and that are not part of the latest peak, there is nothing; figures of all others
 * add up. */
TEST(sites_are_those_that_have_something)
{
	enum { OLD = 3000, PEAK = 4000, SHORT = 5000, LEFT = 100 };
	struct fixture f;
	uint64_t now = SYNTH_START, live = 0, peak = 0, blocks = 0, temporary = 0;
	fixture_begin(&f);
	for (uint32_t n = 3; n <= OLD + PEAK + SHORT; n++)
		synth_node(f.p, 0, 0x1000 * n);
	for (uint32_t n = 1; n <= OLD; n++)
		synth_alloc(f.p, 0, ++now, 0x100000 + 64ull * n, 10, n);
	for (uint32_t n = 1; n <= OLD; n++) /* the last one of them at once */
		synth_plain(f.p, 0, ++now, MT_FREE, 0x100000 + 64ull * n);
	for (uint32_t n = OLD + 1; n <= OLD + PEAK; n++)
		synth_alloc(f.p, 0, ++now, 0x100000 + 64ull * n, 20, n);
	for (uint32_t n = OLD + 1; n <= OLD + PEAK - LEFT; n++)
		synth_plain(f.p, 0, ++now, MT_FREE, 0x100000 + 64ull * n);
	for (uint32_t n = OLD + PEAK + 1; n <= OLD + PEAK + SHORT; n++) {
		synth_alloc(f.p, 0, ++now, 0x100000 + 64ull * n, 30, n);
		synth_plain(f.p, 0, ++now, MT_FREE, 0x100000 + 64ull * n);
	}
	const struct model_process *mp = fixture_run(&f, MODEL_QUERY_ALL);
	CHECK_EQ(mp->site_count, PEAK + SHORT + 1);
	for (uint32_t i = 0; i < mp->site_count; i++) {
		const struct model_site *s = &mp->sites[i];
		CHECK(i == 0 || s->number > s[-1].number);
		CHECK(model_site(f.m, 0, s->number) == s);
		live += s->live_bytes;
		peak += s->peak_bytes;
		blocks += s->host_peak_blocks;
		temporary += s->temporary;
		CHECK_EQ(mp->oldest_ns[i] != 0, s->live_blocks != 0);
	}
	CHECK_EQ(live, LEFT * 20);
	CHECK_EQ(peak, PEAK * 20);
	CHECK_EQ(blocks, PEAK);
	CHECK_EQ(temporary, SHORT + 1);
	CHECK(!model_site(f.m, 0, 0));
	fixture_end(&f);
}

TEST(from_counts_anew_and_keeps_what_is_live)
{
	struct fixture f;
	three_blocks(&f);
	struct model_query q = MODEL_QUERY_ALL;
	q.from_ns = 3500;
	const struct model_process *mp = fixture_run(&f, q);
	const struct model_totals *t = &mp->kind[MODEL_HEAP];
	CHECK_EQ(t->live_bytes, 200);
	CHECK_EQ(t->allocations, 1);
	CHECK_EQ(t->frees, 1);
	CHECK_EQ(t->temporary, 1);
	CHECK_EQ(t->peak_bytes, 250);
	CHECK_EQ(t->peak_ns, 4000);
	const struct model_site *s = find_site(mp, MODEL_HEAP, 2);
	CHECK(s && s->peak_bytes == 200 && mp->oldest_ns[s - mp->sites] == 2000);
	fixture_end(&f);
}

TEST(sites_split_by_thread_and_size)
{
	for (int split = MODEL_SPLIT_THREAD; split <= MODEL_SPLIT_SIZE; split++) {
		struct fixture f;
		fixture_begin(&f);
		synth_alloc(f.p, 0, SYNTH_START + 1, 0x1000, 100, 1);
		synth_alloc(f.p, 1, SYNTH_START + 2, 0x2000, 100, 1);
		synth_alloc(f.p, 1, SYNTH_START + 3, 0x3000, 1000, 1);
		struct model_query q = MODEL_QUERY_ALL;
		q.split = (enum model_split)split;
		const struct model_process *mp = fixture_run(&f, q);
		CHECK_EQ(mp->site_count, 2);
		CHECK_EQ(mp->sites[0].split, split == MODEL_SPLIT_THREAD ? 0 : 7);
		CHECK_EQ(mp->sites[1].split, split == MODEL_SPLIT_THREAD ? 1 : 10);
		CHECK_EQ(mp->sites[0].live_bytes, split == MODEL_SPLIT_THREAD ? 100 : 200);
		fixture_end(&f);
	}
}

TEST(an_exec_ends_the_heap_without_leaks)
{
	struct fixture f;
	three_blocks(&f);
	f.p->info.exit_kind = MT_EXIT_EXEC;
	f.p->info.end_ticks = SYNTH_START + 6000;
	struct synth_process *next = synth_process(&f.s, 100, 1);
	next->info.start_ticks = next->info.start_mono_ns = SYNTH_START + 7000;
	next->info.start_real_ns = SYNTH_REAL + 7000;
	synth_alloc(next, 0, SYNTH_START + 8000, 0x1000, 10, 0);
	const struct model_process *mp = fixture_run(&f, MODEL_QUERY_ALL);
	CHECK_EQ(mp->kind[MODEL_HEAP].live_bytes, 0);
	CHECK_EQ(mp->kind[MODEL_HEAP].peak_bytes, 300);
	CHECK_EQ(mp->sites[0].peak_bytes, 100);
	CHECK_EQ(mp->process->exit_kind, MT_EXIT_EXEC);
	CHECK_EQ(model_process(f.m, 1)->kind[MODEL_HEAP].live_bytes, 10);
	CHECK(model_process(f.m, 1)->process->creator == mp->process);
	CHECK_EQ(model_totals(f.m, MODEL_HEAP).live_bytes, 10);
	CHECK_EQ(model_totals(f.m, MODEL_HEAP).peak_bytes, 300);
	fixture_end(&f);
}

static int count_block(void *arg, const struct model_block *b)
{
	uint64_t *sums = arg;
	sums[b->inherited]++;
	sums[2] += b->size;
	return 0;
}

TEST(blocks_of_ended_processes_are_kept_on_demand)
{
	for (int keep = 0; keep < 2; keep++) {
		struct fixture f;
		three_blocks(&f);
		f.p->info.exit_kind = MT_EXIT_CODE;
		struct model_query q = MODEL_QUERY_ALL;
		q.keep_blocks = keep;
		uint64_t sums[3] = { 0 };
		fixture_run(&f, q);
		CHECK_EQ(model_each_block(f.m, 0, MODEL_HEAP, count_block, sums), 0);
		CHECK_EQ(sums[0], keep);
		CHECK_EQ(sums[2], keep ? 200 : 0);
		fixture_end(&f);
	}
}

TEST(failures_are_summed_by_stack)
{
	struct fixture f;
	fixture_begin(&f);
	for (uint64_t i = 0; i < 1000; i++)
		synth_fail(f.p, 0, SYNTH_START + 1000 * i, 1000 + i, 1 + i % 2);
	synth_fail(f.p, 0, SYNTH_START + 2000000, UINT64_MAX, 1);
	const struct model_process *mp = fixture_run(&f, MODEL_QUERY_ALL);
	CHECK_EQ(mp->kind[MODEL_HEAP].failed, 1001);
	CHECK_EQ(model_failures(f.m), 2);
	const struct model_failure *first = model_failure(f.m, 0);
	CHECK_EQ(first->node, 1);
	CHECK_EQ(first->count, 501);
	CHECK(first->largest_bytes == UINT64_MAX && first->last_bytes == UINT64_MAX);
	CHECK_EQ(first->first_ns, 0);
	CHECK_EQ(first->last_ns, 2000000);
	fixture_end(&f);
}

TEST(sums_of_two_hosts_are_not_one_peak)
{
	struct fixture a, b;
	three_blocks(&a);
	three_blocks(&b);
	memcpy(b.s.session.boot_id, "11111111", 8);
	unsigned char page[4096] = { 0 };
	memcpy(page, &b.s.session, sizeof(b.s.session));
	synth_save(&b.s, "session", page, sizeof(page));
	synth_write(a.p, SYNTH_RAW);
	synth_write(b.p, SYNTH_BLOCKS);
	const char *dirs[] = { a.s.dir, b.s.dir };
	CHECK_EQ(reader_open(&a.r, dirs, 2, 0), 0);
	CHECK_EQ(model_run(&a.m, a.r, &MODEL_QUERY_ALL), 0);
	CHECK_EQ(reader_hosts(a.r), 2);
	CHECK_EQ(model_totals(a.m, MODEL_HEAP).peak_bytes, 300);
	CHECK_EQ(model_totals(a.m, MODEL_HEAP).live_bytes, 400);
	CHECK_EQ(model_totals(a.m, MODEL_HEAP).allocations, 6);
	fixture_end(&a);
	fixture_end(&b);
}

TEST_MAIN
