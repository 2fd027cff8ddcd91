#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

#define SLICE_SLOTS (1u << 20) /* of which the highest moments are kept */

struct fold_window *fold_window_new(const struct fold_facts *facts)
{
	struct fold_window *t = calloc(1, sizeof(*t));
	if (t)
		t->facts = *facts;
	return t;
}

void fold_facts_fini(struct fold_facts *facts)
{
	free(facts->forks);
	free(facts->parents);
	*facts = (struct fold_facts){ 0 };
}

static void free_looking(struct fold_window *t)
{
	blocks_fini(&t->live);
	ranges_fini(&t->maps);
	ranges_fini(&t->mapped);
	for (int k = 0; k < MODEL_KINDS; k++) {
		watch_fini(&t->peak[k]);
		free(t->last[k]);
	}
	for (int c = 0; c < MAP_CLASSES; c++)
		watch_fini(&t->map_peak[c]);
	for (size_t i = 0; i < t->device_room; i++) {
		struct fold_device *d = t->devices[i];
		if (!d)
			continue;
		ranges_fini(&d->extents);
		watch_fini(&d->memory_peak);
		watch_fini(&d->pool_peak);
		watch_fini(&d->moment);
		watch_fini(&d->low_point.low);
		free(d);
	}
	free(t->devices);
	free(t->pairs);
	free(t->rings);
	free(t->omit);
	free(t->temporary);
	free(t->lows);
	free(t->looks);
}

void fold_window_free(struct fold_window *t)
{
	if (!t)
		return;
	free_looking(t);
	blocks_fini(&t->omitted);
	blocks_fini(&t->pool);
	for (int k = 0; k < MODEL_KINDS; k++)
		free(t->last_omitted[k]);
	sums_fini(&t->sums);
	free(t->tracks);
	free(t->depths);
	free(t->branch);
	free(t->branch_of);
	fold_facts_fini(&t->facts);
	free(t);
}

/* ---- heap ------------------------------------------------------------------------------------------------ */

/* The largest block that is left out. */
static uint64_t most_size(const struct fold_window *t)
{
	return fold_last_level(t) ? UINT64_MAX : 4096ull << 4 * (t->level - 1);
}

/* How many bytes of blocks that small may be allocated while it lives. */
static uint64_t most_life(const struct fold_window *t)
{
	uint64_t part = t->bytes[MODEL_HEAP] >> (11 - 2 * t->level), least = 0x40000ull << 2 * (t->level - 1);
	return part > least ? part : least;
}

static bool is_short_lived(const struct fold_window *t, const struct block *b)
{
	if (!t->level || b->ns < t->first || b->size > most_size(t))
		return false;
	return fold_last_level(t) || (uint64_t)(t->small - b->site) * 16 <= most_life(t);
}

static void rise(struct fold_window *t, uint64_t size)
{
	t->bytes[MODEL_HEAP] += fold_weigh(t, size);
	watch_rise(t, &t->peak[MODEL_HEAP], t->bytes[MODEL_HEAP], 0);
}

static int look_alloc(struct fold_window *t, const struct mt_event *s, uint32_t thread)
{
	struct block b = { .addr = s->addr, .size = s->size, .ns = t->place, .site = t->small, .thread = thread };
	struct block *old = blocks_find(&t->live, s->addr);
	int e = fold_set_last(t, MODEL_HEAP, thread, s->addr);
	if (e)
		return e;
	if (old) { /* its free was not seen: both stay, so that the model sees it as well */
		t->bytes[MODEL_HEAP] -= fold_weigh(t, old->size);
		blocks_remove(&t->live, old);
		b.ns = 0;
	}
	if (t->live.count >= FOLD_MAX_LIVE)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, "too many live blocks");
	if (!t->level || fold_last_level(t) || s->size <= most_size(t))
		t->small += (uint32_t)(s->size / 16 + 1);
	rise(t, s->size);
	return blocks_put(&t->live, &b);
}

static int look_free(struct fold_window *t, const struct mt_event *s, uint32_t ring)
{
	struct ring *r = fold_ring(t, ring);
	if (!r)
		return -MT_EMEMORY;
	struct recent_free *f = &r->freed[r->next++ % UNDO_DEPTH];
	int e = pairs_settle(t, f);
	*f = (struct recent_free){ .class = SPACE_HEAP };
	struct block *b = blocks_find(&t->live, s->addr);
	if (e || !b)
		return e;
	*f = (struct recent_free){ s->addr, *b, t->place, SPACE_HEAP, is_short_lived(t, b) };
	if (fold_was_last(t, MODEL_HEAP, b->thread, b->addr) && !s->size)
		fold_mark_temporary(t, b->ns);
	t->bytes[MODEL_HEAP] -= fold_weigh(t, b->size);
	blocks_remove(&t->live, b);
	return 0;
}

static int look_undo(struct fold_window *t, const struct mt_event *s, uint32_t ring)
{
	for (unsigned i = 1; s->addr && ring < t->ring_room && i <= UNDO_DEPTH; i++) {
		struct recent_free *f = &t->rings[ring].freed[(t->rings[ring].next - i) % UNDO_DEPTH];
		if (f->addr != s->addr)
			continue;
		struct block b = f->block;
		f->addr = f->block.addr = 0;
		if (blocks_find(&t->live, b.addr))
			return 0;
		b.ns = 0;
		rise(t, b.size);
		return blocks_put(&t->live, &b);
	}
	scan_undo_unmap(t, s->addr, ring);
	return 0;
}

/* ---- other slots ----------------------------------------------------------------------------------------- */

/* Whoever speaks of a block wants to find it. */
static void look_mark(struct fold_window *t, const struct mt_event *s)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	if (ext.class != MT_MARK_LABEL && ext.class != MT_MARK_OWNER)
		return;
	struct block *b = blocks_find(&t->live, s->addr);
	if (b)
		b->ns = 0;
	for (uint32_t i = 0; i < t->device_room; i++)
		for (enum event_space space = SPACE_PINNED; space < SPACES_FOLDED; space++)
			if (t->devices[i] && (b = blocks_find(&t->live, fold_key(space, i, s->addr))) != NULL)
				b->ns = 0;
}

/* What an earlier folding said. */
static int look_fold(struct fold_window *t, const struct mt_event *s)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	if (ext.class == MT_FOLD_LAST)
		return fold_set_last(t, MODEL_MAP, ext.status, 0);
	if (ext.class == MT_FOLD_LEVEL && ext.source)
		t->kept_low = t->place;
	if (ext.class == MT_FOLD_LEVEL)
		t->looks_left_out += ext.other;
	if (ext.class != MT_FOLD_SUM || !ext.source)
		return 0;
	return fold_set_last(t, space_kind(space_of_what(ext.capture)), ext.status, 0);
}

/* What the loop looks like is asked of the latest of them. */
static int note_look(struct fold_window *t, const struct mt_event *s, uint32_t thread)
{
	bool pool = s->kind == MT_DEVICE_ALLOC && !s->node2;
	if (!t->facts.parents || (!s->node2 && !pool))
		return 0;
	if (!t->looks && !(t->looks = malloc(LOOKS * sizeof(*t->looks))))
		return error_memory();
	t->looks[t->look_count++ % LOOKS] = (struct look){ s->node2 ? s->node2 : s->node, thread };
	return 0;
}

static int look_slot(struct fold_window *t, const struct fold_slots *s, size_t i)
{
	const struct mt_event *slot = &s->slots[i];
	if (slot->node2 || slot->kind == MT_DEVICE_ALLOC) {
		int e = note_look(t, slot, s->threads[i]);
		if (e)
			return e;
	}
	switch (slot->kind) {
	case MT_ALLOC:
		return look_alloc(t, slot, s->threads[i]);
	case MT_FREE:
		return look_free(t, slot, s->rings[i]);
	case MT_UNDO:
		return look_undo(t, slot, s->rings[i]);
	case MT_MAP:
		return scan_map(t, slot, s->rings[i], s->threads[i]);
	case MT_UNMAP:
		return scan_unmap(t, slot, s->rings[i]);
	case MT_FOLD:
		return look_fold(t, slot);
	case MT_MARK:
		look_mark(t, slot);
		return 0;
	default:
		return slot->kind >= MT_DEVICE_ALLOC && slot->kind <= MT_DEVICE_INFO
			       ? scan_device(t, slot, s->rings[i], s->threads[i])
			       : 0;
	}
}

/* ---- the window ------------------------------------------------------------------------------------------ */

static void clear_bits(uint64_t *bits, size_t room)
{
	if (room)
		memset(bits, 0, room * sizeof(*bits));
}

int fold_window_begin(struct fold_window *t, unsigned level)
{
	t->level = level;
	t->first = t->at = t->place + 1;
	for (int g = 0; g < GROUPS; g++)
		t->kept[g] = t->place;
	pairs_begin_slice(t);
	clear_bits(t->omit, t->omit_room);
	clear_bits(t->temporary, t->temporary_room);
	clear_bits(t->lows, t->low_room);
	t->look_count = t->looks_left_out = 0;
	for (int k = 0; k < MODEL_KINDS; k++) /* what was copied meanwhile isn't known: saying it twice does no harm */
		for (size_t i = 0; i < t->last_omitted_room[k]; i++)
			t->last_omitted[k][i] = false;
	return fold_begin_tracks(t);
}

/* What is alive now stays. */
static void pass_forks(struct fold_window *t, uint64_t ticks)
{
	while (t->next_fork < t->facts.fork_count && t->facts.forks[t->next_fork] <= ticks) {
		t->next_fork++;
		for (int g = 0; g < GROUPS; g++)
			t->kept[g] = t->place - 1;
	}
}

static int make_bits(struct fold_window *t, size_t slots)
{
	size_t words = (t->place + slots - t->first) / 64 + 1;
	int e = vec_reserve(t->omit, t->omit_room, words);
	if (!e)
		e = vec_reserve(t->temporary, t->temporary_room, words);
	return e ? e : vec_reserve(t->lows, t->low_room, words);
}

int fold_window_scan(struct fold_window *t, const struct fold_slots *s)
{
	int e = make_bits(t, s->count);
	for (size_t i = 0; !e && i < s->count; i++) {
		t->place++;
		if (i + 16 < s->count)
			blocks_prefetch(&t->live, s->slots[i + 16].addr);
		if (s->slots[i].kind == MT_EXT)
			continue;
		pass_forks(t, s->slots[i].ticks);
		e = look_slot(t, s, i);
		if (t->place - t->slice >= SLICE_SLOTS)
			pairs_begin_slice(t);
	}
	return e;
}

/* What may still be undone stays, and who was alive at the last slice's peaks. */
int fold_window_decide(struct fold_window *t)
{
	pairs_forget(t);
	return fold_find_loop(t);
}
