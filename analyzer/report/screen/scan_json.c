#include "analyzer/report/screen/scan_report.h"
#include "analyzer/report/json/json.h"

#define ROWS 1000

const char *scan_what_name(enum scan_what what)
{
	static const char *const names[] = {
		[SCAN_LOST] = "lost",     [SCAN_GLOBAL] = "global",     [SCAN_STACK] = "stack",
		[SCAN_THREAD] = "thread", [SCAN_REGISTER] = "register", [SCAN_MAPPING] = "mapping",
		[SCAN_KERNEL] = "kernel", [SCAN_UNKNOWN] = "unknown",
	};
	return names[what];
}

static json_t *json_site_stack(const struct scan_report *r, uint32_t site)
{
	const struct selection *sel = r->selection;
	const struct model_site *s = site == UINT32_MAX ? NULL : model_site(sel->model, r->process->id, site);
	return s ? json_stack(sel->stacks, stacks_of(sel->stacks, r->process, s->node, s->node2),
			      selection_flags(sel->options))
		 : json_array();
}

static json_t *json_row(const struct scan_report *r, const struct scan_row *row)
{
	json_t *o = json_object();
	json_object_set_new(o, "held_by", json_text(scan_what_name(row->what)));
	json_object_set_new(o, "name", json_text(row->name));
	json_object_set_new(o, "library", json_text(row->at));
	json_object_set_new(o, "also", json_text(row->also));
	json_object_set_new(o, "bytes", json_bytes(row->bytes));
	json_object_set_new(o, "blocks", json_bytes(row->blocks));
	json_object_set_new(o, "first_blocks", json_bytes(row->firsts));
	json_object_set_new(o, "first_stack", json_site_stack(r, row->first));
	json_object_set_new(o, "site_bytes", json_bytes(row->site_bytes));
	json_object_set_new(o, "stack", json_site_stack(r, row->site));
	return o;
}

static void set_rows(json_t *root, const struct scan_report *r, const char *key, bool lost)
{
	const size_t most = selection_rows(r->selection, ROWS);
	json_t *list = json_array();
	size_t total = 0;
	uint64_t left = 0;
	for (size_t i = 0; i < r->scan->count; i++) {
		const struct scan_row *row = &r->scan->rows[i];
		if ((row->what == SCAN_LOST) != lost)
			continue;
		if (total++ < most)
			json_array_append_new(list, json_row(r, row));
		else
			left += row->bytes;
	}
	json_object_set_new(root, key, list);
	json_set_left_out(root, key, total, total > most ? total - most : 0, left);
}

int scan_print_json(const struct scan_report *r)
{
	const struct scan *s = r->scan;
	json_t *root = json_object();
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(r->whole));
	json_object_set_new(root, "pid", json_integer(r->process->pid));
	json_object_set_new(root, "process", json_text(r->process->name));
	json_object_set_new(root, "at_s", json_seconds(process_ns(r->process, r->copy->ticks)));
	json_object_set_new(root, "stopped_s", json_seconds(r->copy->stopped_ns));
	json_object_set_new(root, "copied_bytes", json_bytes(r->copy->bytes));
	json_object_set_new(root, "bytes", json_bytes(s->bytes));
	json_object_set_new(root, "blocks", json_bytes(s->blocks));
	json_object_set_new(root, "lost_bytes", json_bytes(s->lost_bytes));
	json_object_set_new(root, "lost_blocks", json_bytes(s->lost_blocks));
	set_rows(root, r, "lost", true);
	set_rows(root, r, "held", false);
	return json_print(root);
}
