/*
 * Which pairs are left out. A pair that was alive at one of the moments watched stays, unless a higher moment comes in
 * the same slice: until then it waits, counted by the moments that it was alive at.
 */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#define LEAST_APART    64u   /* slots between two low points, times two to the level */
#define LOW_POINT_PART 8     /* of the range of the slice before: what must rise behind a low point */
#define FOLD_LARGE     4096u /* of the heap: stays where it was alive at a low point */

static void omit(struct fold_window *t, const struct pair *p)
{
	set_bit(t->omit, p->alloc - t->first);
	set_bit(t->omit, p->free - t->first);
}

/* ---- moments --------------------------------------------------------------------------------------------- */

/* Who was alive at the moment before need not be kept for its sake. */
static void move_watch(struct fold_window *t, struct watch *w, uint64_t bytes, uint64_t more)
{
	for (size_t i = 0; i < w->count; i++) {
		struct pair *p = &t->pairs[w->pairs[i]];
		if (--p->refs == 0)
			omit(t, p);
	}
	w->count = 0;
	w->place = t->place;
	w->bytes = bytes;
	w->more = more;
}

void watch_rise(struct fold_window *t, struct watch *w, uint64_t bytes, uint64_t more)
{
	if (bytes > w->bytes || (bytes == w->bytes && more > w->more))
		move_watch(t, w, bytes, more);
}

static void keep_to(uint64_t *kept, uint64_t place)
{
	*kept = place > *kept ? place : *kept;
}

void watch_restart(struct fold_window *t, struct watch *w, enum fold_group group, uint64_t bytes, uint64_t more)
{
	keep_to(&t->kept[group], w->place);
	w->count = 0; /* those that wait for it stay */
	w->place = t->place;
	w->bytes = bytes;
	w->more = more;
}

void fold_keep(struct fold_window *t, enum fold_group group)
{
	keep_to(&t->kept[group], t->place);
}

void watch_fini(struct watch *w)
{
	free(w->pairs);
	*w = (struct watch){ 0 };
}

/* ---- low points ------------------------------------------------------------------------------------------ */

static void confirm(struct fold_window *t, struct low_point *d)
{
	d->confirmed = true;
	d->last = d->low.place;
	d->low.count = 0;
	keep_to(&t->kept_low, d->low.place);
	if (d->low.place >= t->first)
		set_bit(t->lows, d->low.place - t->first);
}

void low_point_change(struct fold_window *t, struct low_point *d, uint64_t bytes)
{
	d->least = bytes < d->least ? bytes : d->least;
	d->most = bytes > d->most ? bytes : d->most;
	d->high = bytes > d->high ? bytes : d->high;
	if (d->confirmed ? d->high - bytes > d->rise : bytes < d->low.bytes) {
		move_watch(t, &d->low, bytes, 0);
		d->high = bytes;
		d->confirmed = false;
	} else if (!d->confirmed && bytes - d->low.bytes > d->rise &&
		   d->low.place - d->last >= LEAST_APART << t->level) {
		confirm(t, d);
	}
}

static void begin_tide(struct fold_window *t, struct low_point *d, uint64_t bytes)
{
	uint64_t rise = (d->most - d->least) / LOW_POINT_PART;
	d->rise = rise ? rise : d->rise;
	d->least = d->most = d->high = bytes;
	watch_restart(t, &d->low, GROUP_DEVICE, bytes, 0);
	d->confirmed = false;
}

/* ---- slices ---------------------------------------------------------------------------------------------- */

void pairs_begin_slice(struct fold_window *t)
{
	static const enum fold_group groups[MODEL_KINDS] = { [MODEL_MAP] = GROUP_MAP,
							     [MODEL_PINNED] = GROUP_DEVICE,
							     [MODEL_DEVICE] = GROUP_DEVICE,
							     [MODEL_POOL] = GROUP_DEVICE };
	for (int k = 0; k < MODEL_KINDS; k++)
		watch_restart(t, &t->peak[k], groups[k], t->bytes[k], 0);
	for (int c = 0; c < MAP_CLASSES; c++)
		watch_restart(t, &t->map_peak[c], GROUP_MAP, t->map_bytes[c], 0);
	for (size_t i = 0; i < t->device_room; i++) {
		struct fold_device *d = t->devices[i];
		if (!d)
			continue;
		watch_restart(t, &d->memory_peak, GROUP_DEVICE, d->memory, 0);
		watch_restart(t, &d->pool_peak, GROUP_DEVICE, d->pool, 0);
		watch_restart(t, &d->moment, GROUP_DEVICE, d->memory, d->pool);
		begin_tide(t, &d->low_point, d->pool);
	}
	t->pair_count = 0;
	t->slice = t->place;
}

void pairs_forget(struct fold_window *t)
{
	for (size_t i = 0; i < t->ring_room; i++) {
		struct ring *r = &t->rings[i];
		for (unsigned k = 0; k < UNDO_DEPTH; k++)
			r->freed[k].short_lived = r->device[k].short_lived = false;
		r->unmap.short_lived = false;
	}
	pairs_begin_slice(t);
}

/* ---- pairs ----------------------------------------------------------------------------------------------- */

static int wait_for(struct fold_window *t, struct watch *w, const struct pair *p, uint32_t *index)
{
	if (p->alloc > w->place || p->free <= w->place)
		return 0;
	int e = *index == UINT32_MAX ? vec_reserve_raw(t->pairs, t->pair_room, t->pair_count + 1) : 0;
	if (!e)
		e = vec_reserve_raw(w->pairs, w->room, w->count + 1);
	if (e)
		return e;
	if (*index == UINT32_MAX) {
		*index = (uint32_t)t->pair_count++;
		t->pairs[*index] = *p;
	}
	t->pairs[*index].refs++;
	w->pairs[w->count++] = *index;
	return 0;
}

/* Moments at which somebody asks for the owner of such a block. */
static int wait_for_all(struct fold_window *t, enum event_space space, const struct block *b, const struct pair *p,
			uint32_t *index)
{
	bool host = space <= SPACE_PINNED;
	struct fold_device *d = host ? NULL : t->devices[b->site];
	int e = wait_for(t, &t->peak[space_kind(space)], p, index);
	if (!e && space == SPACE_MAP)
		e = wait_for(t, &t->map_peak[b->site], p, index);
	if (!e && d)
		e = wait_for(t, space == SPACE_LINEAR ? &d->memory_peak : &d->pool_peak, p, index);
	if (!e && d)
		e = wait_for(t, &d->moment, p, index);
	for (size_t i = 0; !e && i < t->device_room && (space != SPACE_HEAP || b->size >= FOLD_LARGE); i++)
		if (t->devices[i])
			e = wait_for(t, &t->devices[i]->low_point.low, p, index);
	return e;
}

int pairs_settle(struct fold_window *t, const struct recent_free *f)
{
	const struct pair p = { f->block.ns, f->place, 0 };
	if (!f->block.addr || !f->short_lived || p.alloc < t->first)
		return 0;
	enum event_space space = (enum event_space)(f->class);
	enum fold_group group = space == SPACE_HEAP ? GROUP_HEAP : space == SPACE_MAP ? GROUP_MAP : GROUP_DEVICE;
	bool low = space != SPACE_HEAP || f->block.size >= FOLD_LARGE;
	if (p.alloc <= t->kept[group] || (low && p.alloc <= t->kept_low))
		return 0;
	uint32_t index = UINT32_MAX;
	int e = wait_for_all(t, space, &f->block, &p, &index);
	if (!e && index == UINT32_MAX)
		omit(t, &p);
	return e;
}
