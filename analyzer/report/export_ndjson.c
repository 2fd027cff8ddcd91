/* A line of JSON for each stack of each process and kind of memory, with the keys of peak --json. */
#include "analyzer/report/export.h"
#include "analyzer/report/json.h"

static int print_stack(struct export *x, const struct export_stack *s)
{
	const struct selection *v = x->selection;
	json_t *o = json_object();
	json_object_set_new(o, "memory", json_text(kind_name(s->at->kind)));
	json_object_set_new(o, "device", json_text(s->at->device ? s->at->device->name : NULL));
	json_object_set_new(o, "pid", json_integer(s->process->pid));
	json_object_set_new(o, "process", json_text(s->process->name));
	json_object_set_new(o, "at_s", json_seconds(s->at->ns));
	json_object_set_new(o, "category", json_text(category_name(s->owner->category)));
	json_object_set_new(o, "bytes", json_bytes(s->bytes));
	json_object_set_new(o, "blocks", json_bytes(s->blocks));
	json_object_set_new(o, "stack", json_stack(v->stacks, s->owner->stacks->stack, selection_flags(v->options)));
	return json_print_line(o);
}

const struct export_ops export_ndjson = { .name = "ndjson", .by_process = true, .stack = print_stack };
