/* Where the driver's memory is, and which of it are the pool's segments. */
#include "analyzer/model/device_blocks.h"

#include "analyzer/model/pool_layout.h"
#include "analyzer/util/vec.h"

/* ---- extents --------------------------------------------------------------------------------------------- */

static void change_reserved(struct share *s, const struct extent *x, int64_t delta, uint64_t ns)
{
	const struct change c = { MODEL_DEVICE, BLOCK_NO_SITE, delta * (int64_t)x->bytes, delta, x->start, 0, x->ns };
	if (x->pool)
		share_change(s, LAYER_RESERVED, &c, ns);
	if (x->pool && delta > 0)
		share_count(s, LAYER_RESERVED, BLOCK_NO_SITE, x->bytes);
	if (x->pool && delta < 0)
		s->layer[LAYER_RESERVED].totals.frees++;
	if (x->capture)
		graphs_change(s, x, delta, ns);
}

static void note_segment(struct share *s, const struct extent *x)
{
	struct model_site *site = site_table_figures(&s->memory->sites, x->site);
	s->seen.expandable |= x->physical != 0;
	if (site)
		site->segments = true;
}

int extent_put(struct share *s, const struct extent *x, uint64_t ns)
{
	uint32_t i = s->extent_free;
	if (!i) {
		int e = vec_reserve(s->extent, s->extent_room, s->extent_count + 1);
		if (e)
			return e;
		i = (uint32_t)++s->extent_count;
	} else {
		s->extent_free = s->extent[i - 1].physical;
	}
	s->extent[i - 1] = *x;
	s->extent[i - 1].used = true;
	change_reserved(s, x, 1, ns);
	if (x->pool) /* mapped into a range that is the pool's */
		note_segment(s, x);
	return ranges_put(&s->extents,
			  &(struct range){
				  .start = x->start, .end = x->end, .ns = x->ns, .site = x->site, .file = i - 1 });
}

struct extent extent_remove(struct share *s, struct extent *x, uint64_t ns)
{
	const struct extent was = *x;
	ranges_remove(&s->extents, ranges_overlap(&s->extents, x->start, x->start + 1));
	change_reserved(s, &was, -1, ns);
	*x = (struct extent){ .physical = s->extent_free };
	s->extent_free = (uint32_t)(x - s->extent) + 1;
	return was;
}

static void make_segment(struct share *s, struct extent *x, uint64_t ns)
{
	if (x->pool)
		return;
	x->pool = true;
	note_segment(s, x);
	change_reserved(s, x, 1, ns);
}

/* Of memory that is mapped in one reserved range, all is the pool's if some of it is. */
static void make_segments(struct share *s, uint64_t start, uint64_t end, uint64_t ns)
{
	for (const struct range *r; start < end && (r = ranges_overlap(&s->extents, start, end)) != NULL;
	     start = r->end)
		make_segment(s, &s->extent[r->file], ns);
}

struct range *reservation_at(const struct process_memory *memory, uint64_t addr)
{
	return (struct range *)ranges_overlap(&memory->devices->reserved, addr, addr + 1);
}

int extents_note_pool(struct share *s, const struct device_event *e, uint64_t *newest)
{
	const uint64_t start = e->slot->addr, end = device_end_of(start, e->slot->size);
	const uint8_t sizes = pool_layout_sizes_of(e->slot->size);
	struct extent *x = s->last ? &s->extent[s->last - 1] : NULL;
	int64_t private = e->ext.capture ? graphs_capture(s, e->ext.capture) : 0;
	*newest = 0;
	if (private < 0)
		return (int)private;
	if (x && x->used && x->pool && x->noted && x->start <= start && end <= x->end &&
	    (!private || x->capture == private)) {
		x->sizes |= sizes;
		*newest = x->ring == e->ring ? x->event : 0;
		return 0;
	}
	for (uint64_t at = start; at < end && (x = extent_at(s, at, end)) != NULL; at = x->end) {
		struct range *r = x->physical ? reservation_at(s->memory, x->start) : NULL;
		bool empty = !x->pool;
		if (r && !r->class) {
			r->class = 1;
			make_segments(s, r->start, r->end, e->ns);
		}
		make_segment(s, x, e->ns);
		x->stream = x->noted ? x->stream : e->ext.stream;
		x->noted = true;
		x->sizes |= sizes;
		if (private)
			graphs_add_block(s, x, r, (uint32_t)private, empty, e->ns);
		*newest = x->ring == e->ring && x->event > *newest ? x->event : *newest;
		s->last = (uint32_t)(x - s->extent) + 1;
	}
	return 0;
}

int extent_unmap(struct process_memory *memory, struct share *s, struct extent *x, struct device_undo *u, uint64_t ns)
{
	struct physical *p = &memory->devices->physical[x->physical - 1];
	int e = u ? vec_reserve(u->gone, u->gone_room, u->gone_count + 1) : 0;
	if (e)
		return e;
	if (u)
		u->gone[u->gone_count++] = (struct gone){ s, *x, *p };
	extent_remove(s, x, ns);
	physical_count_maps(p, -1, ns);
	physical_drop_if_unused(memory, p, ns);
	return 0;
}

int extents_clear(struct share *s, uint64_t start, uint64_t end, uint64_t ns)
{
	struct extent *x;
	int e = 0;
	while (!e && start < end && (x = extent_at(s, start, end)) != NULL) {
		struct block *b = x->physical ? NULL : blocks_find(&s->space[SPACE_LINEAR], x->start);
		if (b)
			device_end_block(s, SPACE_LINEAR, b, ns);
		if (x->physical)
			e = extent_unmap(s->memory, s, x, NULL, ns);
		else
			extent_remove(s, x, ns);
	}
	return e;
}
