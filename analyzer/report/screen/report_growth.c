/* What the report says about time: steps, phases, growth and what grows; JSON and screen. */
#include "analyzer/diagnosis/growth/owner_growth.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/timeline/reclaimed.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS   1000 /* entries of steps in the JSON */
#define MOST_GROWING 3    /* owners on the screen */
#define BEHIND_OWNER 54   /* columns of figures */
#define LEAST_PART   0.02 /* of a track's high point: growth below is for memtrace leaks */

/* ---- JSON: steps --------------------------------------------------------------------------------------- */

typedef uint64_t point_of(const struct step_track *t, size_t entry);

static double median_point(const struct step_list *steps, const struct step_track *t, point_of *point)
{
	size_t n = 0;
	double *values = calloc(steps->count + 1, sizeof(*values)), median = 0;
	for (size_t i = 0; values && i < steps->count; i++)
		if (!steps->steps[i].partial)
			values[n++] = (double)point(t, i);
	if (values)
		median = median_of(values, n);
	free(values);
	return median;
}

static json_t *json_points(const struct selection *sel, const struct step_list *steps, point_of *point, size_t entry)
{
	json_t *o = json_object();
	char name[64];
	for (size_t k = 0; k < steps->track_count; k++) {
		const struct step_track *t = &steps->tracks[k];
		uint64_t bytes = entry == SIZE_MAX ? (uint64_t)median_point(steps, t, point) : point(t, entry);
		json_object_set_new(o, timeline_track_name(sel, steps->process, t->kind, t->device, name, sizeof(name)),
				    json_bytes(bytes));
	}
	return o;
}

static json_t *json_step(const struct selection *sel, const struct step_list *steps, size_t i)
{
	const struct step *s = &steps->steps[i];
	json_t *o = json_object();
	json_object_set_new(o, "number", json_bytes(s->number));
	json_object_set_new(o, "count", json_integer(s->count));
	json_object_set_new(o, "begin_s", json_seconds(s->begin_ns));
	json_object_set_new(o, "end_s", json_seconds(s->end_ns));
	json_object_set_new(o, "partial", json_boolean(s->partial));
	json_object_set_new(o, "rare", json_integer(s->rare));
	json_object_set_new(o, "low_bytes", json_points(sel, steps, step_low, i));
	json_object_set_new(o, "high_bytes", json_points(sel, steps, step_high, i));
	return o;
}

static json_t *json_forecast(const struct forecast *f)
{
	if (!f->ever)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "level", json_real(FORECAST_LEVEL));
	json_object_set_new(o, "at", json_real(f->x));
	json_object_set_new(o, "low", json_real_or_null(true, f->low));
	json_object_set_new(o, "high", json_real_or_null(true, f->high));
	return o;
}

/* Of what does not go on growing nothing is foretold. */
static json_t *json_growth(const struct selection *sel, const struct analysis *a, const struct step_list *steps)
{
	json_t *o = json_object();
	char name[64];
	for (size_t k = 0; k < steps->track_count; k++) {
		const struct step_track *t = &steps->tracks[k];
		const struct growth_place place = { steps->process->id, (enum model_kind)t->kind, t->device };
		const struct track_finding *found = findings_track(&a->diagnosis->findings, &place);
		const bool goes_on = found && outlook_goes_on(found->growth.outlook);
		const bool by_steps = !goes_on || found->growth.outlook == OUTLOOK_GROWS || !found->rise.stepped;
		struct growth g = by_steps ? timeline_growth(steps, t) : found->rise;
		double limit;
		struct forecast f = owner_growth_forecast(a->timeline, sel, steps, t, &g, &limit);
		f = goes_on && outlook_foretells(found->growth.outlook) ? f : forecast_never;
		json_t *track = json_object();
		json_object_set_new(track, "kind", json_string(growth_name(g.kind)));
		json_object_set_new(track, "certainty", json_string(certainty_name(g.certainty)));
		json_object_set_new(track, "bytes_per_step", json_real(g.rate));
		json_object_set_new(track, "error", json_real(g.rate_error));
		json_object_set_new(track, "acceleration", json_real(g.acceleration));
		json_object_set_new(track, "acceleration_error", json_real(g.acceleration_error));
		json_object_set_new(track, "amplitude_bytes", json_bytes((uint64_t)timeline_amplitude(steps, t)));
		json_object_set_new(track, "limit_bytes", isfinite(limit) ? json_bytes((uint64_t)limit) : json_null());
		json_object_set_new(track, "runs_out_at_step", json_forecast(&f));
		json_object_set_new(o, timeline_track_name(sel, steps->process, t->kind, t->device, name, sizeof(name)),
				    track);
	}
	return o;
}

static json_t *json_rare(const struct step_list *steps)
{
	json_t *o = json_object();
	json_object_set_new(o, "count", json_bytes(steps->rare));
	json_object_set_new(o, "every",
			    steps->rare > 1 ? json_real((double)(steps->rare_last - steps->rare_first) /
							(double)(steps->rare - 1))
					    : json_null());
	return o;
}

static json_t *json_steps(const struct selection *sel, const struct analysis *a, const struct step_list *steps)
{
	if (!steps)
		return json_null();
	json_t *o = json_object(), *list = json_array();
	size_t every = steps->count / MOST_STEPS + 1;
	for (size_t i = 0; i < steps->count; i += every)
		json_array_append_new(list, json_step(sel, steps, i));
	json_object_set_new(o, "count", json_bytes(steps->total));
	json_object_set_new(o, "period_s", json_real(timeline_period(steps)));
	json_object_set_new(o, "source", json_string(timeline_source(steps->source)));
	json_object_set_new(o, "pid", json_integer(steps->process->pid));
	json_object_set_new(o, "micro_steps", json_integer(steps->micro));
	json_object_set_new(o, "rare", json_rare(steps));
	json_object_set_new(o, "low_bytes", json_points(sel, steps, step_low, SIZE_MAX));
	json_object_set_new(o, "high_bytes", json_points(sel, steps, step_high, SIZE_MAX));
	json_object_set_new(o, "growth", json_growth(sel, a, steps));
	json_object_set_new(o, "list_every", json_bytes(every));
	json_object_set_new(o, "list", list);
	return o;
}

json_t *reclaimed_json(const struct reclaimed *f)
{
	json_t *o = json_object();
	json_object_set_new(o, "bytes", json_bytes(f->bytes));
	json_object_set_new(o, "to_kernel_bytes", json_integer(f->to_kernel));
	json_object_set_new(o, "in_allocators_bytes", json_bytes(f->kept));
	json_object_set_new(o, "untouched_bytes", json_bytes(f->untouched));
	json_object_set_new(o, "error_bytes", json_bytes(f->error));
	json_object_set_new(o, "sampled_s",
			    json_pack("[o, o]", json_seconds(f->peak_sample_ns), json_seconds(f->end_sample_ns)));
	return o;
}

/* ---- JSON: phases -------------------------------------------------------------------------------------- */

static void json_freed(const struct selection *sel, json_t *all, const struct phase *p, const struct phase_track *t,
		       const char *track)
{
	struct phase_freed f;
	struct reclaimed host;
	if (t->kind == MODEL_HEAP && p->visits == 1 &&
	    reclaimed_host(sel, p->process,
			   (struct reclaimed_span){ t->peak_ns, t->peak_bytes, p->end_ns, t->end_bytes }, &host))
		json_object_set_new(all, track, reclaimed_json(&host));
	if (!phase_freed(p, t, &f))
		return;
	json_t *o = json_object();
	json_object_set_new(o, "bytes", json_bytes(f.freed));
	json_object_set_new(o, "to_driver_bytes", json_integer(f.to_driver));
	json_object_set_new(o, "in_pool_bytes", json_integer(f.in_pool));
	json_object_set_new(all, track, o);
}

static json_t *json_phase(const struct selection *sel, const struct phase *p)
{
	static const char *const sources[] = { "line", "mark", "nvtx", "mstx" };
	json_t *o = json_object(), *peaks = json_object(), *kept = json_object(), *freed = json_object();
	char name[64];
	for (size_t k = 0; k < p->track_count; k++) {
		const struct phase_track *t = &p->tracks[k];
		timeline_track_name(sel, p->process, t->kind, t->device, name, sizeof(name));
		json_object_set_new(peaks, name, json_bytes(t->peak_bytes));
		json_object_set_new(kept, name, json_integer(t->kept_bytes));
		json_freed(sel, freed, p, t, name);
	}
	json_object_set_new(o, "name", json_text(p->name));
	json_object_set_new(o, "source", json_string(sources[p->source]));
	json_object_set_new(o, "start_s", json_seconds(p->begin_ns));
	json_object_set_new(o, "end_s", json_seconds(p->end_ns));
	json_object_set_new(o, "pid", json_integer(p->process->pid));
	json_object_set_new(o, "visits", json_bytes(p->visits));
	json_object_set_new(o, "busy_s", json_seconds(p->busy_ns));
	json_object_set_new(o, "peaks", peaks);
	json_object_set_new(o, "kept_bytes", kept);
	json_object_set_new(o, "freed_since_peak", freed);
	return o;
}

void report_json_timeline(json_t *o, const struct selection *sel, const struct analysis *a)
{
	json_t *list = json_array();
	const struct phases *phases = timeline_phases(a->timeline);
	for (size_t i = 0; i < phases_count(phases); i++)
		if (selection_has(sel, phases_get(phases, i)->process))
			json_array_append_new(list, json_phase(sel, phases_get(phases, i)));
	json_object_set_new(o, "phases", list);
	json_object_set_new(o, "steps", json_steps(sel, a, timeline_main(a->timeline, sel)));
}

/* ---- screen: growth ------------------------------------------------------------------------------------ */

/* The track whose growth says most. */
struct grown {
	const struct step_list *list;
	const struct step_track *track;
	struct growth growth;
	int rank;
	double weight;
};

/* What only loads, or is little, is not called growth above a verdict that says so. */
static bool is_ruled_out(const struct diagnosis *diagnosis, uint32_t device)
{
	const struct verdicts *v = &diagnosis->verdicts;
	for (size_t i = 0; i < v->ruled_out_count; i++) {
		const struct evidence_device *d = v->ruled_out[i].device;
		if (verdict_has(v->ruled_out[i].kind, VERDICT_TELLS_GROWTH) &&
		    (d ? d == &diagnosis->evidence.devices.items[device] : device == MODEL_NO_DEVICE))
			return true;
	}
	return false;
}

/* There is less of a device than of the host. Its growth weighs as a part of what the process has of it; of the host's,
 * which the processes share, one may have grown from nothing to hardly anything. */
static void weigh(struct grown *g, double part)
{
	bool host = g->track->device == MODEL_NO_DEVICE;
	g->rank = host ? 1 : g->track->kind == MODEL_POOL ? 3 : 2;
	g->weight = host ? g->growth.bytes : part;
}

static struct grown find_grown(const struct diagnosis *diagnosis)
{
	struct grown best = { 0 };
	for (size_t i = 0; i < diagnosis->findings.track_count; i++) {
		const struct track_finding *found = &diagnosis->findings.tracks[i];
		if (found->growth.outlook != OUTLOOK_LEAKS || !found->steps->count || found->has_pool ||
		    is_ruled_out(diagnosis, found->place.device))
			continue;
		struct grown g = { .list = found->steps, .track = found->track, .growth = found->rise };
		const double part = found->growth.growth.bytes / (double)found->bytes;
		weigh(&g, part);
		if (part > LEAST_PART && (g.rank > best.rank || (g.rank == best.rank && g.weight > best.weight)))
			best = g;
	}
	return best;
}

enum { COLUMNS = 10, COLUMN = 9, ROW_NAME = 10 };

/* How many places there is room for. */
static size_t places(const struct step_list *steps)
{
	size_t room = (size_t)(output_width() - ROW_NAME) / COLUMN, n = room < COLUMNS ? room : COLUMNS;
	return steps->count < n ? steps->count : n;
}

static void print_row(const struct step_list *steps, const struct step_track *t, point_of *point, const char *name,
		      double unit)
{
	size_t n = places(steps);
	print("\n  %-8s", name);
	for (size_t i = 0; i < n; i++) {
		double value = (double)point(t, (i + 1) * steps->count / n - 1) / unit;
		print(" %8.*f", value < 10 ? 3 : value < 1000 ? 2 : 0, value);
	}
}

/* High and low points at up to ten places. */
static void print_places(const struct step_list *steps, const struct step_track *t)
{
	size_t n = places(steps);
	double most = (double)step_high(t, steps->count - 1);
	bool gib = most >= 1073741824.0, mib = most >= 1048576.0;
	double unit = gib ? 1073741824.0 : mib ? 1048576.0 : 1024.0;
	int digits = steps->source != LOOP_NONE             ? 0
		     : step_x(steps, steps->count - 1) < 30 ? 2
							    : step_x(steps, steps->count - 1) < 300;
	print("  %-8s", steps->source == LOOP_NONE ? "second" : "step");
	for (size_t i = 0; i < n; i++)
		print(" %8.*f", digits, step_x(steps, (i + 1) * steps->count / n - 1));
	print_row(steps, t, step_high, gib ? "GiB high" : mib ? "MiB high" : "KiB high", unit);
	print_row(steps, t, step_low, "     low", unit);
	print("\n");
}

/* The failure that ended it, if memory has ended. */
static const struct model_oom *end_of(const struct selection *sel, const struct grown *g)
{
	if (g->track->device == MODEL_NO_DEVICE)
		return NULL;
	const struct model_oom *o = diagnosis_failure(model_device(sel->model, g->track->device));
	return o && o->process == g->list->process->id ? o : NULL;
}

static double x_of(const struct step_list *steps, uint64_t ns)
{
	if (steps->source == LOOP_NONE)
		return (double)(ns - steps->process->start_ns) / 1e9;
	uint64_t number = steps->steps[0].number;
	step_number_at(steps, ns, &number);
	return (double)number;
}

/* Frees the text. */
static unsigned print_fact(const char *name, char *text)
{
	print("  %-10s", name);
	unsigned lines = output_wrapped(text, 12, 2, output_width() - 12, NULL);
	free(text);
	return lines;
}

/* What could be known when half of it had run, beside what came. */
static unsigned print_hindsight(const struct selection *sel, const struct timeline *timeline, const struct grown *g,
				const struct model_oom *o)
{
	struct step_list half = *g->list;
	double limit, failed = x_of(g->list, o->at.ns);
	const char *unit = half.source == LOOP_NONE ? "second" : "step";
	half.count = (half.count + 1) / 2;
	struct growth growth = timeline_growth(&half, g->track);
	struct forecast f = owner_growth_forecast(timeline, sel, &half, g->track, &growth, &limit);
	if (!f.ever)
		return print_fact("forecast", output_format("none half-way; it failed at %s %.0f", unit, failed));
	char *when = forecast_text(f.x, f.low, f.high);
	unsigned lines =
		print_fact("forecast", output_format("half-way (%s %.0f): fails at %s; it failed at %s %.0f", unit,
						     step_x(&half, half.count - 1), when ? when : "", unit, failed));
	free(when);
	return lines;
}

static unsigned print_forecast(const struct selection *sel, const struct timeline *timeline, const struct grown *g)
{
	const struct model_oom *ended = end_of(sel, g);
	if (ended)
		return print_hindsight(sel, timeline, g, ended);

	double limit, period = timeline_period(g->list);
	struct forecast f = owner_growth_forecast(timeline, sel, g->list, g->track, &g->growth, &limit);
	bool stepped = g->list->source != LOOP_NONE;
	if (!f.ever)
		return 0;
	const struct step *last = &g->list->steps[g->list->count - 1];
	double now = stepped ? (double)(last->number + last->count - 1) : 0;
	double at_ns = stepped ? (double)last->end_ns + (f.x - now) * period * 1e9
			       : (double)g->list->process->start_ns + f.x * 1e9;
	if (at_ns <= model_end_ns(sel->model))
		return 0; /* it went on beyond that: what grew had stopped */
	char *when = forecast_text(f.x, f.low, f.high);
	char *then = stepped ? output_format(", %s", DURATION((uint64_t)at_ns)) : NULL;
	unsigned lines =
		print_fact("forecast", output_format("if it goes on, memory ends at %s %s%s",
						     stepped ? "step" : "second", when ? when : "", then ? then : ""));
	free(then);
	free(when);
	return lines;
}

static const char *period_text(char *text, size_t size, double seconds)
{
	snprintf(text, size, seconds < 0.1 ? "%.3g ms" : "%.3g s", seconds < 0.1 ? seconds * 1000 : seconds);
	return text;
}

static unsigned print_growth(const struct report *r, const struct grown *g)
{
	const struct selection *sel = r->selection;
	const struct timeline *timeline = r->analysis.timeline;
	const struct step_list *step_list = g->list;
	const char *unit = g->growth.stepped ? "step" : "s";
	char name[64], period[32];
	timeline_track_name(sel, step_list->process, g->track->kind, g->track->device, name, sizeof(name));
	const bool marked =
		step_list->source == LOOP_MARKS || step_list->source == LOOP_NVTX || step_list->source == LOOP_MSTX;
	char *of = output_format("GROWTH  %s of %u %s; ",
				 g->track->kind < MODEL_HOST_KINDS ? kind_words(g->track->kind) : name,
				 step_list->process->pid, step_list->process->name);
	char *steps = step_list->source == LOOP_NONE
			      ? strdup("no steps were found")
			      : output_format("%s steps (%s each)", COUNT(step_list->total),
					      period_text(period, sizeof(period), timeline_period(step_list)));
	const char *how = step_list->source == LOOP_NONE ? "" : marked ? " as marked" : " found without marks";
	print("\n");
	output_first_line(STYLE_BAD,
			  (char *[]){ output_format("%s%s%s", of ? of : "", steps ? steps : "", how),
				      output_format("%s%s", of ? of : "", steps ? steps : "") },
			  2);
	free(of);
	free(steps);
	if (!r->brief)
		print_places(step_list, g->track);
	char *more = g->growth.kind == GROWTH_ACCELERATING
			     ? output_format(", +%s/%s each 100 %s", BYTES((uint64_t)(g->growth.acceleration * 100)),
					     unit, g->growth.stepped ? "steps" : "s")
			     : strdup("");
	char *shape = growth_is_brief(&g->growth)
			      ? growth_brief_text(&g->growth, g->growth.bytes)
			      : output_format("%s/%s now (95 %%: +/- %s)%s", BYTES((uint64_t)g->growth.rate), unit,
					      BYTES((uint64_t)ceil(g->growth.rate_error)), more ? more : "");
	unsigned lines = print_fact("shape", output_format("%s: %s", growth_name(g->growth.kind), shape ? shape : ""));
	free(shape);
	free(more);
	return lines + (r->brief ? 2 : 5) + print_forecast(sel, timeline, g);
}

/* ---- screen: what grows -------------------------------------------------------------------------------- */

static size_t find_growing(const struct findings *f, const struct grown *g, const struct owner_finding **list)
{
	size_t count = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct owner_finding *one = &f->list[i];
		if (one->kind != (enum model_kind)g->track->kind || one->device != g->track->device ||
		    one->growth.outlook != OUTLOOK_LEAKS || one->growth.process != g->list->process->id)
			continue;
		size_t at = count++;
		for (; at > 0 && list[at - 1]->growth.growth.bytes < one->growth.growth.bytes; at--)
			list[at] = list[at - 1];
		list[at] = one;
	}
	return count;
}

static void print_owner(const struct owner_finding *g, double all)
{
	const struct owner_growth *t = &g->growth;
	const char *unit = growth_unit(&t->growth);
	char *text = owner_text(g->owner), *where = g->owner->frame ? frame_where(g->owner->frame) : NULL;
	char *line = output_format("%3.0f %%  %s  %s", all > 0 ? 100 * t->growth.bytes / all : 0, text ? text : "",
				   where ? where : "");
	const int room = output_width() - BEHIND_OWNER;
	char *fitted = line ? output_fit(line, room) : NULL;
	print("  %s%*s %10s", fitted ? fitted : "", room - output_columns(fitted ? fitted : ""), "",
	      BYTES((uint64_t)t->growth.bytes));
	if (t->how == OWNER_GROWTH_MORE_BLOCKS && growth_is_brief(&t->growth))
		print("  of %s each", BYTES((uint64_t)t->mean_block_bytes));
	else if (t->how == OWNER_GROWTH_MORE_BLOCKS)
		print("  %.4g block%s more a %s, %s each", t->blocks_per_x, fabs(t->blocks_per_x - 1) < 1e-4 ? "" : "s",
		      unit, BYTES((uint64_t)t->mean_block_bytes));
	else if (t->how == OWNER_GROWTH_BIGGER_BLOCKS)
		print("  bigger blocks");
	print("\n");
	free(fitted);
	free(line);
	free(text);
	free(where);
}

static unsigned print_growing(const struct owner_finding **list, size_t count)
{
	double all = 0;
	unsigned lines = 1;
	for (size_t i = 0; i < count; i++)
		all += list[i]->growth.growth.bytes;
	print("%sWHAT GROWS%s (since %s %.0f)\n", output_begin(STYLE_HEAD), output_end(STYLE_HEAD),
	      growth_unit(&list[0]->growth.growth), list[0]->growth.growth.since_x);
	for (size_t i = 0; i < count && i < MOST_GROWING; i++, lines++)
		print_owner(list[i], all);
	size_t in_step = 0;
	for (size_t i = 1; i < count; i++)
		in_step += list[i]->growth.group == list[0]->growth.group;
	if (count > MOST_GROWING || in_step) {
		print("  %zu sites grow", count);
		if (in_step)
			print(", %zu of them at the same pace", in_step + 1);
		print("\n");
		lines++;
	}
	return lines;
}

unsigned report_print_growth(const struct report *r)
{
	const struct findings *f = &r->analysis.diagnosis->findings;
	struct grown g = find_grown(r->analysis.diagnosis);
	if (!g.list)
		return 0;
	unsigned lines = print_growth(r, &g);
	const struct owner_finding **list = r->brief ? NULL : calloc(f->count + 1, sizeof(*list));
	const size_t count = list ? find_growing(f, &g, list) : 0;
	if (count)
		lines += print_growing(list, count);
	free(list);
	return lines;
}
