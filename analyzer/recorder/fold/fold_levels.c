/*
 * What a device's pool has, with what is left out: between two slots LEVEL, which stand where a thread goes to another
 * part of its loop and at low points, its lowest and highest point are known, so that those of steps are what they
 * were.
 */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

static bool is_pool(enum event_space space)
{
	return space == SPACE_POOL || space == SPACE_WORKSPACE;
}

int fold_begin_tracks(struct fold_window *t)
{
	int e = vec_reserve(t->tracks, t->track_room, t->device_room);
	blocks_fini(&t->pool);
	for (size_t i = 0; !e && t->level && i < t->device_room; i++) {
		t->tracks[i] = (struct fold_track){ 0 };
		t->tracks[i].live = t->tracks[i].now = t->devices[i] ? t->devices[i]->pool : 0;
	}
	for (size_t i = 0; !e && t->level && t->live.entries && i <= t->live.mask; i++) {
		struct block b = t->live.entries[i];
		b.thread = 0;
		if (b.addr && is_pool((enum event_space)(b.addr >> 56)))
			e = blocks_put(&t->pool, &b);
	}
	return e;
}

static int put_level(struct fold_window *t, uint32_t device, struct fold_track *k, bool low, struct fold_out *out,
		     uint32_t ring)
{
	const struct mt_event slot = {
		.kind = MT_FOLD, .ticks = t->last_ticks, .addr = k->low, .size = k->high & MT_MAX_SIZE
	};
	const struct mt_ext_device ext = { .class = MT_FOLD_LEVEL,
					   .device = device & 0xffff,
					   .stream = k->now,
					   .other = t->left_out,
					   .source = low,
					   .capture = MT_CLASS_POOL };
	t->left_out = 0;
	k->low = k->high = k->now;
	k->open = true;
	k->changed = false;
	return fold_put_fold(out, &slot, &ext, ring);
}

int fold_put_levels(struct fold_window *t, bool low, struct fold_out *out, uint32_t ring)
{
	const struct mt_event slot = { .kind = MT_FOLD, .ticks = t->last_ticks };
	const struct mt_ext_device ext = { .class = MT_FOLD_LEVEL, .other = t->left_out, .source = low };
	bool any = false;
	int e = 0;
	t->level_at = t->at;
	for (uint32_t i = 0; i < t->track_room && !e; i++)
		if (t->tracks[i].open && (t->tracks[i].changed || low)) {
			e = put_level(t, i, &t->tracks[i], low, out, ring);
			any = true;
		}
	if (e || any || (!low && !t->left_out))
		return e;
	t->left_out = 0;
	return fold_put_fold(out, &slot, &ext, ring);
}

/* What was left out before goes on living. */
int fold_open_levels(struct fold_window *t, struct fold_out *out, uint32_t ring)
{
	int e = 0;
	for (uint32_t i = 0; i < t->track_room && !e; i++)
		if (t->tracks[i].left_out)
			e = put_level(t, i, &t->tracks[i], false, out, ring);
	return e;
}

int fold_end_levels(struct fold_window *t, struct fold_out *out)
{
	int e = fold_put_levels(t, false, out, out->rings[0]);
	for (uint32_t i = 0; i < t->track_room; i++)
		t->tracks[i].open = false;
	return e;
}

static void move(struct fold_track *k, int64_t bytes)
{
	k->live += (uint64_t)bytes;
	if (k->given)
		return;
	k->now = k->live;
	k->low = k->now < k->low ? k->now : k->low;
	k->high = k->now > k->high ? k->now : k->high;
	k->changed = true;
}

static int open_track(struct fold_window *t, uint32_t device, struct fold_track *k, struct fold_out *out, uint32_t ring)
{
	if (k->open)
		return 0;
	k->low = k->high = k->now;
	return put_level(t, device, k, false, out, ring);
}

static int track_alloc(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext,
		       enum event_space space, bool left_out, struct fold_out *out, uint32_t ring)
{
	int e = vec_reserve(t->tracks, t->track_room, ext->device + 1ul);
	if (e)
		return e;
	struct fold_track *k = &t->tracks[ext->device];
	const struct block b = {
		.addr = fold_key(space, ext->device, s->addr), .size = s->size, .site = ext->device, .thread = left_out
	};
	struct block *old = blocks_find(&t->pool, b.addr);
	if (left_out)
		e = open_track(t, ext->device, k, out, ring);
	if (old) {
		move(k, -(int64_t)old->size);
		blocks_remove(&t->pool, old);
	}
	move(k, (int64_t)s->size);
	k->left_out += left_out;
	return e ? e : blocks_put(&t->pool, &b);
}

static void track_end(struct fold_window *t, struct block *b)
{
	struct fold_track *k = &t->tracks[b->site];
	k->left_out -= b->thread;
	move(k, -(int64_t)b->size);
	blocks_remove(&t->pool, b);
}

/* Blocks move when one of them goes: until there is none. */
static void track_reset(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext)
{
	enum event_space space = s->addr && s->addr < MT_CLASSES ? fold_space_of((unsigned)s->addr) : SPACES;
	for (size_t i = 0; t->pool.entries && i <= t->pool.mask;) {
		struct block *b = &t->pool.entries[i];
		if (b->addr && (!ext->device || ext->device == b->site) && (!s->addr || b->addr >> 56 == space))
			track_end(t, b);
		else
			i++;
	}
}

/* A pool's frees are never undone. */
int fold_track(struct fold_window *t, const struct mt_event *s, bool left_out, struct fold_out *out, uint32_t ring)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	enum event_space space = fold_space_of(ext.class);
	if (s->kind == MT_DEVICE_RESET) {
		track_reset(t, s, &ext);
	} else if (is_pool(space) && s->kind == MT_DEVICE_ALLOC) {
		return track_alloc(t, s, &ext, space, left_out, out, ring);
	} else if (is_pool(space) && s->kind == MT_DEVICE_FREE) {
		struct block *b = fold_find(t, &t->pool, space, ext.device, s->addr);
		if (b)
			track_end(t, b);
	}
	return 0;
}

int fold_take_level(struct fold_window *t, const struct mt_event *s, const struct mt_ext_device *ext,
		    struct fold_out *out, uint32_t ring)
{
	int e = vec_reserve(t->tracks, t->track_room, ext->device + 1ul);
	struct fold_track *k = e ? NULL : &t->tracks[ext->device];
	t->left_out += ext->other;
	if (!e && ext->capture) {
		bool first = !k->open;
		k->low = first || s->addr < k->low ? s->addr : k->low;
		k->high = first || s->size > k->high ? s->size : k->high;
		k->now = ext->stream;
		k->given = k->changed = true;
		e = first ? put_level(t, ext->device, k, false, out, ring) : 0;
	}
	return e || !ext->source ? e : fold_put_levels(t, true, out, ring);
}
