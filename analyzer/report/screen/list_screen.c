#include "analyzer/report/screen/list_screen.h"
#include "analyzer/analysis/open.h"
#include "analyzer/model/selection/main_process.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is said of a trace. Of one that can't be read `command` is why. */
struct line {
	const struct listed_trace *trace;
	char *command, *verdict, *ranks;
	char exit[48];
	const char *kind; /* of the exit */
	json_t *words, *code;
	bool running;
	uint64_t unrecorded; /* processes */
};

/* ---- one trace -------------------------------------------------------------------------------------------------- */

/* The last program of the pid that began it all. */
static const struct process *root_of(const struct reader *r)
{
	const struct process *root = reader_process(r, 0);
	for (unsigned id = 1; id < reader_processes(r); id++) {
		const struct process *p = reader_process(r, id);
		if (p->pid == root->pid && p->host == root->host && p->image > root->image)
			root = p;
	}
	return root;
}

/* "3", "0-7"; "" where none is known. */
static char *ranks_of(const struct reader *r)
{
	int64_t low = INT64_MAX, high = PROCESS_NO_RANK;
	for (unsigned id = 0; id < reader_processes(r); id++) {
		int64_t rank = reader_process(r, id)->rank;
		low = rank != PROCESS_NO_RANK && rank < low ? rank : low;
		high = rank > high ? rank : high;
	}
	return high == PROCESS_NO_RANK ? strdup("")
	       : low == high           ? output_format("%" PRId64, low)
				       : output_format("%" PRId64 "-%" PRId64, low, high);
}

static void describe(struct line *l, const struct reader *r)
{
	const struct process *p = root_of(r);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	l->words = json_array();
	for (unsigned i = 0; f && i < p->argc; i++) {
		const char *slash = strrchr(p->argv[i], '/');
		fprintf(f, "%s%s", i ? " " : "", slash && !strchr(p->argv[i], ' ') ? slash + 1 : p->argv[i]);
		json_array_append_new(l->words, json_text(p->argv[i]));
	}
	if (f)
		fclose(f);
	l->command = text;
	l->ranks = ranks_of(r);
	l->running = reader_recording(r) != NULL;
	l->unrecorded = reader_unrecorded(r);
	exit_text(p, l->exit, sizeof(l->exit));
	l->kind = exit_name(p->exit_kind);
	l->code = p->exit_kind == MT_EXIT_CODE || p->exit_kind == MT_EXIT_SIGNAL ? json_integer(p->exit_code)
										 : json_null();
}

static int judge(struct line *l, struct selection *sel)
{
	struct report r = { .brief = true };
	int e = report_make(&r, sel, 0);
	if (e >= 0) {
		const struct verdicts *found = &r.analysis.diagnosis->verdicts;
		l->verdict =
			strdup(found->held_count ? verdict_title(found->held[0].kind) : status_name(found->status));
	}
	report_fini(&r);
	return e;
}

static int look_into(struct line *l, bool verdict)
{
	const char *dir = l->trace->dir;
	struct options o = { .dirs = &dir, .ndirs = 1, .force = true, .json = true, .quiet = true };
	struct selection v = { 0 };
	struct reader *r = NULL;
	int e = verdict ? selection_open(&v, &o) : reader_open(&r, &dir, 1, READER_FORCE);
	if (e < 0)
		return e;
	describe(l, verdict ? v.reader : r);
	if (verdict)
		e = judge(l, &v);
	if (verdict)
		selection_close(&v);
	else
		reader_close(r);
	return e;
}

static struct line line_of(const struct listed_trace *t, bool verdict)
{
	struct line l = { .trace = t };
	if (look_into(&l, verdict) < 0 && !l.command)
		l.command = output_format("(%s)", *error_get()->why ? error_get()->why : "can't be read");
	return l;
}

static void line_free(struct line *l)
{
	free(l->command);
	free(l->verdict);
	free(l->ranks);
	json_decref(l->words);
	json_decref(l->code);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void print_row(struct table *t, const struct line *l)
{
	char time[20];
	snprintf(time, sizeof(time), "%s", WALL(l->trace->start_real_ns));
	time[10] = ' ';
	time[16] = 0; /* seconds are of little use */
	char exit[80];
	snprintf(exit, sizeof(exit), "%s%s", l->running ? "running" : l->exit, l->unrecorded ? ", incomplete" : "");
	table_row(t, (const char *const[]){ time, l->ranks, l->command, exit, l->verdict, BYTES(l->trace->bytes),
					    l->trace->dir });
}

static json_t *json_line(const struct line *l)
{
	json_t *o = json_object(), *exit = json_object();
	json_object_set_new(o, "directory", json_text(l->trace->dir));
	json_object_set_new(o, "start", json_time(l->trace->start_real_ns));
	json_object_set_new(o, "bytes", json_bytes(l->trace->bytes));
	json_object_set_new(o, "readable", json_boolean(l->words != NULL));
	json_object_set_new(o, "running", json_boolean(l->running));
	json_object_set_new(o, "unrecorded_processes", json_bytes(l->unrecorded));
	json_object_set_new(o, "ranks", l->ranks && *l->ranks ? json_text(l->ranks) : json_null());
	json_object_set(o, "command", l->words ? l->words : json_array());
	json_object_set_new(exit, "kind", json_string(l->kind ? l->kind : "unknown"));
	json_object_set_new(exit, "code", l->code ? json_incref(l->code) : json_null());
	json_object_set_new(o, "exit", exit);
	json_object_set_new(o, "verdict", l->verdict ? json_text(l->verdict) : json_null());
	return o;
}

enum { VERDICT = 4 };
static const struct column columns[] = {
	{ "time (UTC)", LEFT, false }, { "rank", LEFT, false },  { "command", LEFT, true },    { "exit", LEFT, false },
	{ "verdict", LEFT, false },    { "size", RIGHT, false }, { "directory", LEFT, false },
};

int list_print(const struct trace_list *of, const struct options *o, bool verdict)
{
	uint64_t most = o->rows ? o->rows : OPTIONS_ALL_ROWS, bytes = 0;
	json_t *list = o->json ? json_array() : NULL;
	struct table *t = list ? NULL : table_new(columns, sizeof(columns) / sizeof(*columns), 0);
	if (!verdict)
		table_hide(t, VERDICT);
	for (size_t i = 0; i < of->count; i++) {
		bytes += of->list[i].bytes;
		if (i >= most)
			continue;
		struct line l = line_of(&of->list[i], verdict);
		if (list)
			json_array_append_new(list, json_line(&l));
		else
			print_row(t, &l);
		line_free(&l);
	}
	if (!list) {
		if (of->count)
			table_print(t);
		print("%zu trace%s, %s\n", of->count, of->count == 1 ? "" : "s", BYTES(bytes));
		return 0;
	}
	json_t *root = json_object();
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "traces", list);
	json_object_set_new(root, "traces_total", json_bytes(of->count));
	json_object_set_new(root, "bytes", json_bytes(bytes));
	return json_print(root);
}
