/*
 * Memory of devices: pairs of the framework's pool, of linear and of pinned memory can be left out. As the model does,
 * a free names the device that the thread was on, which need not be the block's. What else the driver gives (arrays,
 * physical memory) is not counted here: when it changes the highest moments are sought anew.
 */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

#define CLEAN_UP 64 /* allocations behind a failure that say whether the process lived on */

/* One MT_DEVICE_* slot with its extension. */
struct event {
	const struct mt_event *slot;
	struct mt_ext_device ext;
	struct ring *ring;
	uint32_t thread;
};

struct fold_device *fold_device(struct fold_window *t, uint32_t id)
{
	if (vec_reserve(t->devices, t->device_room, id + 1ul))
		return NULL;
	if (!t->devices[id])
		t->devices[id] = calloc(1, sizeof(*t->devices[id]));
	return t->devices[id];
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

static void rise(struct fold_window *t, enum event_space space, struct fold_device *d, uint64_t size)
{
	enum model_kind kind = space_kind(space);
	t->bytes[kind] += size;
	watch_rise(t, &t->peak[kind], t->bytes[kind], 0);
	if (kind == MODEL_PINNED)
		return;
	*(kind == MODEL_POOL ? &d->pool : &d->memory) += size;
	if (kind == MODEL_POOL)
		watch_rise(t, &d->pool_peak, d->pool, 0);
	else
		watch_rise(t, &d->memory_peak, d->memory, 0);
	watch_rise(t, &d->moment, d->memory, d->pool);
	if (kind == MODEL_POOL)
		low_point_change(t, &d->low_point, d->pool);
}

static void drop(struct fold_window *t, enum event_space space, struct fold_device *d, uint64_t size)
{
	enum model_kind kind = space_kind(space);
	t->bytes[kind] -= size;
	if (kind == MODEL_DEVICE)
		d->memory -= size;
	if (kind != MODEL_POOL)
		return;
	d->pool -= size;
	low_point_change(t, &d->low_point, d->pool);
}

static void begin_anew(struct fold_window *t)
{
	watch_restart(t, &t->peak[MODEL_PINNED], GROUP_DEVICE, t->bytes[MODEL_PINNED], 0);
	watch_restart(t, &t->peak[MODEL_DEVICE], GROUP_DEVICE, t->bytes[MODEL_DEVICE], 0);
	for (size_t i = 0; i < t->device_room; i++) {
		struct fold_device *d = t->devices[i];
		if (!d)
			continue;
		watch_restart(t, &d->memory_peak, GROUP_DEVICE, d->memory, 0);
		watch_restart(t, &d->moment, GROUP_DEVICE, d->memory, d->pool);
	}
}

/* ---- segments -------------------------------------------------------------------------------------------- */

/* What a piece of the driver's memory is. All blocks in one that is a graph's are kept: there are sums of them. */
enum { PIECE_FREE = 0, PIECE_SEGMENT, PIECE_PRIVATE };

/* The first block of the pool in a piece makes it a segment: it stays, and so does the memory. False if there is
 * nothing to tell. */
static bool make_segments(struct fold_window *t, struct ranges *in, uint64_t start, uint64_t end, uint32_t linear,
			  bool private, struct range *last)
{
	bool tells = false;
	for (const struct range *r; start < end && (r = ranges_overlap(in, start, end)) != NULL; start = r->end) {
		struct block *b =
			linear != UINT32_MAX ? blocks_find(&t->live, fold_key(SPACE_LINEAR, linear, r->start)) : NULL;
		if (private && r->class != PIECE_PRIVATE)
			fold_keep(t, GROUP_DEVICE);
		tells |= private || r->class != PIECE_SEGMENT;
		((struct range *)r)->class = private || r->class == PIECE_PRIVATE ? PIECE_PRIVATE : PIECE_SEGMENT;
		*last = *r;
		if (b)
			b->ns = 0;
	}
	return tells;
}

/* A reserved range of addresses is a graph's as a whole: where one is, all that is mapped counts as such. */
static bool tells_segment(struct fold_window *t, uint32_t device, uint64_t start, uint64_t end, bool captured)
{
	struct range *last = &t->devices[device]->last;
	if (last->start <= start && end <= last->end && start < end && last->class == PIECE_SEGMENT && !captured)
		return false;
	bool linear = make_segments(t, &t->devices[device]->extents, start, end, device, captured, last);
	t->graphs |= captured && ranges_overlap(&t->mapped, start, end);
	return make_segments(t, &t->mapped, start, end, UINT32_MAX, captured || t->graphs, last) || linear || captured;
}

static void forget_last(struct fold_window *t)
{
	for (size_t i = 0; i < t->device_room; i++)
		if (t->devices[i])
			t->devices[i]->last = (struct range){ 0 };
}

static void remove_block(struct fold_window *t, struct block *b, enum event_space space, uint32_t device)
{
	drop(t, space, t->devices[device], b->size);
	blocks_remove(&t->live, b);
}

/* Linear memory where some is already: that has ended without a word. */
static int put_extent(struct fold_window *t, uint32_t device, const struct mt_event *s, bool *fresh)
{
	struct fold_device *d = t->devices[device];
	uint64_t end = device_end_of(s->addr, s->size);
	forget_last(t);
	for (const struct range *r; s->addr < end && (r = ranges_overlap(&d->extents, s->addr, end)) != NULL;) {
		struct block *b = blocks_find(&t->live, fold_key(SPACE_LINEAR, device, r->start));
		*fresh = false;
		if (b)
			remove_block(t, b, SPACE_LINEAR, device);
		ranges_remove(&d->extents, r);
	}
	return s->addr < end ? ranges_put(&d->extents, &(struct range){ .start = s->addr, .end = end }) : 0;
}

/* ---- allocations ----------------------------------------------------------------------------------------- */

/* What a failure waits for: device_ooms.c. */
static bool answers(struct fold_window *t, struct ring *r, enum event_space space, uint64_t size)
{
	bool yes = t->clean_up > 0 ||
		   (space == SPACE_LINEAR ? size && size == r->failed_bytes : space != SPACE_PINNED && r->failed);
	t->clean_up -= t->clean_up > 0;
	if (space == SPACE_POOL || space == SPACE_WORKSPACE)
		r->failed = false;
	return yes;
}

static int alloc(struct fold_window *t, const struct event *e, enum event_space space)
{
	const struct mt_event *s = e->slot;
	uint32_t id = e->ext.device;
	struct fold_device *d = fold_device(t, id);
	if (!d)
		return -MT_EMEMORY;
	struct block b = {
		.addr = fold_key(space, id, s->addr), .size = s->size, .ns = t->place, .site = id, .thread = e->thread
	};
	struct block *old = blocks_find(&t->live, b.addr);
	bool fresh = !old && d->seen[space] && id < 256;
	int error = fold_set_last(t, space_kind(space), e->thread, s->addr);
	d->seen[space] = true;
	if (old)
		remove_block(t, old, space, id);
	if (answers(t, e->ring, space, s->size))
		fresh = false;
	if (!error && space == SPACE_LINEAR)
		error = put_extent(t, id, s, &fresh);
	else if (space == SPACE_POOL || space == SPACE_WORKSPACE)
		fresh &= !tells_segment(t, id, s->addr, device_end_of(s->addr, s->size), e->ext.capture != 0);
	if (!fresh)
		b.ns = 0;
	rise(t, space, d, s->size);
	return error ? error : blocks_put(&t->live, &b);
}

static int look_alloc(struct fold_window *t, const struct event *e)
{
	enum event_space space = fold_space_of(e->ext.class);
	if (space != SPACES)
		return alloc(t, e, space);
	if (e->ext.class == MT_CLASS_ARRAY || e->ext.class == MT_CLASS_PHYSICAL)
		begin_anew(t);
	return e->ext.class == MT_CLASS_ARRAY ? fold_set_last(t, MODEL_DEVICE, e->thread, e->slot->addr) : 0;
}

/* ---- frees ----------------------------------------------------------------------------------------------- */

static bool is_short_lived(const struct fold_window *t, enum event_space space, const struct block *b)
{
	bool pool = space == SPACE_POOL || space == SPACE_WORKSPACE;
	if (!t->level || b->ns < t->first || (!pool && t->level < 2))
		return false;
	return !pool || t->level > 2 || b->size <= t->bytes[MODEL_POOL] >> (12 - 4 * t->level);
}

static void forget_extent(struct fold_window *t, uint32_t device, uint64_t addr)
{
	struct ranges *in = &t->devices[device]->extents;
	const struct range *r = ranges_overlap(in, addr, addr + 1);
	forget_last(t);
	if (r && r->start == addr)
		ranges_remove(in, r);
}

static int scan_free(struct fold_window *t, const struct event *e)
{
	enum event_space space = fold_space_of(e->ext.class);
	struct recent_free *f = &e->ring->device[e->ring->next_device++ % UNDO_DEPTH];
	int error = pairs_settle(t, f);
	*f = (struct recent_free){ .addr = e->slot->addr, .class = space };
	if (space == SPACES && (e->ext.class == MT_CLASS_ARRAY || e->ext.class == MT_CLASS_PHYSICAL))
		begin_anew(t);
	struct block *b = space != SPACES ? fold_find(t, &t->live, space, e->ext.device, e->slot->addr) : NULL;
	if (error || !b)
		return error;
	uint32_t device = b->site;
	f->block = *b;
	f->place = t->place;
	f->short_lived = is_short_lived(t, space, b);
	if (fold_was_last(t, space_kind(space), b->thread, e->slot->addr) && !e->slot->size)
		fold_mark_temporary(t, b->ns);
	remove_block(t, b, space, device);
	if (space == SPACE_LINEAR)
		forget_extent(t, device, e->slot->addr);
	return 0;
}

static int bring_back(struct fold_window *t, struct recent_free *f)
{
	struct block b = f->block;
	enum event_space space = (enum event_space)f->class;
	struct mt_event again = { .addr = f->addr, .size = b.size & MT_MAX_SIZE };
	bool fresh;
	f->addr = 0;
	f->short_lived = false;
	if (!b.addr || blocks_find(&t->live, b.addr))
		return 0;
	b.ns = 0;
	int e = space == SPACE_LINEAR ? put_extent(t, b.site, &again, &fresh) : 0;
	rise(t, space, t->devices[b.site], b.size);
	return e ? e : blocks_put(&t->live, &b);
}

static int scan_undo(struct fold_window *t, const struct event *e)
{
	enum event_space space = fold_space_of(e->ext.class);
	if (space == SPACES)
		begin_anew(t);
	for (unsigned i = 1; e->slot->addr && i <= UNDO_DEPTH; i++) {
		struct recent_free *f = &e->ring->device[(e->ring->next_device - i) % UNDO_DEPTH];
		if (f->addr == e->slot->addr && f->class == space)
			return bring_back(t, f);
	}
	return 0;
}

static bool is_reset(const struct fold_window *t, const struct block *b, const struct event *e, enum event_space *space)
{
	*space = (enum event_space)(b->addr >> 56);
	if (!b->addr || *space < SPACE_PINNED || *space >= SPACES_FOLDED || b->site >= t->device_room ||
	    (e->ext.device && e->ext.device != b->site))
		return false;
	return !e->slot->addr || (e->slot->addr < MT_CLASSES && fold_space_of((unsigned)e->slot->addr) == *space);
}

/* Blocks move when one of them goes: until there is none. */
static void look_reset(struct fold_window *t, const struct event *e)
{
	enum event_space space;
	for (size_t i = 0; t->live.entries && i <= t->live.mask;) {
		struct block *b = &t->live.entries[i];
		if (is_reset(t, b, e, &space)) {
			if (space == SPACE_LINEAR)
				forget_extent(t, b->site, b->addr ^ fold_key(SPACE_LINEAR, b->site, 0));
			remove_block(t, b, space, b->site);
		} else {
			i++;
		}
	}
	begin_anew(t);
}

/* ---- other events ---------------------------------------------------------------------------------------- */

static void unmap(struct fold_window *t, uint64_t start, uint64_t end)
{
	for (const struct range *r; start < end && (r = ranges_overlap(&t->mapped, start, end)) != NULL;)
		ranges_remove(&t->mapped, r);
	forget_last(t);
	begin_anew(t);
}

/* All that is alive on devices is what the report of a failure shows. */
static void scan_fail(struct fold_window *t, const struct event *e)
{
	enum event_space space = fold_space_of(e->ext.class);
	fold_keep(t, GROUP_DEVICE);
	t->clean_up = CLEAN_UP;
	if (space == SPACE_POOL || space == SPACE_WORKSPACE || space == SPACE_PINNED)
		return;
	e->ring->failed = true;
	e->ring->failed_bytes = e->slot->addr;
}

/* A block of the pool, of which only now is known where it lies. */
static int place(struct fold_window *t, const struct event *e)
{
	if (!fold_device(t, e->ext.device))
		return -MT_EMEMORY;
	tells_segment(t, e->ext.device, e->slot->addr, device_end_of(e->slot->addr, e->slot->size), false);
	return 0;
}

int scan_device(struct fold_window *t, const struct mt_event *s, uint32_t ring, uint32_t thread)
{
	struct range at;
	struct event e = { .slot = s, .ring = fold_ring(t, ring), .thread = thread };
	memcpy(&e.ext, s + 1, sizeof(e.ext));
	uint64_t end = device_end_of(s->addr, s->size ? s->size : 1);
	if (!e.ring)
		return -MT_EMEMORY;
	switch (s->kind) {
	case MT_DEVICE_ALLOC:
		return look_alloc(t, &e);
	case MT_DEVICE_FREE:
		return scan_free(t, &e);
	case MT_DEVICE_UNDO:
		return scan_undo(t, &e);
	case MT_DEVICE_MAP:
		if (e.ext.class == MT_CLASS_POOL)
			return place(t, &e);
		at = (struct range){ .start = s->addr, .end = device_end_of(s->addr, s->size) };
		unmap(t, at.start, at.end);
		return at.start < at.end ? ranges_put(&t->mapped, &at) : 0;
	case MT_DEVICE_FAIL:
		scan_fail(t, &e);
		break;
	case MT_DEVICE_INFO:
		fold_keep(t, GROUP_DEVICE);
		break;
	case MT_DEVICE_UNMAP:
		unmap(t, s->addr, end);
		break;
	case MT_DEVICE_RESET:
		look_reset(t, &e);
		break;
	default:
		break;
	}
	return 0;
}
