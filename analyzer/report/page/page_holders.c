/* Which object of Python keeps the memory, with the way to it step by step, of the processes that have the most. */
#include "analyzer/report/json/json.h"
#include "analyzer/report/json/json_held.h"
#include "analyzer/report/page/page_internal.h"
#include "analyzer/report/screen/holders_report.h"

#include <stdlib.h>

enum { MOST_PROCESSES = 4, MOST_ROWS = 100 };

static int add_step(void *arg, const char *step, const char *type)
{
	json_array_append_new(arg, json_pack("[o, o]", json_text(step), json_text(*type ? type : NULL)));
	return 0;
}

static json_t *json_row(const struct held_pass *p, const struct holder *h)
{
	json_t *o = json_holder(h), *way = json_array();
	char *site = holder_site_text(&p->sel, p->held.process, h->site), *text = holder_text(h, true);
	if (h->what == HOLDER_C || (h->what == HOLDER_CYCLE && h->objects))
		add_step(way, text ? text : "", "");
	else
		hold_steps(p->held.graph, h->node, add_step, way);
	json_object_set_new(o, "text", json_text(text));
	json_object_set_new(o, "blocks", json_bytes(h->blocks));
	json_object_set_new(o, "made_by", json_text(site));
	json_object_set_new(o, "way", way);
	free(site);
	free(text);
	return o;
}

static json_t *json_part(const struct held_pass *p, const struct held_part *part)
{
	const struct process *process = p->held.process;
	json_t *o = json_object(), *rows = json_array();
	json_object_set_new(o, "pid", json_integer(process->pid));
	json_object_set_new(o, "process", json_text(process->name));
	json_object_set_new(o, "at_s", json_seconds(p->held.ns));
	json_object_set_new(o, "why", json_text(held_why(&p->held.snapshot.head)));
	json_object_set_new(o, "memory",
			    json_text(part->kind == HOLDERS_SMALL ? "small" : kind_name((enum model_kind)part->kind)));
	json_object_set_new(o, "device", json_text(part->device ? part->device->name : NULL));
	json_object_set_new(o, "bytes", json_bytes(part->holders->bytes));
	json_object_set_new(o, "held", json_bytes(part->holders->held));
	json_object_set_new(o, "cycles", json_bytes(part->holders->cycles));
	for (size_t i = 0; i < part->holders->count && i < MOST_ROWS; i++)
		json_array_append_new(rows, json_row(p, &part->holders->list[i]));
	json_object_set_new(o, "rows", rows);
	return o;
}

static void add_part(void *list, const struct held_pass *p, const struct held_part *part)
{
	json_array_append_new(list, json_part(p, part));
}

int page_holders(json_t *list, const struct selection *sel)
{
	return held_each_part(sel, MOST_PROCESSES, add_part, list);
}
