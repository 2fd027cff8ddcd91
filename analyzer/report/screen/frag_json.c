#include "analyzer/report/screen/frag.h"
#include "analyzer/report/json/json.h"

static json_t *json_known(uint64_t figure)
{
	return figure == MODEL_UNKNOWN ? json_null() : json_bytes(figure);
}

static json_t *json_site(const struct selection *sel, uint32_t process, uint32_t site)
{
	const struct process *p = reader_process(sel->reader, process);
	const struct model_site *s = model_site(sel->model, process, site);
	if (!s)
		return json_array();
	return json_stack(sel->stacks, stacks_of(sel->stacks, p, s->node, s->node2), selection_flags(sel->options));
}

/* ---- devices --------------------------------------------------------------------------------------------- */

static json_t *json_segment(const struct selection *sel, const struct pool_layout_segment *s)
{
	json_t *o = json_object(), *blocks = json_array();
	json_object_set_new(o, "pid", json_integer(reader_process(sel->reader, s->process)->pid));
	json_object_set_new(o, "address", json_bytes(s->addr));
	json_object_set_new(o, "size_bytes", json_bytes(s->size));
	json_object_set_new(o, "used_bytes", json_bytes(s->used));
	json_object_set_new(o, "largest_hole_bytes", json_bytes(s->hole));
	json_object_set_new(o, "idle_bytes", json_bytes(s->idle));
	json_object_set_new(o, "expandable", json_boolean(s->expandable));
	json_object_set_new(o, "private_pool", s->private ? json_integer(s->private) : json_null());
	json_object_set_new(o, "time_s", json_seconds(s->ns));
	for (uint32_t i = 0; i < s->block_count; i++) {
		json_t *b = json_object();
		json_object_set_new(b, "address", json_bytes(s->blocks[i].addr));
		json_object_set_new(b, "size_bytes", json_bytes(s->blocks[i].size));
		json_object_set_new(b, "time_s", json_seconds(s->blocks[i].ns));
		json_array_append_new(blocks, b);
	}
	json_object_set_new(o, "blocks", blocks);
	return o;
}

static json_t *json_pin(const struct selection *sel, const struct pin *p)
{
	json_t *o = json_object();
	json_object_set_new(o, "pid", json_integer(reader_process(sel->reader, p->process)->pid));
	json_object_set_new(o, "held_bytes", json_bytes(p->held));
	json_object_set_new(o, "blocks", json_bytes(p->blocks));
	json_object_set_new(o, "segments", json_bytes(p->segments));
	json_object_set_new(o, "pinned_bytes", json_bytes(p->pinned));
	json_object_set_new(o, "pinned_alone_bytes", json_bytes(p->alone));
	json_object_set_new(o, "stack", json_site(sel, p->process, p->site));
	return o;
}

static void set_request(json_t *o, const struct frag_device *d)
{
	const struct model_oom *m = d->oom;
	json_object_set_new(o, "requested_bytes", m ? json_bytes(m->requested_bytes) : json_null());
	json_object_set_new(o, "block_bytes", m && m->block_bytes ? json_bytes(m->block_bytes) : json_null());
	json_object_set_new(o, "free_bytes", m ? json_known(m->at.free_bytes) : json_null());
	json_object_set_new(o, "fits_hole", m ? json_boolean(frag_hole(d) >= m->requested_bytes) : json_null());
	json_object_set_new(o, "fits_after_return",
			    m && m->at.free_bytes != MODEL_UNKNOWN ? json_boolean(frag_fits(d)) : json_null());
}

static void set_graphs(json_t *o, const struct pool_layout *l)
{
	struct model_pools p = pool_layout_pools(l, POOL_LAYOUT_PRIVATE),
			   common = pool_layout_pools(l, POOL_LAYOUT_COMMON);
	json_t *graphs = p.reserved ? json_object() : json_null();
	json_object_set_new(o, "graphs", graphs);
	json_object_set_new(o, "common_hole_bytes", json_bytes(common.largest_hole));
	if (!p.reserved)
		return;
	json_object_set_new(graphs, "captures", json_integer(p.captures));
	json_object_set_new(graphs, "pools", json_integer(p.pools));
	json_object_set_new(graphs, "reserved_bytes", json_bytes(p.reserved));
	json_object_set_new(graphs, "allocated_bytes", json_bytes(p.allocated));
	json_object_set_new(graphs, "largest_hole_bytes", json_bytes(p.largest_hole));
	json_object_set_new(graphs, "idle_bytes", json_bytes(p.idle));
}

static json_t *json_device(const struct selection *sel, const struct frag_device *d)
{
	const struct pool_layout *l = d->layout;
	json_t *o = json_object(), *segments = json_array(), *pins = json_array();
	size_t most = selection_rows(sel, SIZE_MAX);
	uint64_t left = 0, left_held = 0;
	json_object_set_new(o, "name", json_text(d->device->name));
	json_object_set_new(o, "uuid", json_text(d->device->uuid));
	json_object_set_new(o, "pid", d->process ? json_integer(d->process->pid) : json_null());
	json_object_set_new(o, "at_s", json_seconds(d->ns));
	json_object_set_new(o, "moment", json_text(d->moment));
	json_object_set_new(o, "oom", d->number ? json_integer(d->number) : json_null());
	json_object_set_new(o, "reserved_bytes", json_bytes(l->reserved));
	json_object_set_new(o, "allocated_bytes", json_bytes(l->allocated));
	json_object_set_new(o, "fragmentation", json_real(frag_share(l->allocated, l->reserved)));
	json_object_set_new(o, "largest_hole_bytes", json_bytes(l->largest_hole));
	json_object_set_new(o, "idle_bytes", json_bytes(l->idle));
	json_object_set_new(o, "stray_bytes", json_bytes(l->stray));
	set_graphs(o, l);
	set_request(o, d);
	for (size_t i = 0; i < l->segment_count && i < most; i++)
		json_array_append_new(segments, json_segment(sel, &l->segments[i]));
	for (size_t i = 0; i < d->pin_count && i < most; i++)
		json_array_append_new(pins, json_pin(sel, &d->pins[i]));
	for (size_t i = most; i < l->segment_count; i++)
		left += l->segments[i].size;
	for (size_t i = most; i < d->pin_count; i++)
		left_held += d->pins[i].held;
	json_object_set_new(o, "segment_count", json_bytes(l->segment_count));
	json_object_set_new(o, "segments", segments);
	json_set_left_out(o, "segments", l->segment_count, l->segment_count - json_array_size(segments), left);
	json_object_set_new(o, "pinned_by", pins);
	json_set_left_out(o, "pinned_by", d->pin_count, d->pin_count - json_array_size(pins), left_held);
	return o;
}

/* ---- heaps ----------------------------------------------------------------------------------------------- */

static json_t *json_arena(const struct selection *sel, const struct frag_heap *h, const struct arena *a)
{
	static const char *const kinds[] = {
		[ARENA_MAIN] = "main", [ARENA_THREAD] = "arena", [ARENA_MAPPED] = "mapped", [ARENA_POOL] = "pool"
	};
	bool mapped = a->kind == ARENA_MAPPED;
	json_t *o = json_object(), *tops = json_array();
	json_object_set_new(o, "kind", json_string(kinds[a->kind]));
	json_object_set_new(o, "address", mapped ? json_null() : json_bytes(a->start));
	json_object_set_new(o, "span_bytes", mapped ? json_null() : json_bytes(a->end - a->start));
	json_object_set_new(o, "live_bytes", json_bytes(a->live));
	json_object_set_new(o, "live_blocks", json_bytes(a->blocks));
	json_object_set_new(o, "largest_hole_bytes", mapped ? json_null() : json_bytes(a->largest_hole));
	for (unsigned i = 0; i < a->tops && a->kind == ARENA_MAIN; i++) {
		json_t *top = json_object();
		json_object_set_new(top, "address", json_bytes(a->top[i].addr));
		json_object_set_new(top, "size_bytes", json_bytes(a->top[i].size));
		json_object_set_new(top, "time_s", json_seconds(a->top[i].ns));
		json_object_set_new(top, "empty_below_bytes", json_bytes(a->below[i]));
		json_object_set_new(top, "stack", json_site(sel, h->process->process->id, a->top[i].site));
		json_array_append_new(tops, top);
	}
	json_object_set_new(o, "top", tops);
	return o;
}

static json_t *json_heap(const struct selection *sel, const struct frag_heap *h)
{
	json_t *o = json_object(), *arenas = json_array();
	json_object_set_new(o, "pid", json_integer(h->process->process->pid));
	json_object_set_new(o, "id", json_integer(h->process->process->id));
	json_object_set_new(o, "live_bytes", json_bytes(h->arenas.live));
	json_object_set_new(o, "live_blocks", json_bytes(h->arenas.blocks));
	json_object_set_new(o, "span_bytes", json_bytes(h->arenas.span));
	json_object_set_new(o, "resident_bytes", json_known(h->resident));
	for (size_t i = 0; i < h->arenas.count; i++)
		json_array_append_new(arenas, json_arena(sel, h, &h->arenas.list[i]));
	json_object_set_new(o, "arenas", arenas);
	return o;
}

int frag_print_json(const struct frag *f)
{
	json_t *root = json_object(), *devices = json_array(), *heaps = json_array();
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(f->selection->reader)));
	for (size_t i = 0; i < f->device_count; i++)
		json_array_append_new(devices, json_device(f->selection, &f->devices[i]));
	for (size_t i = 0; i < f->heap_count; i++)
		json_array_append_new(heaps, json_heap(f->selection, &f->heaps[i]));
	json_object_set_new(root, "devices", devices);
	json_object_set_new(root, "host", heaps);
	json_object_set_new(root, "unread_files", json_unread(f->selection->stacks));
	return json_print(root);
}
