/* The blocks of a device's pool over time, around its last failure or its peak: what was alive at that moment, and what
 * the changes around it say. Blocks that were there all the time are one for each stack. */
#include "analyzer/model/pool_layout.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

struct lives {
	const struct report *report;
	struct page_tree *tree;
	const struct pool_events *events;
	size_t moment, count;
	json_t *list;
	/* by node: what was there all the time */
	struct stayed {
		uint64_t bytes, blocks;
	} *stayed;
	size_t stayed_count, stayed_room;
	bool *freed; /* by event: what it allocated was freed by a later one */
	size_t left_out, most;
};

/* ---- which event ---------------------------------------------------------------------------------------------- */

/* The first event that is not before. */
static size_t event_at(const struct lives *l, uint64_t ns)
{
	size_t low = 0, high = l->count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (pool_events_at(l->events, middle)->ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The event that allocated a block, and 1; 0 = it was there before. Several may be of the same time. */
static size_t born(const struct lives *l, uint64_t ns, uint64_t addr)
{
	for (size_t i = event_at(l, ns); i < l->count && pool_events_at(l->events, i)->ns == ns; i++)
		if (pool_events_at(l->events, i)->addr == addr && pool_events_at(l->events, i)->bytes > 0)
			return i + 1;
	return 0;
}

/* ---- lives ---------------------------------------------------------------------------------------------------- */

/* `died`: the event that freed it, and 1; 0 = none of these. */
static void add(struct lives *l, size_t from, size_t died, uint64_t bytes, uint64_t blocks, uint32_t node)
{
	if (json_array_size(l->list) / 5 >= l->most) {
		l->left_out += blocks;
		return;
	}
	json_array_append_new(l->list, json_integer((json_int_t)from));
	json_array_append_new(l->list, json_integer((json_int_t)died));
	json_array_append_new(l->list, json_bytes(bytes));
	json_array_append_new(l->list, json_bytes(blocks));
	json_array_append_new(l->list, json_integer(page_tree_use(l->tree, node)));
}

static int stays(struct lives *l, const struct pool_layout_block *b, uint32_t node)
{
	if (node >= l->stayed_count && vec_extend(l->stayed, l->stayed_count, l->stayed_room, node + 1ul) < 0)
		return -1;
	l->stayed[node].bytes += b->size;
	l->stayed[node].blocks++;
	return 0;
}

/* By address, those of one address in their order. */
static int by_address(const void *a, const void *b)
{
	const struct pool_event *const *x = a, *const *y = b;
	if ((*x)->addr != (*y)->addr)
		return (*x)->addr < (*y)->addr ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

static size_t freed_behind(const struct pool_events *e, const struct pool_event **sorted, uint64_t addr)
{
	size_t low = 0, high = e->after;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (sorted[middle]->addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	const bool found = low < e->after && sorted[low]->addr == addr && sorted[low]->bytes < 0;
	return found ? pool_events_moment(e) + (size_t)(sorted[low] - e->behind) + 1 : 0;
}

/* What was alive at the moment. */
static int add_alive(struct lives *l, const struct pool_layout *at)
{
	const struct pool_event *sorted[POOL_EVENTS_AFTER];
	for (size_t i = 0; i < l->events->after; i++)
		sorted[i] = &l->events->behind[i];
	qsort(sorted, l->events->after, sizeof(*sorted), by_address);
	for (size_t i = 0; i < at->segment_count; i++)
		for (uint32_t k = 0; k < at->segments[i].block_count; k++) {
			const struct pool_layout_block *b = &at->segments[i].blocks[k];
			const uint32_t node = page_tree_site_node(l->tree, at->segments[i].process, b->site);
			const size_t from = born(l, b->ns, b->addr), died = freed_behind(l->events, sorted, b->addr);
			if (from || died)
				add(l, from, died, b->size, 1, node);
			else if (stays(l, b, node) < 0)
				return -1;
		}
	for (uint32_t node = 0; node < l->stayed_count; node++)
		if (l->stayed[node].blocks)
			add(l, 0, 0, l->stayed[node].bytes, l->stayed[node].blocks, node);
	return 0;
}

/* What was not: freed before it, or allocated behind it. */
static void add_others(struct lives *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct pool_event *e = pool_events_at(l->events, i);
		const size_t from = e->bytes < 0 ? born(l, e->made_ns, e->addr) : 0;
		if (e->bytes > 0)
			continue;
		if (from)
			l->freed[from - 1] = true;
		if (i < l->moment || from > l->moment)
			add(l, from, i + 1, (uint64_t)-e->bytes, 1, page_tree_site_node(l->tree, e->process, e->site));
	}
	for (size_t i = l->moment; i < l->count; i++) {
		const struct pool_event *e = pool_events_at(l->events, i);
		if (e->bytes > 0 && !l->freed[i])
			add(l, i + 1, 0, (uint64_t)e->bytes, 1, page_tree_site_node(l->tree, e->process, e->site));
	}
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static const struct pool_layout *layout_at(const struct report *r, uint32_t device, bool *oom)
{
	const struct model_device *d = model_device(r->selection->model, device);
	const struct site_windows *w = r->analysis.windows;
	*oom = d->oom_count;
	if (d->oom_count)
		return d->oom[d->oom_count - 1].layout;
	for (size_t i = 0; i < site_windows_layouts(w); i++) {
		const struct window_layout *at = site_windows_layout(w, i);
		if (at->device == device && at->ns == d->peak.ns)
			return at->layout;
	}
	return NULL;
}

/* Nanoseconds from each event to the next one, which are shorter than times. */
static json_t *json_events(const struct lives *l)
{
	json_t *list = json_array();
	uint64_t before = l->count ? pool_events_at(l->events, 0)->ns : 0;
	for (size_t i = 0; i < l->count; i++) {
		const uint64_t ns = pool_events_at(l->events, i)->ns;
		json_array_append_new(list, json_bytes(ns - before));
		before = ns;
	}
	return list;
}

static json_int_t pid_of(const struct lives *l)
{
	return reader_process(l->report->selection->reader, l->events->process)->pid;
}

static json_t *json_device(struct lives *l, uint32_t device)
{
	bool oom;
	const struct pool_layout *at = layout_at(l->report, device, &oom);
	json_t *o = json_object();
	l->list = json_array();
	l->freed = calloc(l->count + 1, sizeof(*l->freed));
	if (at && l->freed && add_alive(l, at) == 0)
		add_others(l);
	json_object_set_new(o, "device", json_text(model_device(l->report->selection->model, device)->name));
	json_object_set_new(o, "at_s", json_seconds(l->events->ns));
	json_object_set_new(o, "oom", json_boolean(oom));
	json_object_set_new(o, "pid", l->events->process == UINT32_MAX ? json_null() : json_integer(pid_of(l)));
	json_object_set_new(o, "begin_s", json_seconds(l->count ? pool_events_at(l->events, 0)->ns : l->events->ns));
	json_object_set_new(o, "moment", json_integer((json_int_t)l->moment));
	json_object_set_new(o, "events", json_events(l));
	json_object_set_new(o, "lives", l->list);
	json_object_set_new(o, "left_out", json_bytes(l->left_out));
	free(l->freed);
	free(l->stayed);
	return o;
}

void page_blocks_json(json_t *o, const struct report *r, struct page_tree *t, const bool *devices, size_t most)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < model_devices(r->selection->model); i++) {
		const struct pool_events *e = site_windows_pool_events(r->analysis.windows, i);
		struct lives l = { .report = r, .tree = t, .events = e, .most = most };
		if (!devices[i] || !e || !e->count)
			continue;
		l.moment = pool_events_moment(e);
		l.count = pool_events_count(e);
		json_array_append_new(list, json_device(&l, i));
	}
	json_object_set_new(o, "blocks", list);
}
