#include "analyzer/model/process_memory.h"

#include "analyzer/model/device.h"
#include "analyzer/model/host_pools.h"
#include "analyzer/model/loss_doubt.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

#include <string.h>

/* ---- heap ------------------------------------------------------------------------------------------------ */

/* An own block begins to be live (delta 1) or ends (-1). */
static inline void move_block(struct process_memory *memory, const struct block *b, int64_t delta, uint64_t ns)
{
	const struct process_memory_weight w = process_memory_weigh(memory, b);
	int64_t bytes = delta * (int64_t)w.bytes, blocks = delta * (int64_t)w.blocks;
	if (!memory->model->query.numbers) {
		struct model_bin *bin = &memory->seen.bins[process_memory_bin(b->size)];
		bin->live_bytes += (uint64_t)bytes;
		bin->live_blocks += (uint64_t)blocks;
		heap_footprint_move(&memory->footprint, b->addr, b->size, delta);
	}
	process_memory_change(memory, &(struct change){ MODEL_HEAP, b->site, bytes, blocks, b->addr, b->thread, b->ns },
			      ns);
}

static void move_inherited(struct process_memory *memory, uint64_t addr, uint64_t size, int64_t delta)
{
	struct model_totals *t = &memory->kind[MODEL_HEAP].totals;
	const struct block b = { .addr = addr, .size = size & MT_MAX_SIZE, .site = BLOCK_NO_SITE };
	const struct process_memory_weight w = process_memory_weigh(memory, &b);
	t->inherited_bytes += (uint64_t)delta * w.bytes;
	t->inherited_blocks += (uint64_t)delta * w.blocks;
	heap_footprint_move(&memory->footprint, addr, size, delta);
}

static void count_temporary(struct process_memory *memory, const struct block *b, uint64_t delta)
{
	memory->kind[MODEL_HEAP].totals.temporary += delta;
	site_table_temporary(&memory->sites, b->site, (uint32_t)delta);
	memory->seen.bins[process_memory_bin(b->size)].temporary += delta;
}

static void note_missed(struct process_memory *memory, uint32_t site, uint64_t bytes)
{
	bool wanted = !memory->sites.numbers_only && site != BLOCK_NO_SITE && memory->seen.process->lost_events;
	if (wanted && !vec_reserve(memory->missed, memory->missed_room, site + 1ul))
		memory->missed[site] += bytes;
}

/* Something may be there already: then its free was not seen. */
static void end_missed(struct process_memory *memory, uint64_t addr, uint64_t ns)
{
	struct block *old = blocks_find(&memory->heap, addr);
	uint64_t inherited = old ? INHERITED_BLOCKS_GONE : inherited_blocks_take(&memory->inherited_blocks, addr);
	if (old) {
		const uint64_t bytes = process_memory_weigh(memory, old).bytes;
		note_missed(memory, old->site, bytes);
		memory->kind[MODEL_HEAP].totals.missed_bytes += bytes;
		move_block(memory, old, -1, ns);
		blocks_remove(&memory->heap, old);
	} else if (inherited != INHERITED_BLOCKS_GONE) {
		move_inherited(memory, addr, inherited, -1);
	} else {
		return;
	}
	memory->kind[MODEL_HEAP].totals.missed_frees++;
}

struct heap_place {
	uint64_t start, end, ns;
};

static int by_start(const void *a, const void *b)
{
	const struct heap_place *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static int list_places(const struct process_memory *memory, struct heap_place **out)
{
	struct heap_place *list = malloc((memory->heap.count + 1) * sizeof(*list));
	size_t n = 0;
	*out = list;
	if (!list)
		return error_memory();
	for (size_t i = 0; memory->heap.entries && i <= memory->heap.mask; i++) {
		const struct block *b = &memory->heap.entries[i];
		if (b->addr)
			list[n++] = (struct heap_place){ b->addr, b->addr + b->size, b->ns };
	}
	if (n)
		qsort(list, n, sizeof(*list), by_start);
	return 0;
}

/* Of two that overlap the older one is gone; what is left of the list by then does not overlap. */
int process_memory_prove(struct process_memory *memory, uint64_t ns)
{
	struct heap_place *list, *top = NULL;
	if (!process_memory_lost(memory))
		return 0;
	int e = list_places(memory, &list);
	size_t count = memory->heap.count;
	for (size_t i = 0; !e && i < count; i++) {
		struct heap_place *p = &list[i], *gone = !top || p->start >= top->end ? NULL
							 : p->ns < top->ns            ? p
										      : top;
		if (gone)
			end_missed(memory, gone->start, ns);
		if (gone != p)
			top = p;
	}
	free(list);
	memory->unproven = 0;
	return e;
}

/* For each allocation behind a gap: it comes about as often as keeps its costs low. */
static int prove_behind_gap(struct process_memory *memory, uint64_t ns)
{
	enum { LEAST = 256, PART = 8 };
	return memory->lost && ++memory->unproven > LEAST + memory->heap.count / PART ? process_memory_prove(memory, ns)
										      : 0;
}

static int heap_alloc(struct process_memory *memory, const struct mt_event *s, uint32_t thread, uint64_t ns)
{
	int e = blocks_reserve(&memory->heap);
	if (e)
		return e;
	struct block *place = blocks_entry(&memory->heap, s->addr);
	if (place->addr || memory->inherited_blocks.count) {
		end_missed(memory, s->addr, ns);
		place = blocks_entry(&memory->heap, s->addr);
	}
	int64_t site = process_memory_site(memory, MODEL_HEAP, s, thread);
	if (site < 0)
		return (int)site;
	place->addr = s->addr;
	place->size = s->size;
	place->ns = ns;
	place->site = (uint32_t)site;
	place->thread = thread;
	memory->heap.count++;
	if (!memory->sites.numbers_only &&
	    !site_table_open(&memory->sites, memory->seen.process->id, place->site, memory->kind[MODEL_HEAP].number,
			     memory->host->kind[MODEL_HEAP].number))
		return -MT_EMEMORY;
	const struct process_memory_weight w = process_memory_weigh(memory, place);
	memory->seen.bins[process_memory_bin(s->size)].allocations += w.blocks;
	move_block(memory, place, 1, ns);
	process_memory_count_blocks(memory, MODEL_HEAP, place->site, w.bytes, w.blocks);
	if (memory->pooled)
		host_pool_move(memory, s->size, 1);
	e = process_memory_set_last(memory, MODEL_HEAP, thread, s->addr);
	return e ? e : prove_behind_gap(memory, ns);
}

static void free_own(struct process_memory *memory, struct block *b, struct undo *u, bool not_temporary, uint64_t ns)
{
	u->block = *b;
	u->known = true;
	u->temporary = memory->last[MODEL_HEAP][b->thread] == b->addr && !not_temporary;
	memory->kind[MODEL_HEAP].totals.frees += process_memory_weigh(memory, b).blocks;
	if (memory->pooled)
		host_pool_move(memory, b->size, -1);
	if (u->temporary)
		count_temporary(memory, b, 1);
	const struct model_site *s = site_table_figures(&memory->sites, b->site);
	uint32_t allocations = s ? s->allocations : 0;
	move_block(memory, b, -1, ns);
	u->forgotten = site_table_figures(&memory->sites, b->site) ? 0 : allocations;
	blocks_remove(&memory->heap, b);
}

static void free_inherited(struct process_memory *memory, uint64_t size, struct undo *u)
{
	u->block.size = size;
	u->known = u->inherited = true;
	memory->kind[MODEL_HEAP].totals.frees++;
	move_inherited(memory, u->block.addr, size, -1);
}

static int heap_free(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns)
{
	struct ring_state *state = process_memory_ring(memory, ring);
	if (!state)
		return -MT_EMEMORY;
	/* its first block may have the same address */
	if (memory->segments.root && !memory->pooled && host_pool_shrink(memory, s->addr))
		return 0;
	struct undo *u = &state->frees[state->next++ % UNDO_DEPTH];
	struct block *b = blocks_find(&memory->heap, s->addr);
	uint64_t inherited = b ? INHERITED_BLOCKS_GONE : inherited_blocks_take(&memory->inherited_blocks, s->addr);
	*u = (struct undo){ .block.addr = s->addr };
	if (b)
		/* of picked ones nobody knows what the thread has allocated since */
		free_own(memory, b, u, s->size != 0 || process_is_picked(memory->seen.process), ns);
	else if (inherited != INHERITED_BLOCKS_GONE)
		free_inherited(memory, inherited, u);
	else
		memory->kind[MODEL_HEAP].totals.unknown_frees++;
	return 0;
}

static int restore_own(struct process_memory *memory, const struct undo *u, uint64_t ns)
{
	if (u->temporary)
		count_temporary(memory, &u->block, (uint64_t)-1);
	move_block(memory, &u->block, 1, ns);
	struct model_site *s = site_table_figures(&memory->sites, u->block.site);
	if (s && u->forgotten)
		s->allocations += u->forgotten - 1;
	return blocks_put(&memory->heap, &u->block);
}

static int restore(struct process_memory *memory, struct undo *taken, uint64_t ns)
{
	const struct undo u = *taken;
	taken->block.addr = 0;
	if (!u.known) {
		memory->kind[MODEL_HEAP].totals.unknown_frees--;
		return 0;
	}
	if (blocks_find(&memory->heap, u.block.addr)) {
		memory->seen.odd_undos++;
		return 0;
	}
	if (!u.inherited) {
		memory->kind[MODEL_HEAP].totals.frees -= process_memory_weigh(memory, &u.block).blocks;
		return restore_own(memory, &u, ns);
	}
	memory->kind[MODEL_HEAP].totals.frees--;
	inherited_blocks_put_back(&memory->inherited_blocks, u.block.addr, u.block.size);
	move_inherited(memory, u.block.addr, u.block.size, 1);
	return 0;
}

/* A block was here, and its free can no longer be undone: an undo of this address is that of the unmapping. */
static int unmap(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns)
{
	struct ring_state *state = process_memory_ring(memory, ring);
	for (unsigned i = 0; state && i < UNDO_DEPTH; i++)
		if (state->frees[i].block.addr == s->addr)
			state->frees[i].block.addr = 0;
	return maps_unmap(memory, s, ring, ns);
}

/* ---- whose a block is ---- */

/* Of the peaks that the block was a part of, too. The sums stay as they are, and with them the peaks' numbers. */
static void move_owner(struct process_memory *memory, const struct block *b, uint32_t site, int64_t delta)
{
	const uint64_t number = memory->kind[MODEL_HEAP].number, host_number = memory->host->kind[MODEL_HEAP].number;
	struct model_site *s = site_table_open(&memory->sites, memory->seen.process->id, site, number, host_number);
	if (!s)
		return;
	const struct process_memory_weight w = process_memory_weigh(memory, b);
	const uint64_t bytes = (uint64_t)delta * w.bytes;
	const uint32_t blocks = (uint32_t)((uint64_t)delta * w.blocks);
	site_table_touch(s, number, host_number);
	s->live_bytes += bytes;
	s->live_blocks += blocks;
	s->allocations += delta > 0; /* who made the call has made it all the same */
	if (number && b->ns <= memory->kind[MODEL_HEAP].totals.peak_ns) {
		s->peak_bytes += bytes;
		s->peak_blocks += blocks;
	}
	if (host_number && b->ns <= memory->host->kind[MODEL_HEAP].totals.peak_ns) {
		s->host_peak_bytes += bytes;
		s->host_peak_blocks += blocks;
	}
	site_table_close(&memory->sites, s);
}

static void tell_owner(struct process_memory *memory, const struct block *b, int64_t delta, uint64_t ns)
{
	const struct process_memory_weight w = process_memory_weigh(memory, b);
	const struct change c = { MODEL_HEAP, b->site, delta * (int64_t)w.bytes, delta * (int64_t)w.blocks, b->addr,
				  b->thread,  b->ns };
	if (memory->model->query.on_change)
		process_memory_describe_change(memory, &c, MODEL_NO_DEVICE, 0, ns);
}

/* A block that a thread of a framework's has asked for is that of whoever gave it the work. */
static int mark(struct process_memory *memory, const struct mt_event *s, uint64_t ns)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	struct block *b = ext.class == MT_MARK_OWNER ? blocks_find(&memory->heap, s->addr) : NULL;
	if (!b)
		return 0;
	struct mt_event asked = *s;
	asked.kind = MT_ALLOC;
	asked.size = b->size;
	int64_t site = process_memory_site(memory, MODEL_HEAP, &asked, b->thread);
	if (site < 0 || (uint32_t)site == b->site)
		return site < 0 ? (int)site : 0;
	if (!memory->model->query.numbers && b->site != BLOCK_NO_SITE && (uint32_t)site != BLOCK_NO_SITE) {
		move_owner(memory, b, b->site, -1);
		move_owner(memory, b, (uint32_t)site, 1);
	}
	memory->moves = true;
	tell_owner(memory, b, -1, ns);
	b->site = (uint32_t)site;
	tell_owner(memory, b, 1, ns);
	return 0;
}

static int undo(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint64_t ns)
{
	struct ring_state *state = process_memory_ring(memory, ring);
	if (!state)
		return -MT_EMEMORY;
	for (unsigned i = 1; s->addr && i <= UNDO_DEPTH; i++) { /* 0 can only have been unmapped */
		struct undo *u = &state->frees[(state->next - i) % UNDO_DEPTH];
		if (u->block.addr == s->addr)
			return restore(memory, u, ns);
	}
	int found = maps_undo(memory, s->addr, ring, ns);
	if (!found)
		memory->seen.odd_undos++;
	return found < 0 ? found : 0;
}

/* ---- failures -------------------------------------------------------------------------------------------- */

static uint64_t failure_hash(uint32_t process, const struct mt_event *s)
{
	uint64_t h = ((uint64_t)process << 32 | s->node) * 0x9E3779B97F4A7C15ull;
	h ^= ((uint64_t)s->node2 << 10 | s->hook) * 0xD6E8FEB86659FD93ull;
	h ^= h >> 32;
	return h * 0x9E3779B97F4A7C15ull;
}

static bool failure_is(const struct model_failure *f, uint32_t process, const struct mt_event *s)
{
	return f->process == process && f->node == s->node && f->node2 == s->node2 && f->hook == s->hook;
}

static uint64_t hash_of_failure(const void *failures, uint32_t number)
{
	const struct model_failure *f = (const struct model_failure *)failures + number - 1;
	struct mt_event key = { .node = f->node, .node2 = f->node2, .hook = f->hook & 1023 };
	return failure_hash(f->process, &key);
}

static struct model_failure *find_failure(struct model *m, uint32_t process, const struct mt_event *s)
{
	struct hash_index *x = &m->failure_index;
	uint64_t hash = failure_hash(process, s);
	if (hash_index_is_full(x, m->failure_count) &&
	    hash_index_grow(x, m->failures, m->failure_count, hash_of_failure))
		return NULL;
	size_t at = hash_index_home(x, hash);
	for (uint32_t n; (n = hash_index_candidate(x, hash, &at)); at = hash_index_after(x, at))
		if (failure_is(&m->failures[n - 1], process, s))
			return &m->failures[n - 1];
	if (vec_reserve(m->failures, m->failure_room, m->failure_count + 1))
		return NULL;
	struct model_failure *f = &m->failures[m->failure_count++];
	*f = (struct model_failure){ .process = process, .node = s->node, .node2 = s->node2, .hook = s->hook };
	hash_index_set(x, at, m->failure_count, hash);
	return f;
}

static int fail(struct process_memory *memory, const struct mt_event *s, uint64_t ns)
{
	struct model_totals *t =
		&memory->kind[(s->size & ~(uint64_t)MT_TRIAL) == MT_MAP ? MODEL_MAP : MODEL_HEAP].totals;
	if (s->size & MT_TRIAL) {
		t->trials++;
		return 0;
	}
	struct model_failure *f = find_failure(memory->model, memory->seen.process->id, s);
	if (!f)
		return -MT_EMEMORY;
	t->failed++;
	if (s->addr > t->failed_bytes_max)
		t->failed_bytes_max = s->addr;
	if (!f->count++)
		f->first_ns = ns;
	f->last_ns = ns;
	f->last_bytes = s->addr;
	if (s->addr > f->largest_bytes)
		f->largest_bytes = s->addr;
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

/* What grows by realloc or mremap is there all the time, though its free is recorded before. */
static bool is_of(const uint64_t *hooks, const struct mt_event *s)
{
	return hooks[s->hook / 64] >> s->hook % 64 & 1;
}

int process_memory_slot(struct process_memory *memory, const struct mt_event *s, uint32_t ring, uint32_t thread,
			uint64_t ns)
{
	uint64_t before_ns = memory->seen.last_ns;
	memory->moves = is_of(memory->seen.process->moving_hooks, s);
	memory->pooled = is_of(memory->seen.process->pool_hooks, s);
	if (++memory->seen.events <= MT_YOUNG_SLOTS)
		memory->young_ns = ns;
	memory->seen.last_ns = ns;
	switch (s->kind) {
	case MT_ALLOC:
		return heap_alloc(memory, s, thread, ns);
	case MT_FREE:
		return heap_free(memory, s, ring, ns);
	case MT_UNDO:
		return undo(memory, s, ring, ns);
	case MT_MAP:
		return maps_map(memory, s, ring, thread, ns);
	case MT_UNMAP:
		return unmap(memory, s, ring, ns);
	case MT_FAIL:
		return fail(memory, s, ns);
	case MT_FOLD:
		return process_memory_fold(memory, s, ring, ns);
	case MT_MARK:
		return mark(memory, s, ns);
	case MT_LOST:
		if (!memory->seen.lost_events)
			memory->seen.lost_ns = before_ns;
		memory->seen.lost_events += s->addr;
		memory->lost += s->addr;
		memory->lost_until_ns = ns;
		return 0;
	case MT_DEVICE_ALLOC:
	case MT_DEVICE_FREE:
	case MT_DEVICE_FAIL:
	case MT_DEVICE_UNDO:
	case MT_DEVICE_MAP:
	case MT_DEVICE_UNMAP:
	case MT_DEVICE_RESET:
	case MT_DEVICE_INFO:
		return devices_event(memory, s, ring, thread, ns);
	default:
		return 0; /* MT_THREAD is the reader's business, MT_EXT its map's */
	}
}

int process_memory_inherit(struct process_memory *memory, const struct process_memory *parent)
{
	for (int k = 0; k < MODEL_PINNED; k++) { /* a child can't use its parent's devices */
		const struct model_totals *from = &parent->kind[k].totals;
		struct model_totals *to = &memory->kind[k].totals;
		to->inherited_bytes = from->live_bytes + from->inherited_bytes;
		to->inherited_blocks = from->live_blocks + from->inherited_blocks;
		memory->seen.began_with += k == MODEL_HEAP || k == MODEL_MAP ? to->inherited_bytes : 0;
	}
	heap_footprint_copy(&memory->footprint, &parent->footprint);
	if (!memory->seen.process->has_events && !memory->seen.process->has_heirs)
		return 0; /* nobody will ask for single blocks */
	/* they are no changes */
	int e = memory->model->query.numbers
			? 0
			: inherited_blocks_init(&memory->inherited_blocks, &parent->heap, &parent->inherited_blocks);
	if (!e)
		e = maps_inherit(memory, parent);
	return e ? e : devices_inherit(memory, parent);
}

static int see_range(void *arg, const struct range *r)
{
	if (!r->inherited && map_class_counts(r->class))
		process_memory_note_age(arg, r->site, r->ns);
	return 0;
}

int process_memory_fill_sites(struct process_memory *memory)
{
	if (memory->model->query.changes_only)
		return 0;
	if (site_table_settle(&memory->sites, memory->seen.process->id))
		return -MT_EMEMORY;
	memory->sites.oldest_ns = calloc(memory->sites.site_count + 1, sizeof(*memory->sites.oldest_ns));
	if (!memory->sites.oldest_ns)
		return error_memory();
	for (size_t i = 0; memory->heap.entries && i <= memory->heap.mask; i++) {
		const struct block *b = &memory->heap.entries[i];
		if (b->addr)
			process_memory_note_age(memory, b->site, b->ns);
	}
	ranges_each(&memory->maps, see_range, memory);
	devices_fill_sites(memory);
	return loss_doubt_fill(memory);
}

/* For model_process(); what was folded or lost may have lain elsewhere. Young blocks may have, too: they had room for
 * themselves, and for as many holes. */
void process_memory_fill_footprint(struct process_memory *memory)
{
	const bool unknown = memory->footprint.unknown || memory->seen.fold.until_ns || memory->lost;
	memory->seen.footprint =
		(struct model_footprint){ .known = !unknown,
					  .bytes = memory->footprint.bytes + 2 * memory->seen.fold.young_most_bytes,
					  .live = memory->footprint.live };
}

static void drop_blocks(struct process_memory *memory)
{
	process_memory_fill_footprint(memory);
	heap_footprint_fini(&memory->footprint);
	blocks_fini(&memory->heap);
	inherited_blocks_fini(&memory->inherited_blocks);
	ranges_fini(&memory->segments);
	ranges_fini(&memory->maps);
	free(memory->pieces);
	memory->pieces = NULL;
	memory->piece_room = memory->piece_count = memory->free_piece = 0;
	for (int k = 0; k < MODEL_KINDS; k++) {
		free(memory->last[k]);
		memory->last[k] = NULL;
		memory->last_room[k] = 0;
	}
	for (size_t i = 0; i < memory->ring_room; i++) {
		free(memory->rings[i].unmap.ranges);
		memory_ring_fini(memory->rings[i].device);
	}
	free(memory->rings);
	memory->rings = NULL;
	memory->ring_room = 0;
	site_table_rest(&memory->sites);
	devices_drop(memory);
}

/* Nothing is live any more; what was at the peaks is kept by the sites. */
static void clear_live(struct process_memory *memory)
{
	for (int k = 0; k < MODEL_KINDS; k++) {
		memory->kind[k].totals.live_bytes = memory->kind[k].totals.live_blocks = 0;
		memory->kind[k].totals.inherited_bytes = memory->kind[k].totals.inherited_blocks = 0;
	}
	for (size_t i = 0; i < site_table_count(&memory->sites); i++)
		memory->sites.sites[i].live_bytes = memory->sites.sites[i].live_blocks = 0;
	for (int b = 0; b < MODEL_BINS; b++)
		memory->seen.bins[b].live_bytes = memory->seen.bins[b].live_blocks = 0;
	for (int c = 0; c < MAP_CLASSES; c++)
		memory->seen.map[c].bytes = memory->seen.map[c].blocks = 0;
}

static void leave_host(struct process_memory *memory)
{
	struct host_sums *host = memory->host;
	for (int k = 0; k < MODEL_KINDS; k++) {
		struct peak_sum *own = &memory->kind[k], *sum = &host->kind[k];
		uint64_t before = sum->totals.live_bytes;
		peak_sum_settle(own);
		peak_sum_settle(sum);
		memory->host_number_at_end[k] = sum->number;
		sum->totals.live_bytes -= own->totals.live_bytes;
		sum->totals.live_blocks -= own->totals.live_blocks;
		series_note(&host->timeline[k], &memory->model->timeline, before, sum->totals.live_bytes,
			    sum->totals.live_blocks);
		if (memory->seen.timeline[k].count)
			series_note(&memory->seen.timeline[k], &memory->model->timeline, own->totals.live_bytes,
				    own->totals.live_bytes, own->totals.live_blocks);
	}
	for (size_t i = 0; i < site_table_count(&memory->sites); i++) {
		struct model_site *s = &memory->sites.sites[i];
		if (s->kind < MODEL_HOST_KINDS)
			site_table_touch(s, memory->kind[s->kind].number, host->kind[s->kind].number);
	}
	for (int c = 0; c < MAP_CLASSES; c++) {
		host->map[c].bytes -= memory->seen.map[c].bytes;
		host->map[c].blocks -= memory->seen.map[c].blocks;
	}
}

int process_memory_end(struct process_memory *memory, bool keep_live)
{
	if (memory->seen.ended)
		return 0;
	int e = process_memory_prove(memory, memory->model->end_ns);
	if (e)
		return e;
	leave_host(memory);
	e = devices_end(memory, keep_live);
	memory->seen.ended = true;
	if (keep_live)
		e = e ? e : process_memory_fill_sites(memory);
	else
		clear_live(memory);
	if (!keep_live || !memory->model->query.keep_blocks)
		drop_blocks(memory);
	else
		process_memory_fill_footprint(memory);
	return e;
}

void process_memory_fini(struct process_memory *memory)
{
	drop_blocks(memory);
	free(memory->missed);
	devices_fini_process(memory);
	site_table_fini(&memory->sites);
	free(memory->seen.level.by_stack);
	for (int k = 0; k < MODEL_KINDS; k++)
		series_fini(&memory->seen.timeline[k]);
}
