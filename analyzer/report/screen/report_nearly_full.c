/* What had little left at its peak, though nothing failed: a little more, and something would have. */
#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nearly_full {
	const struct model_device *device; /* NULL: of the host */
	const char *name;
	uint64_t used, total, ns;
};

struct full_list {
	struct nearly_full *items;
	size_t count;
};

static double part_of(const struct nearly_full *f)
{
	return f->total ? (double)f->used / (double)f->total : 0;
}

/* With all that others have, where the driver said how much was free; else what the traced ones have. */
static struct nearly_full full_device(const struct report *r, const struct model_device *d)
{
	struct nearly_full f = { d, d->name, d->layer[LAYER_MEMORY].peak_bytes, d->total_bytes, d->peak.ns };
	const struct device_ledger *l = diagnosis_ledger(r->analysis.diagnosis, d, &d->peak);
	if (l && l->total != MODEL_UNKNOWN && l->free <= l->total) {
		f.total = l->total;
		f.used = l->total - l->free > f.used ? l->total - l->free : f.used;
	}
	return f;
}

static void add(struct full_list *l, struct nearly_full f)
{
	if (part_of(&f) > REPORT_WARNING && f.used <= f.total)
		l->items[l->count++] = f;
}

/* The control group when it used most of its limit, and the machine when least was available. */
static void add_host(struct full_list *l, const struct host_facts *f)
{
	if (f->limit != HOST_KILL_UNKNOWN && f->cgroup_most != HOST_KILL_UNKNOWN)
		add(l, (struct nearly_full){ NULL, "cgroup", f->cgroup_most, f->limit, f->cgroup_most_ns });
	if (f->memory != HOST_KILL_UNKNOWN && f->available_min <= f->memory)
		add(l, (struct nearly_full){ NULL, "machine", f->memory - f->available_min, f->memory,
					     f->available_min_ns });
}

static int fuller(const void *a, const void *b)
{
	double x = part_of(a), y = part_of(b);
	return (x < y) - (x > y);
}

/* The fullest first. */
static struct full_list find(const struct report *r)
{
	const struct selection *sel = r->selection;
	struct full_list l = { calloc(model_devices(sel->model) + 2ul, sizeof(*l.items)), 0 };
	for (unsigned i = 0; l.items && !model_ooms(sel->model) && i < model_devices(sel->model); i++)
		if (selection_has_device(sel, i) && model_device(sel->model, i)->layer[LAYER_MEMORY].peak_bytes)
			add(&l, full_device(r, model_device(sel->model, i)));
	if (l.items && r->analysis.host && host_facts(r->analysis.host)->sampled)
		add_host(&l, host_facts(r->analysis.host));
	if (l.count)
		qsort(l.items, l.count, sizeof(*l.items), fuller);
	return l;
}

json_t *report_json_full(const struct report *r)
{
	struct full_list l = find(r);
	json_t *list = json_array();
	for (size_t i = 0; i < l.count; i++) {
		const struct nearly_full *f = &l.items[i];
		json_t *o = json_object();
		json_object_set_new(o, "name", json_text(f->name));
		json_object_set_new(o, "level", json_string(part_of(f) > REPORT_ALERT ? "alert" : "warning"));
		json_object_set_new(o, "used_bytes", json_bytes(f->used));
		json_object_set_new(o, "total_bytes", json_bytes(f->total));
		json_object_set_new(o, "at_s", json_seconds(f->ns));
		json_array_append_new(list, o);
	}
	free(l.items);
	return list;
}

bool report_is_full(const struct report *r)
{
	struct full_list l = find(r);
	bool found = false;
	for (size_t i = 0; i < l.count; i++)
		found = found || l.items[i].device;
	free(l.items);
	return found;
}

unsigned report_print_full(const struct report *r)
{
	struct full_list l = find(r);
	size_t first = 0;
	while (first < l.count && !l.items[first].device && report_is_trouble(r))
		first++; /* WHY says it */
	if (first == l.count) {
		free(l.items);
		return 0;
	}
	const struct nearly_full *f = &l.items[first];
	bool alert = part_of(f) > REPORT_ALERT;
	char *title = f->device ? report_device_title(r->selection, f->device, NULL) : output_format("the %s", f->name);
	char *more = l.count > 1 ? output_format("; so %s %zu more", l.count > 2 ? "were" : "was", l.count - 1) : NULL;
	const char *heading = alert ? "NEARLY FULL" : "FILLING UP", *name = title ? title : "",
		   *behind = more ? more : "";
	print("\n");
	output_first_line(
		alert ? STYLE_BAD : STYLE_HEAD,
		(char *[]){ output_format("%s  %s was %.1f %% full at its peak (%s of %s at %s), nothing failed%s",
					  heading, name, 100 * part_of(f), BYTES(f->used), BYTES(f->total),
					  DURATION(f->ns), behind),
			    output_format("%s  %s was %.1f %% full at its peak (%s of %s)%s", heading, name,
					  100 * part_of(f), BYTES(f->used), BYTES(f->total), behind) },
		2);
	free(title);
	free(more);
	free(l.items);
	return 2;
}
