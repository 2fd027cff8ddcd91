#include "analyzer/thin.h"

#include "analyzer/blocks.h"
#include "analyzer/vec.h"

#define SLICE_SLOTS (1u << 20) /* of which the highest moment is kept */
#define UNDO_DEPTH  4u         /* frees of a ring that may still be undone */

/* A block that was allocated and freed in the window. */
struct pair { uint64_t alloc, free; };

/* A free that may still be undone. addr 0 = nothing. */
struct freed {
	struct block block;
	uint64_t place;
	bool short_lived;
};

struct ring {
	struct freed freed[UNDO_DEPTH];
	unsigned next;
};

/* What is left out of one stack. */
struct sum {
	uint32_t node, node2, thread, hook;
	uint64_t size;               /* of each; or the least that has as many bits */
	uint64_t count, bytes, temporary;
};

/* A slot's place counts the slots that were looked at, from 1 on. In a struct block `ns` is the place of its allocation, 0 of one
 * that must be kept, and `site` what `small` was then. */
struct thin {
	bool exact_sizes;
	uint64_t *forks;
	size_t fork_count, next_fork;

	/* looking */
	unsigned level;
	struct blocks live;
	uint64_t live_bytes, place, first; /* first: place of the window's first slot */
	uint32_t small;              /* small blocks' bytes so far in units of 16, modulo 2^32 */
	uint64_t kept;               /* what was allocated up to there was alive when it mattered, or before the window */
	uint64_t slice, peak_bytes, peak; /* first slot of the slice; its highest moment so far */
	struct pair *pairs;          /* that were alive at `peak` and have been freed since */
	size_t pair_count, pair_room;
	struct ring *rings;
	size_t ring_room;
	uint64_t *last;              /* by thread: address of its latest allocation */
	size_t last_room;
	uint64_t *omit, *temporary;  /* a bit for each slot of the window */
	size_t omit_room, temporary_room;

	/* writing */
	uint64_t at;                 /* place of the next slot */
	struct blocks omitted;       /* those that are alive */
	uint64_t omitted_bytes, most_bytes, before; /* alive now; most in this block; as earlier foldings say */
	bool *last_omitted;          /* by thread: its latest allocation is left out */
	size_t last_omitted_room;
	struct sum *sums;
	size_t sum_count, sum_room;
	uint32_t *index;             /* by hash: sum + 1 */
	size_t mask;
	uint64_t last_ticks;
	bool open;                   /* BEGIN is there */
};

struct thin *thin_new(bool exact_sizes, const uint64_t *forks, size_t count)
{
	struct thin *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->exact_sizes = exact_sizes;
	t->forks = malloc((count + 1) * sizeof(*t->forks));
	if (!t->forks) {
		free(t);
		return NULL;
	}
	if (count)
		memcpy(t->forks, forks, count * sizeof(*forks));
	t->fork_count = count;
	return t;
}

void thin_free(struct thin *t)
{
	if (!t)
		return;
	blocks_fini(&t->live);
	blocks_fini(&t->omitted);
	free(t->forks);
	free(t->pairs);
	free(t->rings);
	free(t->last);
	free(t->omit);
	free(t->temporary);
	free(t->last_omitted);
	free(t->sums);
	free(t->index);
	free(t);
}

void thin_out_fini(struct thin_out *out)
{
	free(out->slots);
	free(out->rings);
	*out = (struct thin_out){ 0 };
}

/* ---- which pairs ----------------------------------------------------------------------------------------- */

static void set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= 1ull << i % 64; }
static bool has_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> i % 64 & 1; }

static bool is_last_level(const struct thin *t) { return t->level >= THIN_LEVELS; }

/* The largest block that is left out. */
static uint64_t most_size(const struct thin *t)
{
	return is_last_level(t) ? UINT64_MAX : 4096ull << 4 * (t->level - 1);
}

/* How many bytes of blocks that small may be allocated while it lives. */
static uint64_t most_life(const struct thin *t)
{
	uint64_t part = t->live_bytes >> (11 - 2 * t->level), least = 0x40000ull << 2 * (t->level - 1);
	return part > least ? part : least;
}

static bool is_short_lived(const struct thin *t, const struct block *b)
{
	if (!t->level || b->ns < t->first || b->size > most_size(t))
		return false;
	return is_last_level(t) || (uint64_t)(t->small - b->site) * 16 <= most_life(t);
}

static void omit(struct thin *t, struct pair p)
{
	set_bit(t->omit, p.alloc - t->first);
	set_bit(t->omit, p.free - t->first);
}

/* Its free is final. */
static int settle(struct thin *t, const struct freed *f)
{
	const struct pair p = { f->block.ns, f->place };
	if (!f->block.addr || !f->short_lived || p.alloc <= t->kept || p.alloc < t->first)
		return 0;
	if (p.alloc > t->peak) {
		omit(t, p);
		return 0;
	}
	int e = vec_reserve_raw(t->pairs, t->pair_room, t->pair_count + 1);
	if (!e)
		t->pairs[t->pair_count++] = p;
	return e;
}

/* A higher moment: who was alive at the one before need not be kept for its sake. */
static void new_peak(struct thin *t)
{
	t->peak_bytes = t->live_bytes;
	t->peak = t->place;
	for (size_t i = 0; i < t->pair_count; i++)
		omit(t, t->pairs[i]);
	t->pair_count = 0;
}

static void begin_slice(struct thin *t)
{
	t->kept = t->peak > t->kept ? t->peak : t->kept;
	t->pair_count = 0;
	t->slice = t->place;
	t->peak = t->place;
	t->peak_bytes = t->live_bytes;
}

/* ---- looking --------------------------------------------------------------------------------------------- */

int thin_begin(struct thin *t, unsigned level)
{
	t->level = level;
	t->first = t->at = t->place + 1;
	t->kept = t->place;
	t->pair_count = 0;
	begin_slice(t);
	if (t->omit_room)
		memset(t->omit, 0, t->omit_room * sizeof(*t->omit));
	if (t->temporary_room)
		memset(t->temporary, 0, t->temporary_room * sizeof(*t->temporary));
	return 0;
}

static int look_alloc(struct thin *t, const struct mt_event *s, uint32_t thread)
{
	struct block b = { .addr = s->addr, .size = s->size, .ns = t->place, .site = t->small, .thread = thread };
	struct block *old = blocks_find(&t->live, s->addr);
	int e = vec_reserve(t->last, t->last_room, thread + 1ul);
	if (e)
		return e;
	if (old) { /* its free was not seen: both stay, so that the model sees it as well */
		t->live_bytes -= old->size;
		blocks_remove(&t->live, old);
		b.ns = 0;
	}
	if (t->live.count >= THIN_MAX_LIVE)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, "too many live blocks");
	t->last[thread] = s->addr;
	if (!t->level || is_last_level(t) || s->size <= most_size(t))
		t->small += (uint32_t)(s->size / 16 + 1);
	t->live_bytes += s->size;
	if (t->live_bytes > t->peak_bytes)
		new_peak(t);
	return blocks_put(&t->live, &b);
}

static int look_free(struct thin *t, const struct mt_event *s, uint32_t ring)
{
	int e = vec_reserve(t->rings, t->ring_room, ring + 1ul);
	if (e)
		return e;
	struct ring *r = &t->rings[ring];
	struct freed *f = &r->freed[r->next++ % UNDO_DEPTH];
	e = settle(t, f);
	*f = (struct freed){ 0 };
	struct block *b = blocks_find(&t->live, s->addr);
	if (e || !b)
		return e;
	*f = (struct freed){ *b, t->place, is_short_lived(t, b) };
	if (t->last[b->thread] == b->addr && !s->size) {
		set_bit(t->temporary, t->place - t->first);
		if (b->ns >= t->first)
			set_bit(t->temporary, b->ns - t->first);
	}
	t->live_bytes -= b->size;
	blocks_remove(&t->live, b);
	return 0;
}

static int look_undo(struct thin *t, const struct mt_event *s, uint32_t ring)
{
	for (unsigned i = 1; ring < t->ring_room && i <= UNDO_DEPTH; i++) {
		struct freed *f = &t->rings[ring].freed[(t->rings[ring].next - i) % UNDO_DEPTH];
		if (f->block.addr != s->addr)
			continue;
		struct block b = f->block;
		f->block.addr = 0;
		if (blocks_find(&t->live, b.addr))
			return 0;
		b.ns = 0;
		t->live_bytes += b.size;
		if (t->live_bytes > t->peak_bytes)
			new_peak(t);
		return blocks_put(&t->live, &b);
	}
	return 0;
}

/* Whoever speaks of a block wants to find it. */
static void look_mark(struct thin *t, const struct mt_event *s, const struct mt_event *next)
{
	struct mt_ext_device ext;
	memcpy(&ext, next, sizeof(ext));
	struct block *b = ext.class == MT_MARK_LABEL ? blocks_find(&t->live, s->addr) : NULL;
	if (b)
		b->ns = 0;
}

static int look_fold(struct thin *t, const struct mt_event *next)
{
	struct mt_ext_device ext;
	memcpy(&ext, next, sizeof(ext));
	int e = ext.class == MT_FOLD_SUM && ext.source ? vec_reserve(t->last, t->last_room, ext.status + 1ul) : 0;
	if (!e && ext.class == MT_FOLD_SUM && ext.source)
		t->last[ext.status] = 0;
	return e;
}

static int look_slot(struct thin *t, const struct thin_slots *s, size_t i)
{
	const struct mt_event *slot = &s->slots[i];
	switch (slot->kind) {
	case MT_ALLOC: return look_alloc(t, slot, s->threads[i]);
	case MT_FREE:  return look_free(t, slot, s->rings[i]);
	case MT_UNDO:  return look_undo(t, slot, s->rings[i]);
	case MT_MARK:
		look_mark(t, slot, slot + 1);
		return 0;
	case MT_FOLD:  return look_fold(t, slot + 1);
	default:       return 0;
	}
}

/* What is alive now stays. */
static void pass_forks(struct thin *t, uint64_t ticks)
{
	while (t->next_fork < t->fork_count && t->forks[t->next_fork] <= ticks) {
		t->next_fork++;
		t->kept = t->place - 1;
	}
}

int thin_look(struct thin *t, const struct thin_slots *s)
{
	size_t words = (t->place + s->count - t->first) / 64 + 1;
	int e = vec_reserve(t->omit, t->omit_room, words);
	if (!e)
		e = vec_reserve(t->temporary, t->temporary_room, words);
	for (size_t i = 0; !e && i < s->count; i++) {
		t->place++;
		if (i + 16 < s->count)
			blocks_prefetch(&t->live, s->slots[i + 16].addr);
		if (s->slots[i].kind == MT_EXT)
			continue;
		pass_forks(t, s->slots[i].ticks);
		e = look_slot(t, s, i);
		if (t->place - t->slice >= SLICE_SLOTS)
			begin_slice(t);
	}
	return e;
}

/* What may still be undone stays, and who was alive at the last slice's peak. */
int thin_decide(struct thin *t)
{
	for (size_t i = 0; i < t->ring_room; i++)
		for (unsigned k = 0; k < UNDO_DEPTH; k++)
			t->rings[i].freed[k].short_lived = false;
	t->pair_count = 0;
	return 0;
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

static uint64_t sum_hash(const struct sum *s)
{
	uint64_t h = ((uint64_t)s->node << 32 | s->node2) * 0x9E3779B97F4A7C15ull;
	h ^= (s->size << 24 ^ (uint64_t)s->thread << 10 ^ s->hook) * 0xD6E8FEB86659FD93ull;
	h ^= h >> 32;
	return h * 0x9E3779B97F4A7C15ull >> 20;
}

static bool same_sum(const struct sum *a, const struct sum *b)
{
	return a->node == b->node && a->node2 == b->node2 && a->thread == b->thread && a->hook == b->hook && a->size == b->size;
}

static int grow_index(struct thin *t)
{
	size_t mask = t->index ? 2 * t->mask + 1 : 1023;
	uint32_t *index = calloc(mask + 1, sizeof(*index));
	if (!index)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (uint32_t n = 0; n < t->sum_count; n++) {
		size_t i = sum_hash(&t->sums[n]) & mask;
		while (index[i])
			i = (i + 1) & mask;
		index[i] = n + 1;
	}
	free(t->index);
	t->index = index;
	t->mask = mask;
	return 0;
}

static int add_sum(struct thin *t, const struct sum *more)
{
	if ((!t->index || t->sum_count * 2 >= t->mask) && grow_index(t))
		return -MT_EMEMORY;
	size_t i = sum_hash(more) & t->mask;
	for (; t->index[i]; i = (i + 1) & t->mask) {
		struct sum *s = &t->sums[t->index[i] - 1];
		if (!same_sum(s, more))
			continue;
		s->count += more->count;
		s->bytes += more->bytes;
		s->temporary += more->temporary;
		return 0;
	}
	int e = vec_reserve_raw(t->sums, t->sum_room, t->sum_count + 1);
	if (e)
		return e;
	t->sums[t->sum_count++] = *more;
	t->index[i] = (uint32_t)t->sum_count;
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static int put(struct thin_out *out, const struct mt_event *slot, uint32_t ring)
{
	int e = vec_reserve_raw(out->slots, out->slot_room, out->count + 1);
	if (!e)
		e = vec_reserve_raw(out->rings, out->ring_room, out->count + 1);
	if (e)
		return e;
	out->slots[out->count] = *slot;
	out->rings[out->count++] = ring;
	return 0;
}

static int put_fold(struct thin_out *out, const struct mt_event *slot, const struct mt_ext_device *ext, uint32_t ring)
{
	struct mt_event second;
	memcpy(&second, ext, sizeof(second));
	second.kind = MT_EXT;
	int e = put(out, slot, ring);
	return e ? e : put(out, &second, ring);
}

static uint64_t size_class(const struct thin *t, uint64_t size)
{
	return t->exact_sizes || !size ? size : 1ull << (63 - __builtin_clzll(size));
}

static int omit_alloc(struct thin *t, const struct mt_event *s, uint32_t thread)
{
	const struct sum sum = { .node = s->node, .node2 = s->node2, .thread = thread, .hook = s->hook,
				 .size = size_class(t, s->size), .count = 1, .bytes = s->size,
				 .temporary = has_bit(t->temporary, t->at - t->first) };
	const struct block b = { .addr = s->addr, .size = s->size };
	t->omitted_bytes += s->size;
	if (t->omitted_bytes > t->most_bytes)
		t->most_bytes = t->omitted_bytes;
	t->last_omitted[thread] = true;
	int e = add_sum(t, &sum);
	return e ? e : blocks_put(&t->omitted, &b);
}

static void omit_free(struct thin *t, uint64_t addr)
{
	struct block *b = blocks_find(&t->omitted, addr);
	if (!b)
		return;
	t->omitted_bytes -= b->size;
	blocks_remove(&t->omitted, b);
}

static int keep(struct thin *t, const struct thin_slots *s, size_t i, struct thin_out *out)
{
	struct mt_event slot = s->slots[i];
	if (slot.kind == MT_ALLOC)
		t->last_omitted[s->threads[i]] = false;
	else if (slot.kind == MT_FREE)
		slot.size = !has_bit(t->temporary, t->at - t->first);
	return put(out, &slot, s->rings[i]);
}

static int take_sum(struct thin *t, const struct mt_event *s, const struct mt_ext_device *ext)
{
	const struct sum sum = { .node = s->node, .node2 = s->node2, .thread = ext->status, .hook = s->hook, .size = s->size,
				 .count = s->addr, .bytes = ext->stream, .temporary = ext->other };
	int e = vec_reserve(t->last_omitted, t->last_omitted_room, ext->status + 1ul);
	if (e)
		return e;
	if (ext->source)
		t->last_omitted[ext->status] = true;
	return add_sum(t, &sum);
}

/* What an earlier folding said. */
static int take_fold(struct thin *t, const struct mt_event *s)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	if (ext.class == MT_FOLD_BEGIN && s->addr > t->before)
		t->before = s->addr;
	return ext.class == MT_FOLD_SUM ? take_sum(t, s, &ext) : 0;
}

/* BEGIN, which thin_finish() completes. */
static int open_block(struct thin *t, const struct thin_slots *s, struct thin_out *out)
{
	const struct mt_event begin = { .kind = MT_FOLD, .ticks = s->slots[0].ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_BEGIN };
	if (t->open || !s->count)
		return 0;
	t->open = true;
	t->before = 0;
	t->most_bytes = t->omitted_bytes;
	return put_fold(out, &begin, &ext, s->rings[0]);
}

int thin_write(struct thin *t, const struct thin_slots *s, struct thin_out *out)
{
	int e = open_block(t, s, out);
	for (size_t i = 0; !e && i < s->count; i++, t->at++) {
		const struct mt_event *slot = &s->slots[i];
		if (slot->kind == MT_ALLOC)
			e = vec_reserve(t->last_omitted, t->last_omitted_room, s->threads[i] + 1ul);
		if (e)
			break;
		if (slot->kind == MT_FOLD) {
			e = take_fold(t, slot);
			i++;
			t->at++;
		} else if (!has_bit(t->omit, t->at - t->first)) {
			e = keep(t, s, i, out);
		} else if (slot->kind == MT_ALLOC) {
			e = omit_alloc(t, slot, s->threads[i]);
		} else {
			omit_free(t, slot->addr);
		}
		if (slot->kind != MT_EXT)
			t->last_ticks = slot->ticks;
	}
	return e;
}

static int put_sum(const struct thin *t, const struct sum *s, struct thin_out *out)
{
	const struct mt_event slot = { .kind = MT_FOLD, .hook = s->hook & 1023, .ticks = t->last_ticks, .addr = s->count,
				       .size = s->size & MT_MAX_SIZE, .node = s->node, .node2 = s->node2 };
	const struct mt_ext_device ext = { .stream = s->bytes, .other = s->temporary, .class = MT_FOLD_SUM,
					   .source = t->last_omitted[s->thread], .status = s->thread };
	return put_fold(out, &slot, &ext, out->rings[0]);
}

size_t thin_sums(const struct thin *t) { return t->sum_count; }

int thin_finish(struct thin *t, struct thin_out *out)
{
	const struct mt_event end = { .kind = MT_FOLD, .ticks = t->last_ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_END };
	int e = 0;
	if (!t->open)
		return 0;
	t->open = false;
	out->slots[0].addr = t->before + t->most_bytes;
	for (size_t i = 0; !e && i < t->sum_count; i++)
		e = put_sum(t, &t->sums[i], out);
	t->sum_count = 0;
	if (t->index)
		memset(t->index, 0, (t->mask + 1) * sizeof(*t->index));
	return e ? e : put_fold(out, &end, &ext, out->rings[0]);
}
