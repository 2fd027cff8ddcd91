/* Mappings: one that is made and taken away whole can be left out. After whatever else happens to mappings the highest
 * moment is sought anew, so that it need not be known how many bytes that was about. */
#include "analyzer/recorder/fold/fold_window_internal.h"

#include "analyzer/util/vec.h"

#include <string.h>

static void begin_anew(struct fold_window *t)
{
	watch_restart(t, &t->peak[MODEL_MAP], GROUP_MAP, t->bytes[MODEL_MAP], 0);
	for (int c = 0; c < MAP_CLASSES; c++)
		watch_restart(t, &t->map_peak[c], GROUP_MAP, t->map_bytes[c], 0);
}

static void change(struct fold_window *t, const struct range *r, int sign)
{
	uint64_t bytes = (r->end - r->start) * (uint64_t)sign;
	t->map_bytes[r->class] += bytes;
	if (map_class_counts(r->class))
		t->bytes[MODEL_MAP] += bytes;
	if (sign < 0)
		return;
	watch_rise(t, &t->map_peak[r->class], t->map_bytes[r->class], 0);
	watch_rise(t, &t->peak[MODEL_MAP], t->bytes[MODEL_MAP], 0);
}

static int add_range(struct fold_window *t, const struct range *r)
{
	change(t, r, 1);
	return ranges_put(&t->maps, r);
}

static void drop_range(struct fold_window *t, const struct range *r)
{
	change(t, r, -1);
	ranges_remove(&t->maps, r);
}

/* What is left of them is never unmapped whole. */
static int cut(struct fold_window *t, uint64_t start, uint64_t end)
{
	int e = 0;
	for (const struct range *r; !e && start < end && (r = ranges_overlap(&t->maps, start, end)) != NULL;) {
		struct range left = *r, right = *r;
		left.ns = right.ns = 0;
		left.end = start;
		right.start = end;
		drop_range(t, r);
		e = left.start < left.end ? add_range(t, &left) : 0;
		if (!e && right.start < right.end)
			e = add_range(t, &right);
	}
	return e;
}

/* Of a pair nothing would be left that a change is about. */
static int look_given(struct fold_window *t, uint64_t start, uint64_t end)
{
	int e = 0;
	for (const struct range *r; !e && start < end && (r = ranges_overlap(&t->maps, start, end)) != NULL;) {
		struct range stays = *r;
		stays.ns = 0;
		start = r->end;
		ranges_remove(&t->maps, r);
		e = ranges_put(&t->maps, &stays);
	}
	return e;
}

static int look_protect(struct fold_window *t, const struct range *by)
{
	int e = look_given(t, by->start, by->end);
	uint64_t at = by->start;
	for (const struct range *r; !e && at < by->end && (r = ranges_overlap(&t->maps, at, by->end)) != NULL;) {
		struct range part = *r;
		part.start = r->start > at ? r->start : at;
		part.end = at = r->end < by->end ? r->end : by->end;
		part.class = by->prot ? part.usable : MAP_RESERVED;
		if (part.class == r->class)
			continue;
		e = cut(t, part.start, part.end);
		if (!e)
			e = add_range(t, &part);
	}
	begin_anew(t);
	return e;
}

int scan_map(struct fold_window *t, const struct mt_event *s, uint32_t ring, uint32_t thread)
{
	struct mt_ext_map ext;
	memcpy(&ext, s + 1, sizeof(ext));
	struct range r = { .start = s->addr,
			   .end = map_end_of(s->addr, s->size),
			   .ns = t->place,
			   .thread = thread,
			   .class = (uint8_t)map_class_of(&ext) };
	struct ring *of = fold_ring(t, ring);
	if (!of || r.start == r.end)
		return of ? 0 : -MT_EMEMORY;
	r.prot = (uint8_t)ext.prot;
	r.usable = (uint8_t)map_usable_class_of(&ext);
	if (map_is_change(&ext))
		return ext.flags & MT_MAP_PROTECT ? look_protect(t, &r) : look_given(t, r.start, r.end);
	bool plain =
		!(ext.flags & (MT_MAP_FIXED | MT_MAP_MOVED | MT_MAP_KEPT)) && !ranges_overlap(&t->maps, r.start, r.end);
	if (ext.flags & MT_MAP_MOVED)
		of->unmap.short_lived = false;
	if (!plain || !map_class_counts(r.class))
		r.ns = 0;
	int e = cut(t, r.start, r.end);
	if (!e)
		e = add_range(t, &r);
	if (!plain)
		begin_anew(t);
	return e ? e : fold_set_last(t, MODEL_MAP, thread, r.start);
}

int scan_unmap(struct fold_window *t, const struct mt_event *s, uint32_t ring)
{
	uint64_t end = s->size ? map_end_of(s->addr, s->size) : ranges_until(&t->maps, s->addr);
	struct ring *of = fold_ring(t, ring);
	int e = of ? pairs_settle(t, &of->unmap) : -MT_EMEMORY;
	if (e)
		return e;
	for (unsigned i = 0; i < UNDO_DEPTH; i++) /* an undo of this address is this one's from now on */
		of->freed[i].addr = of->freed[i].addr == s->addr ? 0 : of->freed[i].addr;
	of->unmap = (struct recent_free){ .addr = s->addr, .class = SPACE_MAP };
	const struct range *r = ranges_overlap(&t->maps, s->addr, end);
	if (!r || r->start != s->addr || r->end != end) {
		e = cut(t, s->addr, end);
		begin_anew(t);
		return e;
	}
	of->unmap.block = (struct block){ r->start, r->end - r->start, r->ns, r->class, r->thread };
	of->unmap.place = t->place;
	of->unmap.short_lived = t->level > 1 && r->ns >= t->first;
	if (fold_was_last(t, MODEL_MAP, r->thread, r->start))
		fold_mark_temporary(t, r->ns);
	drop_range(t, r);
	return 0;
}

bool scan_undo_unmap(struct fold_window *t, uint64_t addr, uint32_t ring)
{
	struct ring *of = ring < t->ring_room ? &t->rings[ring] : NULL;
	if (!of || of->unmap.addr != addr)
		return false;
	const struct block *b = &of->unmap.block;
	struct range r = { .start = b->addr,
			   .end = b->addr + b->size,
			   .thread = b->thread,
			   .class = (uint8_t)b->site,
			   .usable = (uint8_t)b->site };
	of->unmap.addr = 0;
	of->unmap.short_lived = false;
	if (r.start && cut(t, r.start, r.end) == 0)
		add_range(t, &r);
	begin_anew(t);
	return true;
}
