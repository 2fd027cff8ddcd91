#include "analyzer/whatif/whatif_host.h"

#include "analyzer/replay/heap/heap_replay.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHATIF_MOST_SETTINGS = 16, WHATIF_MOST_POINTS = 200 };

struct asked {
	struct heap_setting settings[WHATIF_MOST_SETTINGS];
	size_t count;
	const char *missing[WHATIF_MOST_SETTINGS]; /* usual ones that are not installed */
	size_t missing_count;
};

/* ---- whose heap, and which settings -------------------------------------------------------------------------- */

/* The process whose heap was the largest, among those that are looked at. */
static int find_process(struct selection *sel, const struct process **out)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct reader *r = NULL;
	uint64_t most = 0;
	int e = sel->selected == 1 ? 0 : reader_open_again(&r, sel->reader);
	q.on_progress = output_progress;
	if (!e && r)
		e = model_run(&sel->model, r, &q);
	*out = NULL;
	for (unsigned id = 0; !e && id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		const uint64_t peak = sel->model ? model_process(sel->model, id)->kind[MODEL_HEAP].peak_bytes : 1;
		if (selection_has(sel, p) && peak > most) {
			most = peak;
			*out = p;
		}
	}
	model_free(sel->model);
	sel->model = NULL;
	reader_close(r);
	if (!e && !*out)
		e = error_set(MT_EREPLAY, NULL, ERROR_NO_OFFSET, "the trace has no heap, so it can't be replayed");
	return e;
}

static int ask_usual(struct asked *a, const struct process *p, const struct heap_setting *own)
{
	for (size_t i = 0; i < heap_usual_count && a->count < WHATIF_MOST_SETTINGS; i++) {
		struct heap_setting *s = &a->settings[a->count];
		int e = heap_setting_parse(s, heap_usual[i], p);
		if (e && e != -MT_EUSAGE)
			return e;
		if (e)
			a->missing[a->missing_count++] = heap_usual[i];
		if (e || heap_setting_is_own(s, own) || (s->trim && *s->library))
			heap_setting_fini(s);
		else
			a->count++;
	}
	return 0;
}

static int ask(struct asked *a, const char *text, const struct process *p)
{
	struct heap_setting own = { 0 };
	int e = heap_setting_own(&own, p);
	if (!e && !strcmp(text, "all"))
		e = ask_usual(a, p, &own);
	else if (!e)
		e = heap_setting_parse(&a->settings[a->count++], text, p);
	heap_setting_fini(&own);
	return e;
}

/* ---- showing ----------------------------------------------------------------------------------------------- */

static char *difference(uint64_t now, uint64_t before)
{
	return now == before ? strdup("as it was")
			     : output_format("%s %s", BYTES(higher(now, before) - lower(now, before)),
					     now > before ? "more" : "less");
}

/* Why there are no figures; NULL = there are. */
static char *trouble(const struct heap_outcome *o)
{
	switch (o->end) {
	case HEAP_END_WELL:
		return NULL;
	case HEAP_END_REFUSED:
		return output_format("refused %s of call %s", BYTES(o->refused_bytes), COUNT(o->calls));
	case HEAP_END_FULL:
		return output_format("needed %s by call %s: more than is free here", BYTES(o->refused_bytes),
				     COUNT(o->calls));
	case HEAP_END_NO_TRIM:
		return strdup("only glibc has it");
	case HEAP_END_SLOW:
		return output_format("stopped: took more than %u times as long as the run", HEAP_TIMES);
	case HEAP_END_NO_THREAD:
		return strdup("no more threads can be made here");
	case HEAP_END_NO_ALLOCATOR:
		return strdup("could not be loaded, or has no malloc");
	default:
		return strdup("no memory for its tables");
	}
}

static void print_row(struct table *table, const struct heap_replay *r, const char *name, const struct heap_outcome *o)
{
	char *why = trouble(o), *peak = NULL, *last = NULL, *time = NULL;
	const bool own = o == &r->own, figures = own || r->trust == HEAP_TRUST_FIGURES;
	if (!why) {
		peak = figures ? strdup(BYTES(o->peak)) : difference(o->peak, r->own.peak);
		last = figures ? strdup(BYTES(o->last)) : difference(o->last, r->own.last);
		time = own ? strdup("1.00x")
			   : output_format("%.2fx", r->own.call_ns ? (double)o->call_ns / (double)r->own.call_ns : 0);
		why = own ? NULL : difference(o->last, r->own.last);
	}
	table_row(table, (const char *[]){ name, peak, last, time, figures || !time ? why : NULL });
	free(why);
	free(peak);
	free(last);
	free(time);
}

static const struct heap_replay *sorted_by;

static int by_memory(const void *a, const void *b)
{
	const struct heap_outcome *x = &sorted_by->outcomes[*(const size_t *)a],
				  *y = &sorted_by->outcomes[*(const size_t *)b];
	const uint64_t p = x->end == HEAP_END_WELL ? x->peak : UINT64_MAX,
		       q = y->end == HEAP_END_WELL ? y->peak : UINT64_MAX;
	return p != q ? (p > q) - (p < q) : (x->last > y->last) - (x->last < y->last);
}

static void print_outcomes(const struct heap_replay *r, const struct asked *a)
{
	static const struct column columns[] = { { "setting", LEFT, false },
						 { "at the peak", RIGHT, false },
						 { "at the end", RIGHT, false },
						 { "in calls", RIGHT, false },
						 { "than the run", LEFT, true } };
	size_t order[WHATIF_MOST_SETTINGS];
	struct table *table = table_new(columns, 5, 2);
	print_row(table, r, "the run, replayed", &r->own);
	for (size_t i = 0; i < r->count; i++)
		order[i] = i;
	sorted_by = r;
	qsort(order, r->count, sizeof(*order), by_memory);
	for (size_t i = 0; i < r->count; i++)
		print_row(table, r, a->settings[order[i]].name, &r->outcomes[order[i]]);
	table_print(table);
}

static void print_agreement(const struct heap_replay *r)
{
	if (!r->looks) {
		output_whole_line(STYLE_BAD,
				  strdup("  of its memory there is no sample: how far the replay is off nobody knows"));
		return;
	}
	output_whole_line(r->trust == HEAP_TRUST_FIGURES ? STYLE_NONE : STYLE_BAD,
			  output_format("  resident, replayed and as it was: %s and %s at most, %s and %s at last",
					BYTES(r->peak.replayed), BYTES(r->peak.recorded), BYTES(r->last.replayed),
					BYTES(r->last.recorded)));
	if (r->trust == HEAP_TRUST_DIFFERENCES)
		output_whole_line(STYLE_BAD, output_format("  off by %.1f %%: only differences between settings hold",
							   100 * r->off));
	if (r->trust == HEAP_TRUST_NOTHING)
		output_whole_line(STYLE_BAD, output_format("  off by %.1f %%: of other settings nothing can be said",
							   100 * r->off));
}

/* What the figures rest on. */
static void print_assumptions(const struct heap_replay *r, const struct asked *a)
{
	static const char *const written[] = {
		[HEAP_TOUCH_ALL] = "all of each block",
		[HEAP_TOUCH_SEEN] = "of large blocks what was seen to be resident, all of others",
		[HEAP_TOUCH_LEAST] = "the same, but nothing of what calloc got from the kernel (from 128 KiB on)",
	};
	const struct heap_plan *plan = &r->plan;
	output_whole_line(STYLE_FAINT, output_format("  taken for written to: %s", written[plan->touch]));
	for (size_t i = 0; i < r->count; i++)
		if (a->settings[i].trim)
			output_whole_line(STYLE_FAINT,
					  strdup("  malloc_trim gives back once: what later requests take of "
						 "these holes is resident again"));
	if (r->other)
		output_whole_line(STYLE_FAINT,
				  output_format("  beside heap and mappings: %s, in each of them", BYTES(r->other)));
	if (!plan->complete)
		output_whole_line(STYLE_BAD, strdup("  INCOMPLETE: what is left is replayed, see memtrace check"));
	if (plan->lost || plan->folded)
		output_whole_line(
			STYLE_BAD,
			output_format("  %s allocations were folded and %s events lost: the replay has none of them",
				      COUNT(plan->folded), COUNT(plan->lost)));
	if (plan->young)
		output_whole_line(STYLE_BAD,
				  output_format("  %s small blocks are totals, which can't be replayed: record with "
						"MEMTRACE_RECORD=all",
						COUNT(plan->young)));
	for (size_t i = 0; i < a->missing_count; i++)
		output_whole_line(STYLE_FAINT, output_format("  not installed: %s", a->missing[i]));
}

static void print_replay(const struct selection *sel, const struct heap_replay *r, const struct asked *a)
{
	const struct heap_plan *plan = &r->plan;
	selection_print_parts(sel);
	output_line(STYLE_HEAD, output_format("WHAT IF  heap of %u %s", plan->process->pid, plan->process->name));
	output_whole_line(STYLE_NONE,
			  output_format("  %s calls of %s threads were made again, at the peak %s were live",
					COUNT(plan->counts.calls), COUNT(plan->threads), BYTES(plan->most_live)));
	print_agreement(r);
	if (r->trust != HEAP_TRUST_NOTHING)
		print_outcomes(r, a);
	print_assumptions(r, a);
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

static json_t *json_end(const struct heap_outcome *o)
{
	char *why = trouble(o);
	json_t *text = json_text(why);
	free(why);
	return text;
}

static json_t *json_outcome(const char *name, const struct heap_outcome *o)
{
	json_t *j = json_object();
	const bool well = o->end == HEAP_END_WELL;
	json_object_set_new(j, "setting", json_text(name));
	json_object_set_new(j, "failed", json_end(o));
	json_object_set_new(j, "peak_bytes", well ? json_bytes(o->peak) : json_null());
	json_object_set_new(j, "peak_at_s", well ? json_seconds(o->peak_ns) : json_null());
	json_object_set_new(j, "end_bytes", well ? json_bytes(o->last) : json_null());
	json_object_set_new(j, "calls_s", well ? json_seconds(o->call_ns) : json_null());
	return j;
}

static json_t *json_agreement(const struct heap_agreement *a)
{
	json_t *j = json_object();
	json_object_set_new(j, "at_s", json_seconds(a->ns));
	json_object_set_new(j, "sampled_bytes", json_bytes(a->recorded));
	json_object_set_new(j, "replayed_bytes", json_bytes(a->replayed));
	return j;
}

/* Over time: a row for each of so many moments, the run's first. */
static json_t *json_times(const struct heap_replay *r)
{
	const struct heap_plan *plan = &r->plan;
	const size_t step = plan->point_count / WHATIF_MOST_POINTS + 1;
	json_t *list = json_array();
	for (size_t i = 0; i < plan->point_count; i += step) {
		const struct heap_point *p = &plan->points[i];
		json_t *j = json_object(), *bytes = json_array();
		json_object_set_new(j, "at_s", json_seconds(p->ns));
		json_object_set_new(j, "live_bytes", json_bytes(p->live));
		json_object_set_new(j, "sampled_bytes",
				    p->recorded == HEAP_UNKNOWN ? json_null() : json_bytes(p->recorded));
		json_array_append_new(bytes, json_bytes(r->own.now[i]));
		for (size_t k = 0; k < r->count; k++)
			json_array_append_new(bytes,
					      r->outcomes[k].now ? json_bytes(r->outcomes[k].now[i]) : json_null());
		json_object_set_new(j, "resident_bytes", bytes);
		json_array_append_new(list, j);
	}
	return list;
}

static int print_json(const struct heap_replay *r, const struct asked *a)
{
	static const char *const trusts[] = { "figures", "differences", "nothing" };
	static const char *const touches[] = { "all", "seen", "least" };
	const struct heap_plan *plan = &r->plan;
	json_t *root = json_object(), *heap = json_object(), *settings = json_array(), *missing = json_array();
	for (size_t i = 0; i < r->count; i++)
		json_array_append_new(settings, json_outcome(a->settings[i].name, &r->outcomes[i]));
	for (size_t i = 0; i < a->missing_count; i++)
		json_array_append_new(missing, json_text(a->missing[i]));
	json_object_set_new(heap, "pid", json_integer(plan->process->pid));
	json_object_set_new(heap, "process", json_text(plan->process->program));
	json_object_set_new(heap, "calls", json_bytes(plan->counts.calls));
	json_object_set_new(heap, "threads", json_integer(plan->threads));
	json_object_set_new(heap, "live_peak_bytes", json_bytes(plan->most_live));
	json_object_set_new(heap, "complete", json_boolean(plan->complete));
	json_object_set_new(heap, "folded", json_bytes(plan->folded));
	json_object_set_new(heap, "young", json_bytes(plan->young));
	json_object_set_new(heap, "lost_events", json_bytes(plan->lost));
	json_object_set_new(heap, "samples", json_bytes(r->looks));
	json_object_set_new(heap, "other_bytes", json_bytes(r->other));
	json_object_set_new(heap, "written", json_text(touches[plan->touch]));
	json_object_set_new(heap, "trust", json_text(trusts[r->trust]));
	json_object_set_new(heap, "off", r->looks ? json_real(r->off) : json_null());
	json_object_set_new(heap, "at_peak", r->looks ? json_agreement(&r->peak) : json_null());
	json_object_set_new(heap, "at_end", r->looks ? json_agreement(&r->last) : json_null());
	json_object_set_new(heap, "run", json_outcome(r->own_setting.name, &r->own));
	json_object_set_new(heap, "settings", settings);
	json_object_set_new(heap, "not_installed", missing);
	json_object_set_new(heap, "times", json_times(r));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "heap", heap);
	return json_print(root);
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static char doing[80] = "replaying the run:";

static void show_progress(double done, uint64_t events)
{
	output_progress_of(doing, events, "events", done);
}

static void show_setting(const struct heap_query *q, size_t index)
{
	snprintf(doing, sizeof(doing), "replaying %zu of %zu, %.40s:", index + 1, q->count, q->settings[index].name);
}

int whatif_host(struct selection *sel, const char *setting)
{
	const struct process *p = NULL;
	struct asked asked = { .count = 0 };
	struct heap_replay replay = { .count = 0 };
	struct samples *samples = NULL;
	int e = find_process(sel, &p);
	if (!e && process_is_picked(p))
		e = error_set(MT_EUSAGE, "--host", ERROR_NO_OFFSET,
			      "%u %s was recorded with --record sampled: to make its calls again all of them are "
			      "needed, --record all",
			      p->pid, p->name);
	e = e ? e : ask(&asked, setting, p);
	e = e ? e : samples_open(&samples, sel->reader);
	const struct heap_query q = { .settings = asked.settings,
				      .count = asked.count,
				      .on_plan = output_progress,
				      .on_progress = show_progress,
				      .on_setting = show_setting };
	if (!e)
		e = heap_replay_run(&replay, sel->reader, samples, p, &q);
	output_progress_end();
	if (!e && sel->options->json)
		e = print_json(&replay, &asked);
	else if (!e)
		print_replay(sel, &replay, &asked);
	heap_replay_fini(&replay);
	for (size_t i = 0; i < asked.count; i++)
		heap_setting_fini(&asked.settings[i]);
	samples_close(samples);
	return e;
}
