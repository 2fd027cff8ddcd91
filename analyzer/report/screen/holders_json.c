#include "analyzer/report/screen/holders_report.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_held.h"

#include <stdlib.h>

#define ROWS 1000

static json_t *json_row(const struct holders_report *r, const struct holder *h)
{
	const struct selection *sel = r->selection;
	json_t *o = json_holder(h);
	const struct model_site *s =
		h->site == UINT32_MAX ? NULL : model_site(sel->model, r->held.process->id, h->site);
	json_object_set_new(o, "blocks", json_bytes(h->blocks));
	json_object_set_new(o, "site_bytes", json_bytes(h->site_bytes));
	json_object_set_new(o, "stack",
			    s ? json_stack(sel->stacks, stacks_of(sel->stacks, r->held.process, s->node, s->node2),
					   selection_flags(sel->options))
			      : json_array());
	return o;
}

static json_t *json_part(const struct holders_report *r, const struct held_part *part)
{
	const struct holders *h = part->holders;
	size_t most = selection_rows(r->selection, ROWS);
	json_t *o = json_object(), *list = json_array();
	uint64_t left = 0;
	json_object_set_new(o, "kind",
			    json_text(part->kind == HOLDERS_SMALL ? "small" : kind_name((enum model_kind)part->kind)));
	json_object_set_new(o, "device", json_text(part->device ? part->device->name : NULL));
	json_object_set_new(o, "uuid", json_text(part->device ? part->device->uuid : NULL));
	json_object_set_new(o, "bytes", json_bytes(h->bytes));
	json_object_set_new(o, "held_bytes", json_bytes(h->held));
	json_object_set_new(o, "cycle_bytes", json_bytes(h->cycles));
	for (size_t i = 0; i < h->count; i++) {
		if (i < most)
			json_array_append_new(list, json_row(r, &h->list[i]));
		else
			left += h->list[i].bytes;
	}
	json_object_set_new(o, "holders", list);
	json_set_left_out(o, "holders", h->count, h->count > most ? h->count - most : 0, left);
	return o;
}

static json_t *json_snapshot(const struct holders_report *r, int i)
{
	const struct mt_hold_head *head = &r->held.heads[i];
	json_t *o = json_object();
	json_object_set_new(o, "number", json_integer(i + 1));
	json_object_set_new(o, "at_s", json_seconds(process_ns(r->held.process, head->ticks)));
	json_object_set_new(o, "why", json_text(held_why(head)));
	json_object_set_new(o, "name", json_text(*head->name ? head->name : NULL));
	return o;
}

int holders_print_json(const struct holders_report *r)
{
	const struct mt_hold_head *head = &r->held.snapshot.head;
	json_t *root = json_object(), *parts = json_array(), *all = json_array(), *faults = json_array();
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(!(head->flags & MT_HOLD_CUT) && !head->faults));
	json_object_set_new(root, "pid", json_integer(r->held.process->pid));
	json_object_set_new(root, "process", json_text(r->held.process->name));
	json_object_set_new(root, "snapshot", json_integer(r->held.number + 1));
	for (int i = 0; i < r->held.count; i++)
		json_array_append_new(all, json_snapshot(r, i));
	json_object_set_new(root, "snapshots", all);
	json_object_set_new(root, "python", json_integer(head->python));
	json_object_set_new(root, "at_s", json_seconds(r->held.ns));
	json_object_set_new(root, "took_s", json_seconds(process_ns(r->held.process, head->end_ticks) - r->held.ns));
	json_object_set_new(root, "objects", json_bytes(r->held.snapshot.count));
	json_object_set_new(root, "tracked", json_bytes(head->tracked));
	json_object_set_new(root, "frozen", json_bytes(head->frozen));
	json_object_set_new(root, "gc_enabled", json_boolean(!(head->flags & MT_HOLD_GC_OFF)));
	for (size_t i = 0; i < r->held.snapshot.fault_count; i++)
		json_array_append_new(faults, json_text(r->held.snapshot.faults[i]));
	json_object_set_new(root, "left_out_types", faults);
	for (size_t i = 0; i < r->parts.count; i++)
		json_array_append_new(parts, json_part(r, &r->parts.list[i]));
	json_object_set_new(root, "memory", parts);
	return json_print(root);
}
