/* Memory over time as the model and the sampler saw it, the moments that a page has buttons for, and what grew. */
#include "analyzer/diagnosis/growth/owner_growth.h"
#include "analyzer/diagnosis/ledger/device_contexts.h"
#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_devices.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/timeline/sample_series.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SERIES = 60, MOST_MOMENTS = 400, MOST_POINTS = 4000 };

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

static void add_samples(json_t *list, const struct selection *sel)
{
	struct all_sample_series *all = NULL;
	if (sample_series_open(&all, sel) < 0)
		return;
	for (unsigned i = 0; i < sample_series_count(all); i++) {
		const struct sample_series *s = sample_series_get(all, i);
		if (!s->process)
			add_series(list, &(struct series){ s->what, NULL, &s->series });
	}
	sample_series_close(all);
}

/* Of all processes together. */
void page_series_json(json_t *o, const struct selection *sel, const bool *devices)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < model_devices(sel->model); i++)
		if (devices[i])
			add_device(list, model_device(sel->model, i));
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		for (unsigned i = 0; sel->kinds & 1u << kind && i < reader_hosts(sel->reader); i++)
			add_series(list, &(struct series){ kind_name(kind), NULL,
							   &model_host(sel->model, i)->timeline[kind] });
	add_samples(list, sel);
	json_object_set_new(o, "series_from_s", json_seconds(model_from_ns(sel->model)));
	json_object_set_new(o, "series_width_s", json_seconds(model_timeline_width_ns(sel->model)));
	json_object_set_new(o, "series", list);
}

/* ---- what was sampled ----------------------------------------------------------------------------------------- */

/* "resident": {at_s, bytes}, of the traced processes of the first host, shared once: at most the ledger's figure. */
void page_resident_json(json_t *o, const struct report *r)
{
	const struct host_moment *list = NULL;
	const size_t count = r->analysis.host ? host_moments(r->analysis.host, &list) : 0;
	json_t *at = json_array(), *bytes = json_array();
	for (size_t i = 0; i < count; i++)
		if (list[i].ns >= r->selection->from_ns) {
			json_array_append_new(at, json_seconds(list[i].ns));
			json_array_append_new(bytes, json_bytes(list[i].bytes));
		}
	json_object_set_new(o, "resident", json_pack("{s:o, s:o}", "at_s", at, "bytes", bytes));
}

/* What a device had beside the memory of traced processes: as contexts came and went, and at samples in which that
 * memory did not move. */
struct device_samples {
	const struct selection *selection;
	const struct model_device *device;
	struct device_contexts contexts;
	size_t passed;   /* of their changes */
	uint64_t *bytes; /* by subject: of processes that are not traced */
	json_t *at, *rows[3];
	uint64_t now[3], last[3]; /* others, contexts, what nobody explains */
	uint64_t first_ns;        /* of the device itself; UINT64_MAX = not yet */
	/* a sample of the device itself, for which its processes of the same moment are awaited */
	bool waits;
	uint64_t ns, free;
	bool any;
};

/* Only what differs by a thousandth of the device from the point before. */
static void add_point(struct device_samples *s, uint64_t ns)
{
	const uint64_t enough = s->device->total_bytes / 1000 + 1;
	bool differs = !s->any;
	for (int k = 0; k < 3; k++)
		differs |= s->now[k] > s->last[k] + enough || s->now[k] + enough < s->last[k];
	if (!differs || json_array_size(s->at) >= MOST_POINTS)
		return;
	json_array_append_new(s->at, json_seconds(ns));
	for (int k = 0; k < 3; k++) {
		json_array_append_new(s->rows[k], json_bytes(s->now[k]));
		s->last[k] = s->now[k];
	}
	s->any = true;
}

static void pass_contexts(struct device_samples *s, uint64_t until_ns)
{
	for (; s->passed < s->contexts.count && s->contexts.changes[s->passed].ns <= until_ns; s->passed++) {
		s->now[1] += (uint64_t)s->contexts.changes[s->passed].bytes;
		add_point(s, s->contexts.changes[s->passed].ns);
	}
}

/* All of the moment is known. What nobody explains is told while our own memory stands still. */
static void settle(struct device_samples *s)
{
	uint64_t own;
	if (!s->waits)
		return;
	s->waits = false;
	if (device_ledger_still_at(s->selection->model, &s->device->timeline[LAYER_MEMORY], s->ns, &own))
		s->now[2] = less(s->device->total_bytes, s->free + own + s->now[0] + s->now[1]);
	add_point(s, s->ns);
}

static int take_device_sample(void *arg, const struct sample *x)
{
	struct device_samples *s = arg;
	const struct sample_subject *d = x->subject;
	if (!device_ledger_is_of(s->device, d))
		return 0;
	if (x->ns > s->ns)
		settle(s);
	pass_contexts(s, x->ns);
	if (d->kind == MT_SUBJECT_DEVICE_PROCESS && !d->traced) {
		const uint64_t now = x->gone ? 0 : x->value[MT_DEVICE_PROCESS_bytes];
		s->now[0] += now - s->bytes[d->index];
		s->bytes[d->index] = now;
	}
	if (d->kind == MT_SUBJECT_DEVICE && !x->gone && x->known >> MT_DEVICE_free & 1) {
		s->waits = true;
		s->ns = x->ns;
		s->free = x->value[MT_DEVICE_free];
		s->first_ns = lower(s->first_ns, x->ns);
	}
	return 0;
}

static json_t *json_device_samples(struct device_samples *s, const struct samples *samples)
{
	int e = device_contexts_make(&s->contexts, s->selection->model, samples, s->device);
	if (e == 0 && s->bytes)
		samples_each(samples, 0, UINT64_MAX, take_device_sample, s);
	settle(s);
	pass_contexts(s, UINT64_MAX);
	device_contexts_fini(&s->contexts);
	free(s->bytes);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "device", json_text(s->device->name), "first_s",
			 s->first_ns == UINT64_MAX ? json_null() : json_seconds(s->first_ns), "at_s", s->at, "others",
			 s->rows[0], "contexts", s->rows[1], "unexplained", s->rows[2]);
}

/* "device_samples": [{device, first_s, at_s, others, contexts, unexplained}]: from when on it was sampled; what other
 * processes had, contexts of traced ones, and what the driver counts beyond all that. */
void page_device_samples_json(json_t *o, const struct report *r, const bool *devices)
{
	const struct samples *samples = r->analysis.host ? host_memory_samples(r->analysis.host) : NULL;
	json_t *list = json_array();
	for (unsigned i = 0; samples && i < model_devices(r->selection->model); i++) {
		const struct model_device *d = model_device(r->selection->model, i);
		if (!devices[i] || !d->total_bytes)
			continue;
		struct device_samples s = { .selection = r->selection,
					    .device = d,
					    .bytes = calloc(samples_subjects(samples) + 1ul, sizeof(*s.bytes)),
					    .first_ns = UINT64_MAX,
					    .at = json_array(),
					    .rows = { json_array(), json_array(), json_array() } };
		json_t *one = json_device_samples(&s, samples);
		if (s.any)
			json_array_append(list, one);
		json_decref(one);
	}
	json_object_set_new(o, "device_samples", list);
}

static const char *const tracks[] = { [MODEL_HEAP] = "heap", [MODEL_MAP] = "map", [MODEL_PINNED] = "pinned" };

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
	const struct selection *sel = r->selection;
	char at[32], track[64];
	snprintf(track, sizeof(track), "%s pool", d->name);
	for (unsigned i = 0; i < d->oom_count; i++) {
		bool last = i + 1 == d->oom_count;
		if (!selection_has(sel, reader_process(sel->reader, d->oom[i].process)) || (i >= 8 && !last))
			continue;
		snprintf(at, sizeof(at), last ? "oom" : "oom:%u", i + 1);
		add_moment(list, "OOM", at, d->oom[i].pool ? track : d->name, d->oom[i].at.ns);
		add_step(list, r, &d->oom[i]);
	}
}

/* "opens_on": the track of the memory that the first words are about. */
void page_opens_json(json_t *o, const struct report *r)
{
	const struct report_memory m = report_first_memory(r);
	const struct model_device *d = m.device == MODEL_NO_DEVICE ? NULL : model_device(r->selection->model, m.device);
	char *track = d ? output_format("%s%s", d->name, m.kind == MODEL_POOL ? " pool" : "") : strdup(tracks[m.kind]);
	json_object_set_new(o, "opens_on", json_text(track));
	free(track);
}

void page_moments_json(json_t *o, const struct report *r, const bool *devices)
{
	const struct selection *sel = r->selection;
	json_t *list = json_array();
	char track[64];
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		if (!devices[i])
			continue;
		add_ooms(list, r, d);
		snprintf(track, sizeof(track), "%s pool", d->name);
		add_moment(list, "Peak", "peak", track, d->layer[LAYER_POOL].peak_ns);
		add_moment(list, "Peak", "peak", d->name, d->peak.ns);
	}
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		if (sel->kinds & 1u << kind)
			add_moment(list, "Peak", "peak", tracks[kind], model_totals(sel->model, kind).peak_ns);
	add_moment(list, "End", "end", NULL, model_end_ns(sel->model));
	json_object_set_new(o, "moments", list);
}

/* ---- growth -------------------------------------------------------------------------------------------------- */

static json_t *json_owner_growth(const struct selection *sel, const struct owner *o, enum model_kind kind,
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
	json_object_set_new(out, "pid", json_integer(reader_process(sel->reader, g->process)->pid));
	json_object_set_new(out, "node",
			    json_integer(o->stack_count ? page_tree_use(t, page_tree_node(t, o->stacks[0].stack)) : 0));
	json_object_set_new(out, "stepped", json_boolean(g->growth.stepped));
	json_object_set_new(out, "kind", json_string(growth_name(g->growth.kind)));
	json_object_set_new(out, "certainty", json_string(certainty_name(g->growth.certainty)));
	json_object_set_new(out, "outlook", json_string(outlook_name(g->outlook)));
	json_object_set_new(out, "rate", json_real_or_null(!growth_is_brief(&g->growth), g->growth.rate));
	json_object_set_new(out, "error", json_real_or_null(!growth_is_brief(&g->growth), g->growth.rate_error));
	json_object_set_new(out, "grew_for_s", json_real(g->growth.lasted_s));
	json_object_set_new(out, "grown_bytes", json_real_or_null(true, g->growth.bytes));
	json_object_set_new(out, "since", json_real_or_null(true, g->growth.since_x));
	json_object_set_new(out, "blocks_per_x", json_real_or_null(true, g->blocks_per_x));
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
	const struct selection *sel = r->selection;
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
		json_array_append_new(list, json_owner_growth(sel, one->owner, one->kind,
							      host ? NULL : model_device(sel->model, one->device)->name,
							      &one->growth, t));
	}
	json_object_set_new(o, "growing", list);
}
