#include "analyzer/report/json/json.h"
#include "analyzer/analysis/series_lines.h"
#include "analyzer/report/timeline/timeline_rows.h"
#include "analyzer/report/timeline/timeline_screen.h"
#include "analyzer/util/print.h"

#include <inttypes.h>

/* ---- CSV ----------------------------------------------------------------------------------------------- */

static void csv_line(void *arg, const struct series_line *l)
{
	const struct selection *sel = arg;
	for (uint32_t i = 0; i < l->series->count; i++) {
		const struct model_bucket *b = &l->series->buckets[i];
		print("%.6f,", series_line_start(sel, l->series, i));
		if (l->process)
			print("%u,", l->process->pid);
		else
			print("all,");
		timeline_print_field(l->process ? l->process->program : l->host->name);
		print(",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", l->what, b->low, b->high, b->last,
		      b->blocks);
		if (l->device)
			timeline_print_field(*l->device->uuid ? l->device->uuid : l->device->name);
		print("\n");
	}
}

void timeline_print_csv(struct selection *sel, struct all_sample_series *sampled)
{
	print("time_s,pid,name,kind,low_bytes,high_bytes,live_bytes,live_blocks,device\n");
	series_lines_each(sel, sampled, csv_line, sel);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

struct json_lines {
	const struct selection *selection;
	json_t *list;
	size_t total;
};

static json_t *json_points(const struct selection *sel, const struct model_series *s)
{
	json_t *points = json_array();
	for (uint32_t i = 0; i < s->count; i++) {
		const struct model_bucket *b = &s->buckets[i];
		json_t *point = json_object();
		json_object_set_new(point, "time_s", json_real(series_line_start(sel, s, i)));
		json_object_set_new(point, "low_bytes", json_bytes(b->low));
		json_object_set_new(point, "high_bytes", json_bytes(b->high));
		json_object_set_new(point, "live_bytes", json_bytes(b->last));
		json_object_set_new(point, "live_blocks", json_bytes(b->blocks));
		json_array_append_new(points, point);
	}
	return points;
}

static void json_line(void *arg, const struct series_line *l)
{
	struct json_lines *lines = arg;
	if (lines->total++ >= selection_rows(lines->selection, SIZE_MAX))
		return;
	json_t *o = json_object();
	json_object_set_new(o, "process", l->process ? json_integer(l->process->id) : json_null());
	json_object_set_new(o, "pid", l->process ? json_integer(l->process->pid) : json_null());
	json_object_set_new(o, "rank", json_rank(l->process ? l->process->rank : PROCESS_NO_RANK));
	json_object_set_new(o, "name", json_text(l->process ? l->process->program : l->host->name));
	json_object_set_new(o, "kind", json_text(l->what));
	json_object_set_new(o, "device", json_text(l->device ? l->device->name : NULL));
	json_object_set_new(o, "uuid", json_text(l->device ? l->device->uuid : NULL));
	json_object_set_new(o, "points", json_points(lines->selection, l->series));
	json_array_append_new(lines->list, o);
}

int timeline_print_json(struct selection *sel, struct all_sample_series *sampled)
{
	struct json_lines lines = { sel, json_array(), 0 };
	json_t *root = json_object();
	series_lines_each(sel, sampled, json_line, &lines);
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(sel->reader)));
	json_object_set_new(root, "width_s", json_seconds(model_timeline_width_ns(sel->model)));
	json_object_set_new(root, "series", lines.list);
	json_object_set_new(root, "series_total", json_bytes(lines.total));
	json_object_set_new(root, "series_left_out", json_bytes(lines.total - json_array_size(lines.list)));
	return json_print(root);
}
