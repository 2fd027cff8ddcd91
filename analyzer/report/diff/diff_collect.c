/* What one trace has of totals, devices, categories, processes, phases, steps, resident memory and sites; then in what
 * order. */
#include "analyzer/report/diff/diff.h"

#include "analyzer/diagnosis/diagnosis.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "format/fnv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- items --------------------------------------------------------------------------------------------- */

static struct item *item_of(struct diff *d, enum section section, const char *id, const char *name, const char *figure)
{
	char *key = output_format("%d\n%s\n%s", section, id, figure);
	struct item *i = NULL;
	if (!key)
		return NULL;
	HASH_FIND_STR(d->items, key, i);
	if (i) {
		free(key);
		return i;
	}
	i = calloc(1, sizeof(*i));
	if (!i) {
		free(key);
		return NULL;
	}
	*i = (struct item){
		.key = key, .name = strdup(name), .figure = strdup(figure), .section = section, .order = d->count++
	};
	HASH_ADD_KEYPTR(hh, d->items, i->key, strlen(i->key), i);
	return i;
}

struct item *diff_add_named(struct diff *d, int side, enum section section, const char *id, const char *name,
			    const char *figure, double value)
{
	struct item *i = item_of(d, section, id, name, figure);
	if (!i)
		return NULL;
	i->has[side] = true;
	i->value[side] += value;
	return i;
}

static struct item *add(struct diff *d, int side, enum section section, const char *name, const char *figure,
			double value)
{
	return diff_add_named(d, side, section, name, name, figure, value);
}

static void add_seconds(struct diff *d, int side, enum section section, const char *name, const char *figure,
			double value)
{
	struct item *i = add(d, side, section, name, figure, value);
	if (i)
		i->seconds = true;
}

/* The greatest of several values. */
static void add_most(struct diff *d, int side, enum section section, const char *name, const char *figure, double value)
{
	struct item *i = item_of(d, section, name, name, figure);
	if (!i)
		return;
	i->value[side] = i->has[side] && i->value[side] > value ? i->value[side] : value;
	i->has[side] = true;
}

/* ---- one side ------------------------------------------------------------------------------------------ */

static void take_totals(struct diff *d, int side)
{
	const struct selection *sel = &d->side[side].selection;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct model_totals t = model_totals(sel->model, (enum model_kind)kind);
		if (!(sel->kinds & 1u << kind) || !t.allocations)
			continue;
		add(d, side, TOTALS, kind_name((enum model_kind)kind), "peak", (double)t.peak_bytes);
		struct item *end =
			add(d, side, TOTALS, kind_name((enum model_kind)kind), "at end", (double)t.live_bytes);
		if (end)
			end->doubt[side] = (double)t.doubt_bytes;
	}
	add_seconds(d, side, TOTALS, "run", "duration", (double)reader_duration_ns(sel->reader) / 1e9);
}

static void take_devices(struct diff *d, int side)
{
	static const char *const figures[] = {
		[LAYER_MEMORY] = "peak", [LAYER_POOL] = "pool peak", [LAYER_RESERVED] = "reserved peak"
	};
	const struct selection *sel = &d->side[side].selection;
	for (unsigned i = 0; i < model_devices(sel->model); i++) {
		const struct model_device *m = model_device(sel->model, i);
		if (!selection_has_device(sel, i))
			continue;
		for (int layer = 0; layer <= LAYER_RESERVED; layer++) {
			double bytes = (double)m->layer[layer].peak_bytes;
			add_most(d, side, DEVICES, m->name, figures[layer], bytes);
			add(d, side, DEVICES, "all devices", figures[layer], bytes);
		}
	}
}

/* At the peak of the heaps and of each device; where a device failed, when it did: as the report has them. */
static void take_categories(struct diff *d, int side, const struct diagnosis *diagnosis)
{
	const struct selection *sel = &d->side[side].selection;
	for (unsigned i = 0; i < diagnosis->space_count; i++) {
		const struct diagnosis_space *s = &diagnosis->spaces[i];
		bool host = s->device == MODEL_NO_DEVICE;
		if (!(sel->kinds & (host ? 1u << MODEL_HEAP : 1u << MODEL_DEVICE | 1u << MODEL_POOL)) ||
		    (!host && !selection_has_device(sel, s->device)))
			continue;
		for (int c = 0; c < CATEGORIES; c++)
			if (s->category[c])
				add(d, side, CATEGORIES_OF, s->name, category_name((enum category)c),
				    (double)s->category[c]);
	}
}

/* Two of one name are told apart by the order they started in. */
static char *process_name(const struct selection *sel, const struct process *p)
{
	unsigned nth = 1;
	for (unsigned id = 0; id < p->id; id++)
		nth += !strcmp(reader_process(sel->reader, id)->name, p->name);
	return nth > 1 ? output_format("%s %u", p->name, nth) : output_format("%s", p->name);
}

static void take_process(struct diff *d, int side, const struct model_process *m)
{
	const struct selection *sel = &d->side[side].selection;
	char *name = process_name(sel, m->process);
	for (int kind = 0; name && kind < MODEL_HOST_KINDS; kind++)
		if (sel->kinds & 1u << kind && m->kind[kind].allocations) {
			char *figure = output_format("%s peak", kind_name((enum model_kind)kind));
			add(d, side, PROCESSES, name, figure ? figure : "peak", (double)m->kind[kind].peak_bytes);
			free(figure);
		}
	for (unsigned i = 0; name && i < model_devices(sel->model); i++) {
		const struct model_share *s = model_share(sel->model, i, m->process->id);
		if (!s || !selection_has_device(sel, i))
			continue;
		char *figure = output_format("%s peak", model_device(sel->model, i)->name);
		add(d, side, PROCESSES, name, figure ? figure : "peak", (double)s->layer[LAYER_MEMORY].peak_bytes);
		free(figure);
	}
	free(name);
}

static void take_processes(struct diff *d, int side)
{
	const struct selection *sel = &d->side[side].selection;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)))
			take_process(d, side, model_process(sel->model, id));
}

/* A line that moved is the same phase: its file and what it calls tell it. */
static char *phase_name(const struct phase *p)
{
	const char *colon = strchr(p->name, ':'), *space = colon ? strchr(colon, ' ') : NULL;
	if (p->source != PHASE_LINE || !space)
		return output_format("%s", p->name);
	return output_format("%.*s%s", (int)(colon - p->name), p->name, space);
}

static void take_phases(struct diff *d, int side)
{
	const struct selection *sel = &d->side[side].selection;
	const struct phases *phases = timeline_phases(d->side[side].analysis.timeline);
	char track[64], *figure;
	for (size_t i = 0; i < phases_count(phases); i++) {
		const struct phase *p = phases_get(phases, i);
		char *name = phase_name(p);
		if (name && selection_has(sel, reader_process(sel->reader, p->process->id))) {
			add_seconds(d, side, PHASES, name, "time", (double)p->busy_ns / 1e9);
			for (size_t k = 0; k < p->track_count; k++) {
				timeline_track_name(sel, p->process, p->tracks[k].kind, p->tracks[k].device, track,
						    sizeof(track));
				figure = output_format("%s peak", track);
				add_most(d, side, PHASES, name, figure ? figure : "peak",
					 (double)p->tracks[k].peak_bytes);
				free(figure);
			}
		}
		free(name);
	}
}

static double middle(const struct step_list *steps, const struct step_track *t,
		     uint64_t (*point)(const struct step_track *, size_t))
{
	size_t n = 0;
	double *values = calloc(steps->count + 1, sizeof(*values)), median;
	for (size_t i = 0; values && i < steps->count; i++)
		if (!steps->steps[i].partial)
			values[n++] = (double)point(t, i);
	median = values ? median_of(values, n) : 0;
	free(values);
	return median;
}

static void take_steps(struct diff *d, int side)
{
	const struct selection *sel = &d->side[side].selection;
	const struct step_list *steps = timeline_main(d->side[side].analysis.timeline, sel);
	char track[64];
	if (!steps)
		return;
	add_seconds(d, side, STEPS, "step", "time", timeline_period(steps));
	for (size_t k = 0; k < steps->track_count; k++) {
		timeline_track_name(sel, steps->process, steps->tracks[k].kind, steps->tracks[k].device, track,
				    sizeof(track));
		add(d, side, STEPS, track, "low", middle(steps, &steps->tracks[k], step_low));
		add(d, side, STEPS, track, "high", middle(steps, &steps->tracks[k], step_high));
		struct growth g = timeline_growth(steps, &steps->tracks[k]);
		if (!g.unproven) /* then it is not known, in either */
			add(d, side, STEPS, track, "growth a step", growth_is_steady(&g) ? g.rate : 0);
	}
}

static void take_system(struct diff *d, int side)
{
	const struct samples *s = timeline_samples(d->side[side].analysis.timeline);
	const struct host_facts *f = host_facts(d->side[side].analysis.host);
	double swap = 0;
	bool any = false;
	for (unsigned i = 0; s && i < samples_subjects(s); i++) {
		const struct sample_subject *j = samples_subject(s, i);
		if (j->kind == MT_SUBJECT_MACHINE && j->known & 1ull << MT_MACHINE_swap_free &&
		    j->known & 1ull << MT_MACHINE_swap_total)
			add_most(d, side, SYSTEM, "machine", "swap used",
				 (double)j->most[MT_MACHINE_swap_total].value -
					 (double)j->least[MT_MACHINE_swap_free].value);
		if (j->kind != MT_SUBJECT_PROCESS || !j->traced)
			continue;
		any = true;
		swap += j->known & 1ull << MT_PROCESS_swap ? (double)j->most[MT_PROCESS_swap].value : 0;
	}
	if (!any)
		return;
	if (f->traced_peak != HOST_KILL_UNKNOWN)
		add(d, side, SYSTEM, "processes", "resident peak", (double)f->traced_peak);
	add(d, side, SYSTEM, "processes", "swap peaks", swap);
}

/* ---- sites --------------------------------------------------------------------------------------------- */

static uint64_t mix_text(uint64_t h, const char *text)
{
	return mt_fnv(mt_fnv_text(h, text), "\xff", 1);
}

/* Functions and files, no lines. */
static uint64_t shape_of(struct stacks *s, uint32_t stack)
{
	uint64_t h = MT_FNV_START;
	for (struct stack_walk w = { .next = stack }; stack_step(s, &w);) {
		const struct frame *f = w.frame;
		h = mix_text(h, f->function ? f->function : "?");
		h = mix_text(h, f->file ? base_name(f->file) : f->library ? base_name(f->library) : "");
	}
	return h;
}

static void take_owner(struct diff *d, int side, const struct owner *o, enum model_kind kind)
{
	const struct selection *sel = &d->side[side].selection;
	bool whole = sel->by == BY_STACK && o->stack_count;
	char *text = owner_text(o), *where = o->frame && !o->label ? frame_where(o->frame) : NULL;
	size_t file = where ? strcspn(where, ":") : 0;
	char *id =
		whole ? output_format("%d %016llx", kind, (unsigned long long)shape_of(sel->stacks, o->stacks->stack))
		      : output_format("%d %s %.*s", kind, text ? text : "", (int)file, where ? where : "");
	char *name = output_format("%s%s%s", text ? text : "", where && *where ? "  " : "", where ? where : "");
	struct item *i = id && name ? item_of(d, SITES, id, name, kind_name(kind)) : NULL;
	if (i) {
		i->has[side] = true;
		i->value[side] += (double)o->bytes;
		if (!i->stack && o->stack_count) {
			i->stack = o->stacks->stack;
			i->stack_side = side;
		}
	}
	free(text);
	free(where);
	free(id);
	free(name);
}

static int take_sites(struct diff *d, int side)
{
	const struct selection *sel = &d->side[side].selection;
	int e = 0;
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++) {
		struct owners *s = NULL;
		if (!(sel->kinds & 1u << kind))
			continue;
		e = selection_owners(sel, OWNERS_HOST_PEAK, (enum model_kind)kind, NULL, &s);
		for (size_t i = 0; s && i < s->count; i++)
			take_owner(d, side, &s->owners[i], (enum model_kind)kind);
		owners_free(s);
	}
	return e;
}

int diff_take(struct diff *d, int side, const struct options *o)
{
	struct side *s = &d->side[side];
	s->options = *o;
	s->dir = o->dirs[side];
	s->options.dirs = &s->dir;
	s->options.ndirs = 1;
	int e = selection_open(&s->selection, &s->options);
	if (e < 0)
		return e;
	s->open = true;
	e = analysis_run(&s->analysis, &s->selection, ANALYSIS_TIMELINE | ANALYSIS_CATEGORIES | ANALYSIS_HOST, NULL,
			 NULL);
	if (e < 0)
		return e;
	take_categories(d, side, s->analysis.diagnosis);
	take_totals(d, side);
	take_system(d, side);
	take_devices(d, side);
	take_processes(d, side);
	take_phases(d, side);
	take_steps(d, side);
	return take_sites(d, side);
}

void diff_fini(struct diff *d)
{
	struct item *i, *next;
	HASH_ITER(hh, d->items, i, next)
	{
		HASH_DEL(d->items, i);
		free(i->key);
		free(i->name);
		free(i->figure);
		free(i);
	}
	for (int side = 0; side < 2; side++) {
		analysis_free(&d->side[side].analysis);
		if (d->side[side].open)
			selection_close(&d->side[side].selection);
	}
	free(d->sorted);
}

/* Sites, holders and categories by what they changed, everything else as it came. */
static int by_section(const void *a, const void *b)
{
	const struct item *const *x = a, *const *y = b;
	if ((*x)->section != (*y)->section)
		return (*x)->section < (*y)->section ? -1 : 1;
	double p = fabs(diff_change(*x)), q = fabs(diff_change(*y));
	if (diff_is_ranked((*x)->section) && p != q)
		return p > q ? -1 : 1;
	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

int diff_sort(struct diff *d)
{
	size_t n = 0;
	d->sorted = calloc(d->count + 1, sizeof(*d->sorted));
	if (!d->sorted)
		return error_memory();
	for (struct item *i = d->items; i; i = i->hh.next)
		d->sorted[n++] = i;
	qsort(d->sorted, n, sizeof(*d->sorted), by_section);
	return 0;
}
