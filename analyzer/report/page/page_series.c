/* Memory over time as the model and the sampler saw it, the moments that a page has buttons for, and what grew. */
#include "analyzer/diagnosis/growth/owner_growth.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_devices.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/timeline/sample_series.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_SERIES = 60, MOST_MOMENTS = 400 };

/* ---- series -------------------------------------------------------------------------------------------------- */

struct series {
	const char *what;
	const struct model_device *device;
	const struct model_series *values;
};

static bool is_flat(const struct model_series *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->buckets[i].high)
			return false;
	return true;
}

static void add_series(json_t *list, const struct series *s)
{
	if (json_array_size(list) >= MOST_SERIES || is_flat(s->values))
		return;
	json_t *o = json_object(), *low = json_array(), *high = json_array(), *last = json_array();
	for (uint32_t i = 0; i < s->values->count; i++) {
		json_array_append_new(low, json_bytes(s->values->buckets[i].low));
		json_array_append_new(high, json_bytes(s->values->buckets[i].high));
		json_array_append_new(last, json_bytes(s->values->buckets[i].last));
	}
	json_object_set_new(o, "what", json_text(s->what));
	json_object_set_new(o, "device", json_text(s->device ? s->device->name : NULL));
	json_object_set_new(o, "first", json_integer(s->values->first));
	json_object_set_new(o, "low", low);
	json_object_set_new(o, "high", high);
	json_object_set_new(o, "last", last);
	json_array_append_new(list, o);
}

static void add_device(json_t *list, const struct model_device *d)
{
	static const char *const layers[] = {
		[LAYER_MEMORY] = "device", [LAYER_POOL] = "pool", [LAYER_RESERVED] = "reserved"
	};
	for (int k = 0; k <= LAYER_RESERVED; k++)
		add_series(list, &(struct series){ layers[k], d, &d->timeline[k] });
}

static void add_samples(json_t *list, const struct selection *v)
{
	struct all_sample_series *all = NULL;
	if (sample_series_open(&all, v) < 0)
		return;
	for (unsigned i = 0; i < sample_series_count(all); i++) {
		const struct sample_series *s = sample_series_get(all, i);
		if (!s->process)
			add_series(list, &(struct series){ s->what, NULL, &s->series });
	}
	sample_series_close(all);
}

/* Of all processes together. */
void page_series_json(json_t *o, const struct selection *v, const bool *devices)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < model_devices(v->model); i++)
		if (devices[i])
			add_device(list, model_device(v->model, i));
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		for (unsigned i = 0; v->kinds & 1u << kind && i < reader_hosts(v->reader); i++)
			add_series(list,
				   &(struct series){ kind_name(kind), NULL, &model_host(v->model, i)->timeline[kind] });
	add_samples(list, v);
	json_object_set_new(o, "series_from_s", json_seconds(model_from_ns(v->model)));
	json_object_set_new(o, "series_width_s", json_seconds(model_timeline_width_ns(v->model)));
	json_object_set_new(o, "series", list);
}

/* ---- moments ------------------------------------------------------------------------------------------------- */

/* `at` is what --at takes for it. */
static void add_moment(json_t *list, const char *name, const char *at, const char *track, uint64_t ns)
{
	json_t *o = json_object();
	if (json_array_size(list) >= MOST_MOMENTS) {
		json_decref(o);
		return;
	}
	json_object_set_new(o, "name", json_string(name));
	json_object_set_new(o, "at", json_string(at));
	json_object_set_new(o, "track", json_text(track));
	json_object_set_new(o, "at_s", json_seconds(ns));
	json_array_append_new(list, o);
}

static void add_step(json_t *list, const struct report *r, const struct model_oom *oom)
{
	json_t *last = json_array_get(list, json_array_size(list) - 1);
	uint64_t number;
	if (last && json_devices_step(r->analysis.timeline, oom, &number))
		json_object_set_new(last, "step", json_bytes(number));
}

static void add_ooms(json_t *list, const struct report *r, const struct model_device *d)
{
	const struct selection *v = r->selection;
	char at[32], track[64];
	snprintf(track, sizeof(track), "%s pool", d->name);
	for (unsigned i = 0; i < d->oom_count; i++) {
		bool last = i + 1 == d->oom_count;
		if (!selection_has(v, reader_process(v->reader, d->oom[i].process)) || (i >= 8 && !last))
			continue;
		snprintf(at, sizeof(at), last ? "oom" : "oom:%u", i + 1);
		add_moment(list, "OOM", at, d->oom[i].pool ? track : d->name, d->oom[i].at.ns);
		add_step(list, r, &d->oom[i]);
	}
}

void page_moments_json(json_t *o, const struct report *r, const bool *devices)
{
	static const char *const tracks[] = { [MODEL_HEAP] = "heap", [MODEL_MAP] = "map", [MODEL_PINNED] = "pinned" };
	const struct selection *v = r->selection;
	json_t *list = json_array();
	char track[64];
	for (unsigned i = 0; i < model_devices(v->model); i++) {
		const struct model_device *d = model_device(v->model, i);
		if (!devices[i])
			continue;
		add_ooms(list, r, d);
		snprintf(track, sizeof(track), "%s pool", d->name);
		add_moment(list, "Peak", "peak", track, d->layer[LAYER_POOL].peak_ns);
		add_moment(list, "Peak", "peak", d->name, d->peak.ns);
	}
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		if (v->kinds & 1u << kind)
			add_moment(list, "Peak", "peak", tracks[kind], model_totals(v->model, kind).peak_ns);
	add_moment(list, "End", "end", NULL, model_end_ns(v->model));
	json_object_set_new(o, "moments", list);
}

/* ---- growth -------------------------------------------------------------------------------------------------- */

static json_t *json_real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_owner_growth(const struct selection *v, const struct owner *o, enum model_kind kind,
				 const char *device, const struct owner_growth *g, struct page_tree *t)
{
	json_t *out = json_object(), *x = json_array(), *bytes = json_array();
	char *text = owner_text(o), *where = !o->label && o->frame ? frame_where(o->frame) : NULL;
	json_object_set_new(out, "name", json_text(text));
	json_object_set_new(out, "where", json_text(where));
	free(text);
	free(where);
	json_object_set_new(out, "memory", json_string(kind_name(kind)));
	json_object_set_new(out, "device", json_text(device));
	json_object_set_new(out, "pid", json_integer(reader_process(v->reader, g->process)->pid));
	json_object_set_new(out, "node",
			    json_integer(o->stack_count ? page_tree_use(t, page_tree_node(t, o->stacks[0].stack)) : 0));
	json_object_set_new(out, "stepped", json_boolean(g->stepped));
	json_object_set_new(out, "kind", json_string(growth_name(g->growth.kind)));
	json_object_set_new(out, "certainty", json_string(certainty_name(g->growth.certainty)));
	json_object_set_new(out, "outlook", json_string(outlook_name(g->outlook)));
	json_object_set_new(out, "rate", json_real_or_null(g->growth.rate));
	json_object_set_new(out, "error", json_real_or_null(g->growth.rate_error));
	json_object_set_new(out, "grown_bytes", json_real_or_null(g->growth.bytes));
	json_object_set_new(out, "since", json_real_or_null(g->growth.since_x));
	json_object_set_new(out, "blocks_per_x", json_real_or_null(g->blocks_per_x));
	for (size_t i = 0; i < g->points; i++) {
		json_array_append_new(x, json_real(g->x[i]));
		json_array_append_new(bytes, json_real(floor(g->bytes[i])));
	}
	json_object_set_new(out, "x", x);
	json_object_set_new(out, "bytes", bytes);
	return out;
}

/* Of the largest owners. */
void page_growth_json(json_t *o, const struct report *r, struct page_tree *t, const bool *devices)
{
	const struct selection *v = r->selection;
	const struct findings *f = &r->analysis.diagnosis->findings;
	json_t *list = json_array();
	size_t listed[MODEL_KINDS] = { 0 };
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		const bool host = one->device == MODEL_NO_DEVICE;
		if ((!host && !devices[one->device]) || one->growth.growth.bytes <= 0 ||
		    listed[one->kind] == OWNERS_WITH_MEMBERS)
			continue;
		listed[one->kind]++;
		json_array_append_new(list, json_owner_growth(v, one->owner, one->kind,
							      host ? NULL : model_device(v->model, one->device)->name,
							      &one->growth, t));
	}
	json_object_set_new(o, "growing", list);
}
