/* The second pass over a window: what is left is written, what is left out is summed up. */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

#define LEVEL_SLOTS 256u /* that are read between two slots LEVEL, at most */

/* ---- what is left out ------------------------------------------------------------------------------------ */

/* One slot of an allocation or a free. */
struct subject {
	enum event_space space;
	uint32_t device;
	bool begins, ends;
};

static struct subject subject_of(const struct mt_event *s)
{
	struct mt_ext_device ext;
	struct mt_ext_map map;
	switch (s->kind) {
	case MT_ALLOC:
		return (struct subject){ SPACE_HEAP, 0, true, false };
	case MT_FREE:
		return (struct subject){ SPACE_HEAP, 0, false, true };
	case MT_MAP:
		memcpy(&map, s + 1, sizeof(map));
		return map_is_change(&map) ? (struct subject){ SPACES, 0, false, false }
					   : (struct subject){ SPACE_MAP, 0, true, false };
	case MT_UNMAP:
		return (struct subject){ SPACE_MAP, 0, false, true };
	case MT_DEVICE_ALLOC:
	case MT_DEVICE_FREE:
		memcpy(&ext, s + 1, sizeof(ext));
		return (struct subject){ fold_space_of(ext.class), ext.device, s->kind == MT_DEVICE_ALLOC,
					 s->kind == MT_DEVICE_FREE };
	default:
		return (struct subject){ SPACES, 0, false, false };
	}
}

static bool *last_omitted(struct fold_window *t, enum event_space space, uint32_t thread)
{
	enum model_kind kind = space_kind(space);
	return vec_reserve(t->last_omitted[kind], t->last_omitted_room[kind], thread + 1ul)
		       ? NULL
		       : &t->last_omitted[kind][thread];
}

/* A mapping that goes without a word of its own: when another one ends it must be known that this one came behind it.
 * */
static int put_last(struct fold_window *t, uint32_t thread, struct fold_out *out, uint32_t ring)
{
	const struct mt_event slot = { .kind = MT_FOLD, .ticks = t->last_ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_LAST, .status = thread };
	return fold_put_fold(out, &slot, &ext, ring);
}

static uint64_t size_class(const struct fold_window *t, uint64_t size)
{
	return t->facts.exact_sizes || !size ? size : 1ull << (63 - __builtin_clzll(size));
}

static int omit_alloc(struct fold_window *t, const struct mt_event *s, const struct subject *of, uint32_t thread,
		      struct fold_out *out, uint32_t ring)
{
	bool *last = last_omitted(t, of->space, thread), host = of->space != SPACE_HEAP;
	uint64_t size = of->space == SPACE_MAP ? (s->size + 4095) & ~4095ull : s->size;
	const struct sum sum = { .node = s->node,
				 .node2 = s->node2,
				 .thread = thread,
				 .hook = s->hook,
				 .what = fold_what(of->space),
				 .device = of->device,
				 .size = size_class(t, s->size),
				 .count = 1,
				 .bytes = size,
				 .temporary = has_bit(t->temporary, t->at - t->first) };
	const struct block b = { .addr = fold_key(of->space, of->device, s->addr), .size = size, .site = of->device };
	if (!last)
		return -MT_EMEMORY;
	int e = of->space == SPACE_MAP && !*last ? put_last(t, thread, out, ring) : 0;
	*last = true;
	t->left_out++;
	t->omitted_bytes[host] += host ? size : fold_weigh(t, size);
	if (t->omitted_bytes[host] > t->most_bytes[host])
		t->most_bytes[host] = t->omitted_bytes[host];
	if (!e)
		e = sums_add(&t->sums, &sum);
	return e ? e : blocks_put(&t->omitted, &b);
}

/* ---- what stays ------------------------------------------------------------------------------------------ */

static int keep(struct fold_window *t, const struct fold_slots *s, size_t i, const struct subject *of,
		struct fold_out *out)
{
	struct mt_event slot = s->slots[i];
	bool *last = of->begins && of->space != SPACES ? last_omitted(t, of->space, s->threads[i]) : NULL;
	if (last)
		*last = false;
	if (slot.kind == MT_FREE || slot.kind == MT_DEVICE_FREE)
		slot.size = !has_bit(t->temporary, t->at - t->first);
	int e = fold_put(out, &slot, s->rings[i]);
	return e || !mt_has_ext(slot.kind) ? e : fold_put(out, &s->slots[i + 1], s->rings[i]);
}

/* The block of a free that is to be left out; NULL if its allocation has stayed after all. */
static struct block *block_of(const struct fold_window *t, const struct mt_event *s, const struct subject *of)
{
	return of->space == SPACE_HEAP || of->space == SPACE_MAP
		       ? blocks_find(&t->omitted, fold_key(of->space, 0, s->addr))
		       : fold_find(t, &t->omitted, of->space, of->device, s->addr);
}

static int write_slot(struct fold_window *t, const struct fold_slots *s, size_t i, struct fold_out *out)
{
	const struct mt_event *slot = &s->slots[i];
	const struct subject of = subject_of(slot);
	bool omitted = has_bit(t->omit, t->at - t->first), turn = of.begins && fold_begins_part(t, slot, s->threads[i]);
	struct block *freed = omitted && of.ends ? block_of(t, slot, &of) : NULL;
	int e = turn ? fold_put_levels(t, false, out, s->rings[i]) : 0;
	omitted = omitted && (of.begins ? !turn : freed != NULL);
	if (!e && slot->kind >= MT_DEVICE_ALLOC && slot->kind <= MT_DEVICE_RESET)
		e = fold_track(t, slot, omitted, out, s->rings[i]);
	if (e)
		return e;
	if (!omitted)
		return keep(t, s, i, &of, out);
	if (of.begins)
		return omit_alloc(t, slot, &of, s->threads[i], out, s->rings[i]);
	t->omitted_bytes[of.space != SPACE_HEAP] -= of.space != SPACE_HEAP ? freed->size : fold_weigh(t, freed->size);
	blocks_remove(&t->omitted, freed);
	return 0;
}

/* ---- what earlier foldings said -------------------------------------------------------------------------- */

static int take_sum(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext)
{
	const struct sum sum = { .node = s->node,
				 .node2 = s->node2,
				 .thread = ext->status,
				 .hook = s->hook,
				 .size = s->size,
				 .what = ext->capture,
				 .device = ext->device,
				 .count = s->addr,
				 .bytes = ext->stream,
				 .temporary = ext->other };
	enum event_space space = space_of_what(ext->capture);
	bool *last = space == SPACES ? NULL : last_omitted(t, space, ext->status);
	if (!last)
		return space == SPACES ? 0 : -MT_EMEMORY;
	*last |= ext->source;
	return sums_add(&t->sums, &sum);
}

static int take_fold(struct fold_window *t, const struct mt_event *s, struct fold_out *out, uint32_t ring)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	switch (ext.class) {
	case MT_FOLD_BEGIN:
		t->before[0] = s->addr > t->before[0] ? s->addr : t->before[0];
		t->before[1] = ext.stream > t->before[1] ? ext.stream : t->before[1];
		return 0;
	case MT_FOLD_SUM:
		return take_sum(t, s, &ext);
	case MT_FOLD_LEVEL:
		return fold_take_level(t, s, &ext, out, ring);
	case MT_FOLD_LAST: {
		bool *last = last_omitted(t, SPACE_MAP, ext.status);
		return !last ? -MT_EMEMORY : *last ? 0 : (*last = true, put_last(t, ext.status, out, ring));
	}
	case MT_FOLD_END:
		for (size_t i = 0; i < t->track_room; i++)
			t->tracks[i].given = false;
		return 0;
	default:
		return 0;
	}
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

/* BEGIN, which fold_window_finish() completes. */
static int open_block(struct fold_window *t, const struct fold_slots *s, struct fold_out *out)
{
	const struct mt_event begin = { .kind = MT_FOLD, .ticks = s->slots[0].ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_BEGIN };
	if (t->open || !s->count)
		return 0;
	t->open = true;
	for (int i = 0; i < 2; i++) {
		t->before[i] = 0;
		t->most_bytes[i] = t->omitted_bytes[i];
	}
	t->last_ticks = begin.ticks;
	int e = fold_put_fold(out, &begin, &ext, s->rings[0]);
	return e ? e : fold_open_levels(t, out, s->rings[0]);
}

int fold_window_write(struct fold_window *t, const struct fold_slots *s, struct fold_out *out)
{
	int e = open_block(t, s, out);
	for (size_t i = 0; !e && i < s->count; i++, t->at++) {
		const struct mt_event *slot = &s->slots[i];
		if (slot->kind == MT_EXT)
			continue; /* goes where its first slot went */
		e = slot->kind == MT_FOLD ? take_fold(t, slot, out, s->rings[i]) : write_slot(t, s, i, out);
		t->last_ticks = slot->ticks;
		bool low = has_bit(t->lows, t->at - t->first);
		if (!e && (low || t->at - t->level_at >= LEVEL_SLOTS))
			e = fold_put_levels(t, low, out, s->rings[i]);
	}
	return e;
}

static int put_sum(struct fold_window *t, const struct sum *s, struct fold_out *out)
{
	bool *last = last_omitted(t, space_of_what(s->what), s->thread);
	const struct mt_event slot = { .kind = MT_FOLD,
				       .hook = s->hook & 1023,
				       .ticks = t->last_ticks,
				       .addr = s->count,
				       .size = s->size & MT_MAX_SIZE,
				       .node = s->node,
				       .node2 = s->node2 };
	const struct mt_ext_device ext = { .stream = s->bytes,
					   .other = s->temporary,
					   .class = MT_FOLD_SUM,
					   .device = s->device & 0xffff,
					   .source = last && *last,
					   .status = s->thread,
					   .capture = s->what };
	return last ? fold_put_fold(out, &slot, &ext, out->rings[0]) : -MT_EMEMORY;
}

size_t fold_window_sums(const struct fold_window *t)
{
	return t->sums.count;
}

/* The most that was left out at once goes into its first two slots. */
static void complete_begin(struct fold_window *t, struct fold_out *out)
{
	struct mt_ext_device ext;
	memcpy(&ext, &out->slots[1], sizeof(ext));
	out->slots[0].addr = t->before[0] + t->most_bytes[0];
	ext.stream = t->before[1] + t->most_bytes[1];
	memcpy(&out->slots[1], &ext, sizeof(ext));
}

int fold_window_finish(struct fold_window *t, struct fold_out *out)
{
	const struct mt_event end = { .kind = MT_FOLD, .ticks = t->last_ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_END };
	if (!t->open)
		return 0;
	t->open = false;
	complete_begin(t, out);
	int e = fold_end_levels(t, out);
	for (size_t i = 0; !e && i < t->sums.count; i++)
		e = put_sum(t, &t->sums.list[i], out);
	sums_clear(&t->sums);
	return e ? e : fold_put_fold(out, &end, &ext, out->rings[0]);
}
