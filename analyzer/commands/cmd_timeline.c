/* memtrace timeline: live bytes over time, as bars, CSV or JSON. */
#include "analyzer/commands/commands.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/analysis/series_lines.h"
#include "analyzer/report/screen/timeline_plot.h"
#include "analyzer/report/screen/timeline_rows.h"
#include "analyzer/timeline/sample_series.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row rows[] = {
	OPTIONS_ROW_BY(1u << BY_PROCESS | 1u << BY_STEP | 1u << BY_PHASE),
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_CSV,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_timeline_spec = {
	"memtrace timeline [options] [DIR...]",
	"Live bytes over time of each process and of all, and per device, and what was\n"
	"resident and swapped: a chart. --by step: low and high point of each step;\n"
	"--by phase: what was live at its start, and its peak.",
	rows,
	0,
	"  memtrace timeline --from 10 --to 20\n"
	"  memtrace timeline --csv > live.csv\n",
	"Read: docs/timeline.md; docs/MARKS.md on steps and phases",
};

static struct all_sample_series *sampled; /* of the one selection there is */

/* ---- CSV ----------------------------------------------------------------------------------------------- */

static void csv_line(void *arg, const struct series_line *l)
{
	const struct selection *v = arg;
	for (uint32_t i = 0; i < l->series->count; i++) {
		const struct model_bucket *b = &l->series->buckets[i];
		print("%.6f,", series_line_start(v, l->series, i));
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

/* ---- screen ------------------------------------------------------------------------------------------ */

struct chart {
	const struct selection *selection;
	struct table *table;
	size_t columns, shown, most;
	uint64_t rest; /* what the rest had at the most */
};

static uint64_t highest(const struct model_series *s)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < s->count; i++)
		most = s->buckets[i].high > most ? s->buckets[i].high : most;
	return most;
}

static void chart_line(void *arg, const struct series_line *l)
{
	struct chart *c = arg;
	uint64_t most = highest(l->series);
	if (most == 0)
		return;
	if (c->shown++ >= c->most) {
		c->rest = most > c->rest ? most : c->rest;
		return;
	}
	uint64_t *values = calloc(c->columns, sizeof(*values));
	if (values)
		selection_resample(c->selection, l->series, values, c->columns);
	char *sparks = values ? output_sparkline(values, c->columns, most) : NULL;
	char *what = l->device ? output_format("%s %s", l->what, l->device->name) : NULL;
	char *name = l->process ? output_format("%u %s", l->process->pid, l->process->name)
				: output_format("all on %s", l->host->name);
	table_row(c->table, (const char *[]){ name, what ? what : l->what, sparks,
					      BYTES(l->series->buckets[l->series->count - 1].last), BYTES(most) });
	free(name);
	free(what);
	free(sparks);
	free(values);
}

/* `rows`: as many as there is room for below a plot. */
static void print_chart(struct selection *v, size_t rows)
{
	char *title = output_format("%s to %s", DURATION(v->from_ns), DURATION(model_end_ns(v->model)));
	const struct column columns[] = {
		{ "PROCESS", LEFT, true }, { "", LEFT, false },      { title, LEFT, false },
		{ "last", RIGHT, false },  { "most", RIGHT, false },
	};
	int room = output_width() - (rows == OPTIONS_ALL_ROWS ? 52 : 54);
	struct chart c = {
		v, table_new(columns, 5, 0), (size_t)(room < 16 ? 16 : room), 0, selection_rows(v, rows), 0
	};
	series_lines_each(v, sampled, chart_line, &c);
	char *note = c.shown > c.most
			     ? output_format("%zu more, none above %s: -n ROWS", c.shown - c.most, BYTES(c.rest))
			     : NULL;
	if (note)
		table_note(c.table, 2, note);
	free(note);
	table_print(c.table);
	free(title);
}

/* The plot, and below it what fits of the chart: the largest lines first would hide whose they are, so as in a pipe. */
static void print_screen(struct selection *v, const struct timeline *c)
{
	enum { LEAST = 4, BESIDE = 12 }; /* lines of a plot; of all that stands with it */
	int rows = output_rows() - 1, height = rows - BESIDE;
	unsigned lines = timeline_plot(v, c, (unsigned)(height < LEAST ? LEAST : height > 20 ? 20 : height));
	int left = rows - (int)lines - 4; /* the empty line, titles, what is left out */
	if (lines)
		print("\n");
	print_chart(v, !lines ? OPTIONS_ALL_ROWS : left < 2 ? 2 : (size_t)left);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

struct json_lines {
	const struct selection *selection;
	json_t *list;
	size_t total;
};

static json_t *json_points(const struct selection *v, const struct model_series *s)
{
	json_t *points = json_array();
	for (uint32_t i = 0; i < s->count; i++) {
		const struct model_bucket *b = &s->buckets[i];
		json_t *point = json_object();
		json_object_set_new(point, "time_s", json_real(series_line_start(v, s, i)));
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

static int print_json(struct selection *v)
{
	struct json_lines lines = { v, json_array(), 0 };
	json_t *root = json_object();
	series_lines_each(v, sampled, json_line, &lines);
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(v->reader)));
	json_object_set_new(root, "width_s", json_seconds(model_timeline_width_ns(v->model)));
	json_object_set_new(root, "series", lines.list);
	json_object_set_new(root, "series_total", json_bytes(lines.total));
	json_object_set_new(root, "series_left_out", json_bytes(lines.total - json_array_size(lines.list)));
	return json_print(root);
}

/* ---- command ------------------------------------------------------------------------------------------- */

static int show(struct selection *v, const struct timeline *c)
{
	if (v->options->json)
		return print_json(v);
	if (!v->options->csv && c) {
		print_screen(v, c);
		return 0;
	}
	if (!v->options->csv) {
		print_chart(v, OPTIONS_ALL_ROWS);
		return 0;
	}
	print("time_s,pid,name,kind,low_bytes,high_bytes,live_bytes,live_blocks,device\n");
	series_lines_each(v, sampled, csv_line, v);
	return 0;
}

static int timeline(struct selection *v)
{
	struct model_query q = MODEL_QUERY_ALL;
	if (v->options->csv && v->options->rows)
		return error_set(MT_EUSAGE, "-n", ERROR_NO_OFFSET, "not with --csv, which has all rows");
	if (v->options->by == BY_STEP || v->options->by == BY_PHASE)
		return timeline_by_step(v);
	/* in a pipe it is the chart alone; phases, for the plot, take another pass */
	const bool plots = output_is_terminal() && !v->options->json && !v->options->csv;
	struct timeline *c = plots ? timeline_new() : NULL;
	if (c)
		timeline_attach(c, &q);
	int e = selection_run(v, &q);
	if (e >= 0 && c)
		e = timeline_run(c, v);
	if (e >= 0)
		e = sample_series_open(&sampled, v);
	if (e >= 0) {
		e = show(v, c);
		sample_series_close(sampled);
	}
	timeline_free(c);
	return e;
}

int cmd_timeline(int argc, char **argv)
{
	struct options o = { 0 };
	return selection_command(&cmd_timeline_spec, &o, argc, argv, timeline);
}
