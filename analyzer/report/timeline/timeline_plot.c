#include "analyzer/report/timeline/timeline_plot.h"

#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 11, FAILURES = 2 }; /* columns left of the plot; failures that are named */

struct plot {
	const struct selection *selection;
	const struct model_device *device;          /* NULL: the host's heap */
	const struct model_series *series, *around; /* around: what was reserved for it; or NULL */
	uint64_t *values, *limits, most;
	bool *failed; /* by column */
	size_t columns;
	unsigned height;
};

static uint64_t highest(const struct model_series *s)
{
	uint64_t most = 0;
	for (uint32_t i = 0; s && i < s->count; i++)
		most = s->buckets[i].high > most ? s->buckets[i].high : most;
	return most;
}

/* ---- what is plotted ------------------------------------------------------------------------------------- */

/* One that failed before one that did not. */
static const struct model_device *pick_device(const struct selection *sel)
{
	const struct model_device *best = NULL;
	for (unsigned i = 0; sel->kinds & 1u << MODEL_DEVICE && i < model_devices(sel->model); i++) {
		const struct model_device *d = model_device(sel->model, i);
		if (!selection_has_device(sel, i) || !d->layer[LAYER_MEMORY].peak_bytes)
			continue;
		if (!best || !!d->ooms > !!best->ooms ||
		    (!!d->ooms == !!best->ooms &&
		     d->layer[LAYER_MEMORY].peak_bytes > best->layer[LAYER_MEMORY].peak_bytes))
			best = d;
	}
	return best;
}

static const struct process *only_process(const struct selection *sel)
{
	for (unsigned id = 0; sel->selected == 1 && id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)))
			return reader_process(sel->reader, id);
	return NULL;
}

static void pick_series(struct plot *p)
{
	const struct selection *sel = p->selection;
	const struct process *only = only_process(sel);
	p->device = pick_device(sel);
	if (p->device) {
		const struct model_share *share = only ? model_share(sel->model, p->device->index, only->id) : NULL;
		const struct model_series *layers = share ? share->timeline : p->device->timeline;
		bool pool = highest(&layers[LAYER_POOL]);
		p->series = &layers[pool ? LAYER_POOL : LAYER_MEMORY];
		p->around = pool ? &layers[LAYER_RESERVED] : NULL;
		return;
	}
	int kind = sel->kinds & 1u << MODEL_HEAP ? MODEL_HEAP : sel->kinds & 1u << MODEL_MAP ? MODEL_MAP : MODEL_PINNED;
	if (only)
		p->series = &model_process(sel->model, only->id)->timeline[kind];
	for (unsigned i = 0; !only && i < reader_hosts(sel->reader); i++)
		if (highest(&model_host(sel->model, i)->timeline[kind]) >= highest(p->series))
			p->series = &model_host(sel->model, i)->timeline[kind];
}

static size_t column_of(const struct plot *p, uint64_t ns)
{
	const struct selection *sel = p->selection;
	uint64_t end = model_end_ns(sel->model), span = end > sel->from_ns ? end - sel->from_ns : 1;
	if (ns <= sel->from_ns)
		return 0;
	size_t column = (size_t)((double)(ns - sel->from_ns) / (double)span * (double)p->columns);
	return column < p->columns ? column : p->columns - 1;
}

static bool is_shown(const struct plot *p, const struct model_oom *o)
{
	return p->device && o->device == p->device->index &&
	       selection_has(p->selection, reader_process(p->selection->reader, o->process));
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

static void print_title(const struct plot *p)
{
	const struct selection *sel = p->selection;
	char *span = output_format("%s to %s", DURATION(sel->from_ns), DURATION(model_end_ns(sel->model))), *text;
	if (p->device)
		text = output_format("%s  %s%s   %s", p->device->name, p->around ? "blocks of the pool" : "memory",
				     p->around ? ", - reserved" : "", span ? span : "");
	else
		text = output_format("%s, live   %s",
				     sel->kinds & 1u << MODEL_HEAP  ? "heap"
				     : sel->kinds & 1u << MODEL_MAP ? "mappings"
								    : "pinned",
				     span ? span : "");
	output_line(STYLE_HEAD, text);
	free(span);
}

/* Of a column in a line, the lowest being 0: eight steps a line. */
static const char *cell(const struct plot *p, size_t column, unsigned line, enum output_style *style)
{
	static const char *const parts[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double full = (double)p->values[column] / (double)p->most * p->height - line;
	double limit = (double)p->limits[column] / (double)p->most * p->height - line;
	*style = STYLE_NONE;
	if (full > 0)
		return parts[full >= 1 ? 8 : (int)(full * 8 + 0.999)];
	if (p->failed[column]) {
		*style = STYLE_BAD;
		return "|";
	}
	*style = STYLE_FAINT;
	return limit > 0 && limit <= 1 ? "-" : " ";
}

static void print_plot_line(const struct plot *p, unsigned line)
{
	enum output_style now = STYLE_NONE, style;
	bool labelled = line == p->height - 1 || line == (p->height - 1) / 2; /* the top one, and the middle */
	print("%*s %s", LABEL - 2, labelled ? BYTES(p->most * (line + 1) / p->height) : "", labelled ? "┤" : "│");
	for (size_t i = 0; i < p->columns; i++) {
		const char *text = cell(p, i, line, &style);
		if (style != now) {
			print("%s", now == STYLE_NONE ? "" : output_end(now));
			print("%s", style == STYLE_NONE ? "" : output_begin(style));
			now = style;
		}
		print("%s", text);
	}
	print("%s\n", now == STYLE_NONE ? "" : output_end(now));
}

static void print_axis(const struct plot *p)
{
	const struct selection *sel = p->selection;
	uint64_t from = sel->from_ns, end = model_end_ns(sel->model);
	print("%*s └", LABEL - 2, "0");
	for (size_t i = 0; i < p->columns; i++)
		if (p->failed[i])
			print("%s^%s", output_begin(STYLE_BAD), output_end(STYLE_BAD));
		else
			print("─");
	print("\n");
	int room = (int)p->columns / 2;
	print("%*s%-*s%*s\n", LABEL, "", room, DURATION(from), (int)p->columns - room, DURATION(end));
}

/* Phases that do not lie in another, each from where it begins with as much of its name as there is room for. */
static unsigned print_phases(const struct plot *p, const struct timeline *timeline)
{
	const struct phases *phases = timeline ? timeline_phases(timeline) : NULL;
	size_t at = 0, until = 0;
	uint64_t end = 0;
	bool any = false;
	for (size_t i = 0; phases && i < phases_count(phases); i++) {
		const struct phase *f = phases_get(phases, i);
		if (!selection_has(p->selection, f->process) || f->visits > 1 || f->begin_ns < end ||
		    f->end_ns <= p->selection->from_ns)
			continue;
		size_t begin = column_of(p, f->begin_ns);
		until = column_of(p, f->end_ns) + 1;
		if (begin < at || until - begin < 3)
			continue;
		if (!any)
			print("%*s", LABEL, "phases ");
		any = true;
		end = f->end_ns;
		char *name = output_cut(f->name, (int)(until - begin) - 1);
		print("%*s%s|%s%s", (int)(begin - at), "", output_begin(STYLE_FAINT), name ? name : "",
		      output_end(STYLE_FAINT));
		at = begin + 1 + (name ? (size_t)output_columns(name) : 0);
		free(name);
	}
	print(any ? "\n" : "");
	return any;
}

static unsigned print_failures(const struct plot *p)
{
	unsigned shown = 0, all = 0;
	for (unsigned i = 0; i < model_ooms(p->selection->model); i++) {
		const struct model_oom *o = model_oom(p->selection->model, i);
		if (!is_shown(p, o) || all++ >= FAILURES)
			continue;
		shown++;
		output_line(STYLE_BAD,
			    output_format("%*s^ out of memory at %s: %s asked for, %s free", LABEL - 2, "",
					  DURATION(o->at.ns), BYTES(o->requested_bytes),
					  o->at.free_bytes == MODEL_UNKNOWN ? "?" : BYTES(o->at.free_bytes)));
	}
	if (all > FAILURES) {
		output_line(STYLE_BAD, output_format("%*s^ and %u more", LABEL - 2, "", all - FAILURES));
		shown++;
	}
	return shown;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static bool fill(struct plot *p)
{
	p->values = calloc(p->columns, sizeof(*p->values));
	p->limits = calloc(p->columns, sizeof(*p->limits));
	p->failed = calloc(p->columns, sizeof(*p->failed));
	if (!p->values || !p->limits || !p->failed)
		return false;
	selection_resample(p->selection, p->series, p->values, p->columns);
	if (p->around)
		selection_resample(p->selection, p->around, p->limits, p->columns);
	for (size_t i = 0; i < p->columns; i++) {
		p->most = p->values[i] > p->most ? p->values[i] : p->most;
		p->most = p->limits[i] > p->most ? p->limits[i] : p->most;
	}
	for (unsigned i = 0; i < model_ooms(p->selection->model); i++)
		if (is_shown(p, model_oom(p->selection->model, i)))
			p->failed[column_of(p, model_oom(p->selection->model, i)->at.ns)] = true;
	return p->most;
}

unsigned timeline_plot(const struct selection *sel, const struct timeline *timeline, unsigned height)
{
	int columns = output_width() - LABEL - 1;
	struct plot p = { .selection = sel, .columns = columns > 8 ? (size_t)columns : 8, .height = height };
	unsigned lines = 0;
	pick_series(&p);
	if (height && p.series && fill(&p)) {
		print_title(&p);
		for (unsigned line = height; line-- > 0;)
			print_plot_line(&p, line);
		print_axis(&p);
		lines = 3 + height;
		lines += print_phases(&p, timeline);
		lines += print_failures(&p);
	}
	free(p.values);
	free(p.limits);
	free(p.failed);
	return lines;
}
