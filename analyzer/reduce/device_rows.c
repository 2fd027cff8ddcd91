/* What ranks had on devices, and requests that failed. */
#include "analyzer/reduce/reduce_internal.h"
#include "analyzer/report/json/json.h"

#include <stdlib.h>

static json_t *known(uint64_t value)
{
	return value == MODEL_UNKNOWN ? json_null() : json_bytes(value);
}

/* The shares of a rank. */
struct shares {
	const struct model_share **items;
	size_t count;
};

static struct shares shares_of(const struct reduction *r, const struct model_device *d, size_t rank)
{
	struct shares s = { .items = calloc(d->share_count + 1ul, sizeof(*s.items)) };
	for (unsigned i = 0; s.items && i < d->share_count; i++)
		if (r->ranks.of[d->shares[i]->process->id] == rank)
			s.items[s.count++] = d->shares[i];
	return s;
}

static struct reduce_peak peak_of(const struct reduction *r, const struct shares *s, enum model_layer layer)
{
	const struct model_series **series = calloc(s->count + 1, sizeof(*series));
	uint64_t *peaks = calloc(s->count + 1, sizeof(*peaks));
	for (size_t i = 0; series && peaks && i < s->count; i++) {
		series[i] = &s->items[i]->timeline[layer];
		peaks[i] = s->items[i]->layer[layer].peak_bytes;
	}
	struct reduce_peak p = { 0 };
	if (series && peaks)
		p = reduce_peak_of(r->selection->model, series, peaks, s->count);
	free(series);
	free(peaks);
	return p;
}

static json_t *end_of(const struct shares *s, enum model_layer layer)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->count; i++)
		bytes += s->items[i]->layer[layer].live_bytes;
	return json_bytes(bytes);
}

static void put_categories(json_t *o, const struct reduction *r, const struct model_device *d)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	json_t *names = json_array(), *bytes = json_array();
	for (unsigned i = 0; i < diagnosis->space_count; i++)
		for (int c = 0; diagnosis->spaces[i].device == d->index && c < CATEGORIES; c++)
			if (diagnosis->spaces[i].category[c]) {
				json_array_append_new(names, json_string(category_name(c)));
				json_array_append_new(bytes, json_bytes(diagnosis->spaces[i].category[c]));
			}
	json_object_set_new(o, "categories", names);
	json_object_set_new(o, "category_bytes", bytes);
}

static void put_device(struct reduction *r, const struct model_device *d, size_t rank, const struct shares *s)
{
	struct reduce_peak peak = peak_of(r, s, LAYER_MEMORY);
	const struct model_oom *failure = diagnosis_failure(d);
	const struct model_moment *at = failure ? &failure->at : &d->peak;
	uint64_t ooms = 0, retries = 0;
	for (size_t i = 0; i < s->count; i++) {
		ooms += s->items[i]->ooms;
		retries += s->items[i]->retries;
	}
	uint64_t total = at->total_bytes != MODEL_UNKNOWN ? at->total_bytes : d->total_bytes;
	json_t *o = json_object();
	json_object_set_new(o, "rank", json_rank(r->ranks.items[rank].rank));
	json_object_set_new(o, "device", json_text(d->name));
	json_object_set_new(o, "uuid", rows_text(d->uuid, 100));
	json_object_set_new(o, "model", rows_text(d->model, 100));
	json_object_set_new(o, "total", total ? json_bytes(total) : json_null());
	json_object_set_new(o, "peak", json_bytes(peak.high));
	json_object_set_new(o, "peak_low", json_bytes(peak.low));
	json_object_set_new(o, "end", end_of(s, LAYER_MEMORY));
	json_object_set_new(o, "pool_peak", json_bytes(peak_of(r, s, LAYER_POOL).high));
	json_object_set_new(o, "pool_end", end_of(s, LAYER_POOL));
	json_object_set_new(o, "reserved_peak", json_bytes(peak_of(r, s, LAYER_RESERVED).high));
	json_object_set_new(o, "reserved_end", end_of(s, LAYER_RESERVED));
	json_object_set_new(o, "free", failure ? json_integer(0) : known(at->free_bytes));
	json_object_set_new(o, "at_ns", reduce_wall(r, at->ns));
	json_object_set_new(o, "fragmentation",
			    at->layer[LAYER_RESERVED]
				    ? json_real(1 - (double)at->layer[LAYER_POOL] / (double)at->layer[LAYER_RESERVED])
				    : json_null());
	json_object_set_new(o, "ooms", json_bytes(ooms));
	json_object_set_new(o, "retries", json_bytes(retries));
	put_categories(o, r, d);
	rows_put(&r->rows, TABLE_device, o);
}

static void put_oom(struct reduction *r, const struct model_oom *oom)
{
	static const char *const outcomes[] = {
		[OUTCOME_UNKNOWN] = "unknown", [OUTCOME_CAUGHT] = "caught", [OUTCOME_FATAL] = "fatal"
	};
	const struct selection *sel = r->selection;
	uint32_t stack = stacks_of(sel->stacks, reader_process(sel->reader, oom->process), oom->node, oom->node2);
	const struct stack_name *name = stack ? stack_names_find(r->names, stack) : NULL;
	json_t *o = json_object();
	json_object_set_new(o, "rank", json_rank(r->ranks.items[r->ranks.of[oom->process]].rank));
	json_object_set_new(o, "device", json_text(model_device(sel->model, oom->device)->name));
	json_object_set_new(o, "at_ns", reduce_wall(r, oom->at.ns));
	json_object_set_new(o, "source", json_string(oom->pool ? "pool" : "driver"));
	json_object_set_new(o, "requested", json_bytes(oom->requested_bytes));
	json_object_set_new(o, "block", oom->block_bytes ? json_bytes(oom->block_bytes) : json_null());
	json_object_set_new(o, "free", known(oom->at.free_bytes));
	json_object_set_new(o, "total", known(oom->at.total_bytes));
	json_object_set_new(o, "reserved", json_bytes(oom->reserved_bytes));
	json_object_set_new(o, "allocated", json_bytes(oom->allocated_bytes));
	json_object_set_new(o, "largest_hole", json_bytes(oom->largest_hole_bytes));
	json_object_set_new(o, "outcome", json_string(outcomes[oom->outcome]));
	json_object_set_new(o, "stack", name ? json_string(name->hash) : json_null());
	if (name)
		stack_names_mark(r->names, stack);
	rows_put(&r->rows, TABLE_oom, o);
}

void device_rows_put(struct reduction *r)
{
	const struct model *m = r->selection->model;
	for (uint32_t i = 0; i < model_devices(m); i++)
		for (size_t rank = 0; rank < r->ranks.count; rank++) {
			struct shares s = shares_of(r, model_device(m, i), rank);
			if (s.count)
				put_device(r, model_device(m, i), rank, &s);
			free(s.items);
		}
	for (unsigned i = 0; i < model_ooms(m); i++)
		if (i < r->bounds.ooms || i + 1 == model_ooms(m))
			put_oom(r, model_oom(m, i));
}
