#include "analyzer/report/timeline/timeline_rows.h"

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_ROWS 40

/* One row: a step or a phase, on one track. */
struct stretch {
	const struct process *process;
	uint32_t kind, device;
	const char *name;       /* of a phase; else NULL */
	uint64_t number, count; /* of steps; of a phase count is its visits */
	uint64_t begin_ns, end_ns;
	uint64_t low, high; /* a phase has no low point but what was live when it began */
	int64_t kept;       /* of a phase */
	uint32_t rare;
};

typedef void stretch_f(void *arg, const struct stretch *s);

void timeline_print_field(const char *text)
{
	print("\"");
	for (size_t n; n = strcspn(text, "\""), text[n]; text += n + 1)
		print("%.*s\"\"", (int)n, text);
	print("%s\"", text);
}

static bool wants(const struct selection *sel, const struct process *p, uint32_t kind, uint32_t device)
{
	return selection_has(sel, reader_process(sel->reader, p->id)) && sel->kinds & 1u << kind &&
	       (device == MODEL_NO_DEVICE || selection_has_device(sel, device));
}

static void each_step(const struct selection *sel, const struct timeline *timeline, stretch_f *f, void *arg)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct step_list *steps = timeline_step_list(timeline, id);
		for (size_t i = 0; steps && steps->source != LOOP_NONE && i < steps->count; i++)
			for (size_t k = 0; k < steps->track_count; k++) {
				const struct step_track *t = &steps->tracks[k];
				const struct step *s = &steps->steps[i];
				if (wants(sel, steps->process, t->kind, t->device) && s->end_ns >= sel->from_ns)
					f(arg, &(struct stretch){ steps->process, t->kind, t->device, NULL, s->number,
								  s->count, s->begin_ns, s->end_ns, step_low(t, i),
								  step_high(t, i), 0, s->rare });
			}
	}
}

static void each_phase(const struct selection *sel, const struct timeline *timeline, stretch_f *f, void *arg)
{
	const struct phases *phases = timeline_phases(timeline);
	for (size_t i = 0; i < phases_count(phases); i++) {
		const struct phase *p = phases_get(phases, i);
		for (size_t k = 0; k < p->track_count; k++) {
			const struct phase_track *t = &p->tracks[k];
			if (wants(sel, p->process, t->kind, t->device) && p->end_ns >= sel->from_ns)
				f(arg,
				  &(struct stretch){ p->process, t->kind, t->device, p->name, 0, p->visits, p->begin_ns,
						     p->end_ns, t->begin_bytes, t->peak_bytes, t->kept_bytes, 0 });
		}
	}
}

struct target {
	const struct selection *selection;
	struct table *table;
	json_t *list;
	size_t shown, most;
};

static void csv_row(void *arg, const struct stretch *s)
{
	struct target *to = arg;
	char track[64];
	print("%.6f,%.6f,%u,", (double)s->begin_ns / 1e9, (double)s->end_ns / 1e9, s->process->pid);
	if (s->name)
		timeline_print_field(s->name);
	else
		print("%" PRIu64, s->number);
	print(",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 "\n", s->count,
	      timeline_track_name(to->selection, s->process, s->kind, s->device, track, sizeof(track)), s->low,
	      s->high);
}

static void table_line(void *arg, const struct stretch *s)
{
	struct target *to = arg;
	char track[64];
	if (to->shown++ >= to->most)
		return;
	char *what = s->name        ? output_format("%s", s->name)
		     : s->count > 1 ? output_format("%" PRIu64 " to %" PRIu64, s->number, s->number + s->count - 1)
				    : output_format("%" PRIu64 "%s", s->number, s->rare ? " rare" : "");
	char *pid = output_format("%u", s->process->pid);
	char *kept = s->name ? output_format("%s%s", s->kept < 0 ? "-" : "+", BYTES((uint64_t)llabs(s->kept))) : NULL;
	table_row(to->table, (const char *[]){ what, s->count > 1 && s->name ? COUNT(s->count) : NULL, pid,
					       timeline_track_name(to->selection, s->process, s->kind, s->device, track,
								   sizeof(track)),
					       DURATION(s->begin_ns), DURATION(s->end_ns - s->begin_ns), BYTES(s->low),
					       BYTES(s->high), kept });
	free(what);
	free(pid);
	free(kept);
}

static void json_row(void *arg, const struct stretch *s)
{
	struct target *to = arg;
	char track[64];
	if (to->shown++ >= to->most)
		return;
	json_t *o = json_object();
	json_object_set_new(o, "pid", json_integer(s->process->pid));
	json_object_set_new(o, "rank", json_rank(s->process->rank));
	if (s->name)
		json_object_set_new(o, "phase", json_text(s->name));
	else
		json_object_set_new(o, "step", json_bytes(s->number));
	json_object_set_new(o, "count", json_bytes(s->count));
	json_object_set_new(o, "track",
			    json_string(timeline_track_name(to->selection, s->process, s->kind, s->device, track,
							    sizeof(track))));
	json_object_set_new(o, "start_s", json_seconds(s->begin_ns));
	json_object_set_new(o, "end_s", json_seconds(s->end_ns));
	json_object_set_new(o, s->name ? "start_bytes" : "low_bytes", json_bytes(s->low));
	json_object_set_new(o, "high_bytes", json_bytes(s->high));
	if (s->name)
		json_object_set_new(o, "kept_bytes", json_integer(s->kept));
	else
		json_object_set_new(o, "rare", json_integer(s->rare));
	json_array_append_new(to->list, o);
}

static void print_screen(const struct selection *sel, const struct timeline *timeline,
			 void (*each)(const struct selection *, const struct timeline *, stretch_f *, void *))
{
	bool phases = sel->options->by == BY_PHASE;
	const struct column columns[] = {
		{ phases ? "PHASE" : "STEP", LEFT, true },
		{ phases ? "visits" : "", RIGHT, false },
		{ "process", RIGHT, false },
		{ "", LEFT, false },
		{ "from", RIGHT, false },
		{ "for", RIGHT, false },
		{ phases ? "at start" : "low", RIGHT, false },
		{ phases ? "peak" : "high", RIGHT, false },
		{ phases ? "kept" : "", RIGHT, false },
	};
	struct target to = { sel, table_new(columns, 9, 0), NULL, 0, selection_rows(sel, SCREEN_ROWS) };
	each(sel, timeline, table_line, &to);
	char *note = to.shown > to.most ? output_format("%zu more: -n ROWS, or --csv", to.shown - to.most) : NULL;
	if (note)
		table_note(to.table, 2, note);
	free(note);
	table_print(to.table);
}

static int print_all_json(const struct selection *sel, const struct timeline *timeline,
			  void (*each)(const struct selection *, const struct timeline *, stretch_f *, void *))
{
	struct target to = { .selection = sel, .list = json_array(), .most = selection_rows(sel, SIZE_MAX) };
	json_t *root = json_object();
	const struct step_list *steps = timeline_main(timeline, sel);
	each(sel, timeline, json_row, &to);
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "complete", json_boolean(reader_complete(sel->reader)));
	json_object_set_new(root, "source", steps ? json_string(timeline_source(steps->source)) : json_null());
	json_object_set_new(root, sel->options->by == BY_PHASE ? "phases" : "steps", to.list);
	json_object_set_new(root, "rows_total", json_bytes(to.shown));
	json_object_set_new(root, "rows_left_out", json_bytes(to.shown - json_array_size(to.list)));
	return json_print(root);
}

int timeline_by_step(struct selection *sel)
{
	bool phases = sel->options->by == BY_PHASE;
	struct analysis a;
	int e = analysis_run(&a, sel, ANALYSIS_TIMELINE, NULL, NULL);
	struct timeline *timeline = a.timeline;
	if (e == 0 && sel->options->json) {
		e = print_all_json(sel, timeline, phases ? each_phase : each_step);
	} else if (e == 0 && !sel->options->csv) {
		print_screen(sel, timeline, phases ? each_phase : each_step);
	} else if (e == 0) {
		print("start_s,end_s,pid,%s,count,track,%s,high_bytes\n", phases ? "phase" : "step",
		      phases ? "start_bytes" : "low_bytes");
		(phases ? each_phase : each_step)(sel, timeline, csv_row, &(struct target){ .selection = sel });
	}
	analysis_free(&a);
	return e;
}
