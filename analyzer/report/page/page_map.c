/* How blocks lay in segments, in rectangles: neighbours of one stack are one, and so are those that a picture could not
 * tell apart. */
#include "analyzer/diagnosis/pins.h"
#include "analyzer/model/pool_layout.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"

#include <stdlib.h>

enum { MOST_SEGMENTS = 4000, MOST_PINS = 20 };

struct map {
	const struct report *report;
	struct page_tree *tree;
	uint64_t unit; /* blocks and holes below that are joined with their neighbours */
	size_t count;  /* rectangles so far */
};

struct rectangle {
	uint64_t offset, end, used;
	uint64_t most; /* bytes of the stack that is named */
	uint32_t node, blocks;
};

static void append(const struct map *m, json_t *list, const struct rectangle *r)
{
	json_array_append_new(list, json_bytes(r->offset));
	json_array_append_new(list, json_bytes(r->end - r->offset));
	json_array_append_new(list, json_bytes(r->used));
	json_array_append_new(list, json_integer(page_tree_use(m->tree, r->node)));
	json_array_append_new(list, json_integer(r->blocks));
}

static bool joins(const struct map *m, const struct rectangle *last, const struct rectangle *next)
{
	uint64_t gap = next->offset - last->end;
	if (!gap && last->node == next->node)
		return true;
	return gap < m->unit && last->end - last->offset < m->unit && next->end - next->offset < m->unit;
}

static json_t *json_rectangles(struct map *m, const struct pool_layout_segment *s)
{
	json_t *list = json_array();
	struct rectangle last = { 0 };
	for (uint32_t i = 0; i < s->block_count; i++) {
		const struct pool_layout_block *b = &s->blocks[i];
		struct rectangle next = { b->addr - s->addr,
					  b->addr - s->addr + b->size,
					  b->size,
					  b->size,
					  page_tree_site_node(m->tree, s->process, b->site),
					  1 };
		if (!last.blocks || !joins(m, &last, &next)) {
			if (last.blocks)
				append(m, list, &last);
			m->count += last.blocks > 0;
			last = next;
			continue;
		}
		last.end = next.end > last.end ? next.end : last.end;
		last.used += next.used;
		last.blocks++;
		if (next.node == last.node)
			last.most += next.used;
		else if (next.used > last.most) {
			last.node = next.node;
			last.most = next.used;
		}
	}
	if (last.blocks)
		append(m, list, &last);
	m->count += last.blocks > 0;
	return list;
}

static json_t *json_page_segment(struct map *m, const struct pool_layout_segment *s)
{
	json_t *o = json_object();
	char address[32];
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)s->addr);
	json_object_set_new(o, "address", json_string(address));
	json_object_set_new(o, "bytes", json_bytes(s->size));
	json_object_set_new(o, "used", json_bytes(s->used));
	json_object_set_new(o, "hole", json_bytes(s->hole));
	json_object_set_new(o, "private", json_integer(s->private));
	json_object_set_new(o, "stream", json_bytes(s->stream));
	json_object_set_new(o, "sizes", json_integer(s->noted ? s->sizes : 0));
	json_object_set_new(o, "pid", json_integer(reader_process(m->report->selection->reader, s->process)->pid));
	json_object_set_new(o, "rectangles", json_rectangles(m, s));
	return o;
}

static json_t *json_pins(const struct map *m, const struct pool_layout *l)
{
	json_t *list = json_array();
	struct pin *pins = NULL;
	size_t count = 0;
	if (pins_find(l, NULL, &pins, &count) < 0)
		return list;
	for (size_t i = 0; i < count && i < MOST_PINS; i++) {
		json_t *o = json_object();
		json_object_set_new(o, "node",
				    json_integer(page_tree_use(m->tree, page_tree_site_node(m->tree, pins[i].process,
											    pins[i].site))));
		json_object_set_new(o, "held", json_bytes(pins[i].held));
		json_object_set_new(o, "blocks", json_bytes(pins[i].blocks));
		json_object_set_new(o, "pinned", json_bytes(pins[i].pinned));
		json_object_set_new(o, "alone", json_bytes(pins[i].alone));
		json_object_set_new(o, "segments", json_integer(pins[i].segments));
		json_array_append_new(list, o);
	}
	free(pins);
	return list;
}

static int larger(const void *a, const void *b)
{
	const struct pool_layout_segment *const *x = a, *const *y = b;
	if ((*x)->size != (*y)->size)
		return (*x)->size < (*y)->size ? 1 : -1;
	return ((*x)->addr > (*y)->addr) - ((*x)->addr < (*y)->addr);
}

/* The largest segments, each with what may be told apart in a row of a thousand pixels. */
static json_t *json_segments(struct map *m, const struct pool_layout *l, size_t most, json_t *o)
{
	const struct pool_layout_segment **sorted = calloc(l->segment_count + 1, sizeof(*sorted));
	json_t *list = json_array();
	uint64_t left = 0;
	m->unit = 0;
	for (size_t i = 0; sorted && i < l->segment_count; i++)
		sorted[i] = &l->segments[i];
	if (sorted && l->segment_count) {
		qsort(sorted, l->segment_count, sizeof(*sorted), larger);
		m->unit = l->block_count > most ? sorted[0]->size / 1000 : 0;
	}
	for (size_t i = 0; sorted && i < l->segment_count; i++)
		if (i < MOST_SEGMENTS && m->count < most)
			json_array_append_new(list, json_page_segment(m, sorted[i]));
		else
			left += sorted[i]->size;
	json_object_set_new(o, "segments_left_out", json_bytes(l->segment_count - json_array_size(list)));
	json_object_set_new(o, "bytes_left_out", json_bytes(left));
	free(sorted);
	return list;
}

static json_t *json_map(struct map *m, const struct model_device *d, uint64_t ns, const struct pool_layout *l,
			const struct model_oom *oom, size_t most)
{
	json_t *o = json_object();
	m->count = 0;
	json_object_set_new(o, "device", json_text(d->name));
	json_object_set_new(o, "at_s", json_seconds(ns));
	json_object_set_new(o, "oom", json_boolean(oom));
	json_object_set_new(o, "requested", oom ? json_bytes(oom->requested_bytes) : json_null());
	json_object_set_new(o, "usable_hole", oom ? json_bytes(oom->usable.largest_hole) : json_null());
	json_object_set_new(o, "reserved", json_bytes(l->reserved));
	json_object_set_new(o, "allocated", json_bytes(l->allocated));
	json_object_set_new(o, "hole", json_bytes(l->largest_hole));
	json_object_set_new(o, "idle", json_bytes(l->idle));
	json_object_set_new(o, "segment_count", json_bytes(l->segment_count));
	json_object_set_new(o, "segments", json_segments(m, l, most, o));
	json_object_set_new(o, "pins", json_pins(m, l));
	return o;
}

void page_maps_json(json_t *o, const struct report *r, struct page_tree *t, size_t most)
{
	const struct selection *sel = r->selection;
	const struct site_windows *w = r->analysis.windows;
	struct map m = { .report = r, .tree = t };
	json_t *list = json_array();
	size_t count = site_windows_layouts(w);
	for (unsigned i = 0; i < model_ooms(sel->model); i++)
		count += model_oom(sel->model, i)->layout != NULL;
	const size_t each = count ? most / count : 0;
	for (unsigned i = 0; i < model_ooms(sel->model); i++) {
		const struct model_oom *oom = model_oom(sel->model, i);
		const struct process *p = reader_process(sel->reader, oom->process);
		if (oom->layout && selection_has(sel, p) && selection_has_device(sel, oom->device))
			json_array_append_new(list, json_map(&m, model_device(sel->model, oom->device), oom->at.ns,
							     oom->layout, oom, each));
	}
	for (size_t i = 0; i < site_windows_layouts(w); i++) {
		const struct window_layout *at = site_windows_layout(w, i);
		json_array_append_new(list, json_map(&m, model_device(sel->model, at->device), at->ns, at->layout, NULL,
						     each));
	}
	json_object_set_new(o, "maps", list);
}
