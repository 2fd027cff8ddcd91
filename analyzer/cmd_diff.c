/*
 * memtrace diff: two traces of the same program, before and after a change. Everything is matched by name: devices by the order
 * in which they are used, processes by name and order, phases by name, sites by the functions of their stacks. Lines
 * are left out of that, since a change shifts them.
 */
#include "analyzer/course.h"
#include "analyzer/error.h"
#include "analyzer/explain.h"
#include "analyzer/json.h"
#include "analyzer/output.h"
#include "analyzer/trend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define DEFAULT_ROWS 10
#define DEFAULT_JSON_ROWS 1000
#define MANY_TIMES 10       /* as much is not told in per cent */
#define LEAST_BYTES 1048576.0 /* smaller sums are not worth a percentage */

struct diff_options {
	struct options common;
	const char *fail_over;
};

static const struct option_row rows[] = {
	OPTIONS_READ,
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct diff_options, fail_over),
	  "exit 1 if memory grew by more than that: 5%, 100M, or both" },
	OPTIONS_END
};

static const struct option_spec spec = {
	"memtrace diff [--fail-over 5%,100M] [options] BEFORE AFTER",
	"What a change did: totals, devices, processes, categories, phases, steps, resident memory and swap, and the sites that\n"
	"make the difference. Sites are matched by the functions of their stacks, so lines may have moved.",
	rows, 0,
};

/* ---- rows ---------------------------------------------------------------------------------------------- */

enum section { TOTALS, SYSTEM, DEVICES, CATEGORIES_OF, PROCESSES, PHASES, STEPS, SITES, SECTIONS };

static const char *const section_keys[] = {
	"totals", "system", "devices", "categories", "processes", "phases", "steps", "sites",
};
static const char *const section_titles[] = {
	"TOTALS", "SYSTEM", "DEVICES", "CATEGORIES at the peak", "PROCESSES", "PHASES", "STEPS", "SITES at the peak",
};

/* Something that is in one trace or both. */
struct item {
	UT_hash_handle hh;
	char *key;            /* section and name */
	char *name, *figure;  /* "cuda:0", "pool peak" */
	enum section section;
	bool seconds;         /* else bytes */
	bool has[2];
	double value[2];
	size_t order;
	int stack_side;       /* of a site: whose stack it is */
	uint32_t stack;
};

struct side {
	struct options options;
	const char *dir;
	struct view view;
	struct course *course;
	bool open;
};

struct diff {
	struct side side[2];
	struct item *items;   /* by key */
	struct item **sorted;
	size_t count;
};

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
	*i = (struct item){ .key = key, .name = strdup(name), .figure = strdup(figure), .section = section, .order = d->count++ };
	HASH_ADD_KEYPTR(hh, d->items, i->key, strlen(i->key), i);
	return i;
}

static struct item *add(struct diff *d, int side, enum section section, const char *name, const char *figure, double value)
{
	struct item *i = item_of(d, section, name, name, figure);
	if (!i)
		return NULL;
	i->has[side] = true;
	i->value[side] += value;
	return i;
}

static void add_seconds(struct diff *d, int side, enum section section, const char *name, const char *figure, double value)
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
	const struct view *v = &d->side[side].view;
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++) {
		struct model_totals t = model_totals(v->model, (enum model_kind)kind);
		if (!(v->kinds & 1u << kind) || !t.allocations)
			continue;
		add(d, side, TOTALS, kind_name((enum model_kind)kind), "peak", (double)t.peak_bytes);
		add(d, side, TOTALS, kind_name((enum model_kind)kind), "at end", (double)t.live_bytes);
	}
	add_seconds(d, side, TOTALS, "run", "duration", (double)reader_duration_ns(v->reader) / 1e9);
}

static void take_devices(struct diff *d, int side)
{
	static const char *const figures[] = { [LAYER_MEMORY] = "peak", [LAYER_POOL] = "pool peak", [LAYER_RESERVED] = "reserved peak" };
	const struct view *v = &d->side[side].view;
	for (unsigned i = 0; i < model_devices(v->model); i++) {
		const struct model_device *m = model_device(v->model, i);
		if (!view_has_device(v, i))
			continue;
		for (int layer = 0; layer <= LAYER_RESERVED; layer++) {
			double bytes = (double)m->layer[layer].peak_bytes;
			add_most(d, side, DEVICES, m->name, figures[layer], bytes);
			add(d, side, DEVICES, "all devices", figures[layer], bytes);
		}
	}
}

/* At the peak of the heaps and of each device; where a device failed, when it did: as the report has them. */
static void take_categories(struct diff *d, int side, const struct explain *x)
{
	const struct view *v = &d->side[side].view;
	for (unsigned i = 0; i < x->space_count; i++) {
		const struct explain_space *s = &x->spaces[i];
		bool host = s->device == MODEL_NO_DEVICE;
		if (!(v->kinds & (host ? 1u << MODEL_HEAP : 1u << MODEL_DEVICE | 1u << MODEL_POOL)) || (!host && !view_has_device(v, s->device)))
			continue;
		for (int c = 0; c < CATEGORIES; c++)
			if (s->category[c])
				add(d, side, CATEGORIES_OF, s->name, category_name((enum category)c), (double)s->category[c]);
	}
}

/* Two of one name are told apart by the order they started in. */
static char *process_name(const struct view *v, const struct process *p)
{
	unsigned nth = 1;
	for (unsigned id = 0; id < p->id; id++)
		nth += !strcmp(reader_process(v->reader, id)->name, p->name);
	return nth > 1 ? output_format("%s %u", p->name, nth) : output_format("%s", p->name);
}

static void take_process(struct diff *d, int side, const struct model_process *m)
{
	const struct view *v = &d->side[side].view;
	char *name = process_name(v, m->process);
	for (int kind = 0; name && kind < MODEL_HOST_KINDS; kind++)
		if (v->kinds & 1u << kind && m->kind[kind].allocations) {
			char *figure = output_format("%s peak", kind_name((enum model_kind)kind));
			add(d, side, PROCESSES, name, figure ? figure : "peak", (double)m->kind[kind].peak_bytes);
			free(figure);
		}
	for (unsigned i = 0; name && i < model_devices(v->model); i++) {
		const struct model_share *s = model_share(v->model, i, m->process->id);
		if (!s || !view_has_device(v, i))
			continue;
		char *figure = output_format("%s peak", model_device(v->model, i)->name);
		add(d, side, PROCESSES, name, figure ? figure : "peak", (double)s->layer[LAYER_MEMORY].peak_bytes);
		free(figure);
	}
	free(name);
}

static void take_processes(struct diff *d, int side)
{
	const struct view *v = &d->side[side].view;
	for (unsigned id = 0; id < reader_processes(v->reader); id++)
		if (view_has(v, reader_process(v->reader, id)))
			take_process(d, side, model_process(v->model, id));
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
	const struct view *v = &d->side[side].view;
	const struct phases *phases = course_phases(d->side[side].course);
	char track[64], *figure;
	for (size_t i = 0; i < phases_count(phases); i++) {
		const struct phase *p = phases_get(phases, i);
		char *name = phase_name(p);
		if (name && view_has(v, reader_process(v->reader, p->process->id))) {
			add_seconds(d, side, PHASES, name, "time", (double)p->busy_ns / 1e9);
			for (size_t k = 0; k < p->track_count; k++) {
				course_track_name(v, p->process, p->tracks[k].kind, p->tracks[k].device, track, sizeof(track));
				figure = output_format("%s peak", track);
				add_most(d, side, PHASES, name, figure ? figure : "peak", (double)p->tracks[k].peak_bytes);
				free(figure);
			}
		}
		free(name);
	}
}

static double middle(const struct pace *p, const struct step_track *t, uint64_t (*point)(const struct step_track *, size_t))
{
	size_t n = 0;
	double *values = calloc(p->count + 1, sizeof(*values)), median;
	for (size_t i = 0; values && i < p->count; i++)
		if (!p->steps[i].partial)
			values[n++] = (double)point(t, i);
	median = values ? median_of(values, n) : 0;
	free(values);
	return median;
}

static void take_steps(struct diff *d, int side)
{
	const struct view *v = &d->side[side].view;
	const struct pace *p = course_main(d->side[side].course, v);
	char track[64];
	if (!p)
		return;
	add_seconds(d, side, STEPS, "step", "time", course_period(p));
	for (size_t k = 0; k < p->track_count; k++) {
		course_track_name(v, p->process, p->tracks[k].kind, p->tracks[k].device, track, sizeof(track));
		add(d, side, STEPS, track, "low", middle(p, &p->tracks[k], step_low));
		add(d, side, STEPS, track, "high", middle(p, &p->tracks[k], step_high));
		struct growth g = course_growth(p, &p->tracks[k]);
		add(d, side, STEPS, track, "growth a step", growth_is_steady(&g) ? g.rate : 0);
	}
}

static void take_system(struct diff *d, int side)
{
	const struct samples *s = course_samples(d->side[side].course);
	double rss = 0, swap = 0;
	bool any = false;
	for (unsigned i = 0; s && i < samples_subjects(s); i++) {
		const struct sample_subject *j = samples_subject(s, i);
		if (j->kind == MT_SUBJECT_MACHINE && j->known & 1ull << MT_MACHINE_swap_free && j->known & 1ull << MT_MACHINE_swap_total)
			add_most(d, side, SYSTEM, "machine", "swap used",
				 (double)j->most[MT_MACHINE_swap_total].value - (double)j->least[MT_MACHINE_swap_free].value);
		if (j->kind != MT_SUBJECT_PROCESS || !j->traced)
			continue;
		any = true;
		rss += j->known & 1ull << MT_PROCESS_rss ? (double)j->most[MT_PROCESS_rss].value : 0;
		swap += j->known & 1ull << MT_PROCESS_swap ? (double)j->most[MT_PROCESS_swap].value : 0;
	}
	if (!any)
		return;
	add(d, side, SYSTEM, "processes", "resident peaks", rss);
	add(d, side, SYSTEM, "processes", "swap peaks", swap);
}

/* ---- sites --------------------------------------------------------------------------------------------- */

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return (h ^ 0xff) * 0x100000001b3ull;
}

/* Functions and files, no lines. */
static uint64_t shape_of(struct stacks *s, uint32_t stack)
{
	uint64_t h = 0xcbf29ce484222325ull;
	for (struct stack_walk w = { .next = stack }; stack_step(s, &w); ) {
		const struct frame *f = w.frame;
		h = mix_text(h, f->function ? f->function : "?");
		h = mix_text(h, f->file ? base_name(f->file) : f->library ? base_name(f->library) : "");
	}
	return h;
}

static void take_owner(struct diff *d, int side, const struct owner *o, enum model_kind kind)
{
	const struct view *v = &d->side[side].view;
	bool whole = v->by == BY_STACK && o->stack_count;
	char *text = owner_text(o), *where = o->frame && !o->label ? frame_where(o->frame) : NULL;
	size_t file = where ? strcspn(where, ":") : 0;
	char *id = whole ? output_format("%d %016llx", kind, (unsigned long long)shape_of(v->stacks, o->stacks->stack))
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
	const struct view *v = &d->side[side].view;
	int e = 0;
	for (int kind = 0; e == 0 && kind < MODEL_KINDS; kind++) {
		struct sites *s = NULL;
		if (!(v->kinds & 1u << kind))
			continue;
		e = view_owners(v, SITES_HOST_PEAK, (enum model_kind)kind, NULL, &s);
		for (size_t i = 0; s && i < s->count; i++)
			take_owner(d, side, &s->owners[i], (enum model_kind)kind);
		sites_free(s);
	}
	return e;
}

/* The second pass, which collects for the categories, too. */
static int run_course(struct diff *d, int side)
{
	struct side *s = &d->side[side];
	struct explain *x;
	int e = explain_new(&x, &s->view, s->course, NULL, reader_complete(s->view.reader));
	if (e == 0)
		e = course_run(s->course, &s->view);
	if (e == 0)
		e = explain_categories(x);
	if (e == 0)
		take_categories(d, side, x);
	explain_free(x);
	return e;
}

static int take_side(struct diff *d, int side, const struct options *o)
{
	struct side *s = &d->side[side];
	struct model_query q = MODEL_QUERY_ALL;
	s->options = *o;
	s->dir = o->dirs[side];
	s->options.dirs = &s->dir;
	s->options.ndirs = 1;
	int e = view_open(&s->view, &s->options);
	if (e < 0)
		return e;
	s->open = true;
	s->course = course_new();
	if (!s->course)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	course_attach(s->course, &q);
	e = view_run(&s->view, &q);
	if (e == 0)
		e = run_course(d, side);
	if (e < 0)
		return e;
	take_totals(d, side);
	take_system(d, side);
	take_devices(d, side);
	take_processes(d, side);
	take_phases(d, side);
	take_steps(d, side);
	return take_sites(d, side);
}

/* ---- showing ------------------------------------------------------------------------------------------- */

static double change_of(const struct item *i)
{
	return i->value[1] - i->value[0];
}

static bool is_ranked(enum section section)
{
	return section == SITES || section == CATEGORIES_OF;
}

/* Sites and categories by what they changed, everything else as it came. */
static int by_section(const void *a, const void *b)
{
	const struct item *const *x = a, *const *y = b;
	if ((*x)->section != (*y)->section)
		return (*x)->section < (*y)->section ? -1 : 1;
	double p = fabs(change_of(*x)), q = fabs(change_of(*y));
	if (is_ranked((*x)->section) && p != q)
		return p > q ? -1 : 1;
	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

static int sort_items(struct diff *d)
{
	size_t n = 0;
	d->sorted = calloc(d->count + 1, sizeof(*d->sorted));
	if (!d->sorted)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (struct item *i = d->items; i; i = i->hh.next)
		d->sorted[n++] = i;
	qsort(d->sorted, n, sizeof(*d->sorted), by_section);
	return 0;
}

static char *value_text(const struct item *i, double value)
{
	if (i->seconds)
		return output_format("%.4g s", value);
	return output_format("%s%s", value < 0 ? "-" : "", BYTES((uint64_t)fabs(value)));
}

static char *change_text(const struct item *i)
{
	double change = change_of(i);
	char *text = value_text(i, fabs(change)), *out = output_format("%s%s", change < 0 ? "-" : change > 0 ? "+" : "", text ? text : "");
	free(text);
	return out;
}

static char *percent_text(const struct item *i)
{
	if (!i->has[0])
		return strdup("new");
	if (!i->has[1])
		return strdup("gone");
	if (i->value[0] <= 0)
		return strdup("");
	double times = i->value[1] / i->value[0];
	return times >= MANY_TIMES ? output_format("x %.0f", times) : output_format("%+.1f %%", 100 * (times - 1));
}

static void print_item(struct table *t, const struct item *i)
{
	char *before = i->has[0] ? value_text(i, i->value[0]) : NULL, *after = i->has[1] ? value_text(i, i->value[1]) : NULL;
	char *change = change_text(i), *percent = percent_text(i);
	table_row(t, (const char *[]){ i->name, i->figure, before, after, change, percent });
	free(before);
	free(after);
	free(change);
	free(percent);
}

/* The sum of one device is that device's. */
static bool is_said_already(const struct diff *d, const struct item *i)
{
	return i->section == DEVICES && !strcmp(i->name, "all devices") && model_devices(d->side[0].view.model) < 2 &&
	       model_devices(d->side[1].view.model) < 2;
}

static bool is_worth_a_row(const struct diff *d, const struct item *i)
{
	bool both = i->has[0] && i->has[1];
	if (is_said_already(d, i) || (both && i->section == PROCESSES && change_of(i) == 0))
		return false;
	if (both && i->section == STEPS && i->value[0] == 0 && i->value[1] == 0)
		return false;
	if (i->section == CATEGORIES_OF)
		return fabs(change_of(i)) >= LEAST_BYTES;
	if (i->section == PHASES)
		return i->seconds ? fmax(i->value[0], i->value[1]) >= 0.1 : fabs(change_of(i)) >= LEAST_BYTES;
	return i->section != SITES || change_of(i) != 0;
}

static void print_section(const struct diff *d, enum section section)
{
	struct column columns[] = {
		{ section_titles[section], LEFT, true }, { "", LEFT, false }, { "before", RIGHT, false }, { "after", RIGHT, false },
		{ "change", RIGHT, false }, { "", RIGHT, false },
	};
	size_t shown = 0, most = d->side[0].options.rows ? d->side[0].options.rows : DEFAULT_ROWS, more = 0;
	struct table *t = NULL;
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		if (i->section != section || !is_worth_a_row(d, i))
			continue;
		if ((is_ranked(section) || section == PROCESSES || section == PHASES) && shown >= most) {
			more++;
			continue;
		}
		if (!t)
			t = table_new(columns, 6, 0);
		print_item(t, i);
		shown++;
	}
	if (!t)
		return;
	char *note = more ? output_format("%zu more: -n ROWS", more) : NULL;
	if (note)
		table_note(t, 2, note);
	free(note);
	table_print(t);
	printf("\n");
}

static json_t *json_item(const struct diff *d, const struct item *i)
{
	json_t *o = json_object();
	const char *unit = i->seconds ? "s" : "bytes";
	for (int side = 0; side < 2; side++) {
		char key[24];
		snprintf(key, sizeof(key), "%s_%s", side ? "after" : "before", unit);
		json_object_set_new(o, key, !i->has[side] ? json_null() : i->seconds ? json_real(i->value[side])
					  : json_integer((json_int_t)i->value[side]));
	}
	json_object_set_new(o, i->section == SITES ? "site" : "name", json_text(i->name));
	json_object_set_new(o, i->section == SITES ? "kind" : "figure", json_text(i->figure));
	json_object_set_new(o, i->seconds ? "change_s" : "change_bytes",
			    i->seconds ? json_real(change_of(i)) : json_integer((json_int_t)change_of(i)));
	json_object_set_new(o, "change_percent", i->has[0] && i->has[1] && i->value[0] > 0
			    ? json_real(100 * change_of(i) / i->value[0]) : json_null());
	if (i->section == SITES) {
		const struct view *v = &d->side[i->stack_side].view;
		json_object_set_new(o, "stack", json_stack(v->stacks, i->stack, view_flags(v->options)));
	}
	return o;
}

static int print_json(const struct diff *d)
{
	json_t *root = json_object();
	size_t most = d->side[0].options.rows ? d->side[0].options.rows : DEFAULT_JSON_ROWS;
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "before", json_text(d->side[0].dir));
	json_object_set_new(root, "after", json_text(d->side[1].dir));
	json_object_set_new(root, "complete", json_boolean(reader_complete(d->side[0].view.reader) &&
							   reader_complete(d->side[1].view.reader)));
	for (int section = 0; section < SECTIONS; section++) {
		json_t *list = json_array();
		for (size_t k = 0; k < d->count; k++)
			if (d->sorted[k]->section == (enum section)section && (section != SITES || json_array_size(list) < most))
				json_array_append_new(list, json_item(d, d->sorted[k]));
		json_object_set_new(root, section_keys[section], list);
	}
	return json_print(root);
}

/* ---- limits -------------------------------------------------------------------------------------------- */

struct limits { double percent, bytes; };

static int parse_limits(struct limits *limits, const char *text)
{
	*limits = (struct limits){ INFINITY, INFINITY };
	char *copy = strdup(text ? text : ""), *rest = copy;
	int e = copy ? 0 : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (char *word; e == 0 && text && (word = strsep(&rest, ",")); ) {
		char *end;
		uint64_t bytes;
		word += strspn(word, " ");
		double percent = strtod(word, &end);
		if (end > word && !strcmp(end, "%") && percent >= 0)
			limits->percent = percent;
		else if (options_bytes(word, &bytes) == 0)
			limits->bytes = (double)bytes;
		else
			e = error_set(MT_EUSAGE, "--fail-over", ERROR_NO_OFFSET, "%s: a limit is like 5%% or 100M", word);
	}
	free(copy);
	return e;
}

/* Peaks of kinds, devices and resident memory. Times differ from run to run and are not checked. */
static bool is_checked(const struct item *i)
{
	return !i->seconds && (i->section == TOTALS || i->section == DEVICES || i->section == SYSTEM);
}

static int check_limits(const struct diff *d, const struct limits *limits)
{
	int failed = 0;
	for (size_t k = 0; k < d->count; k++) {
		const struct item *i = d->sorted[k];
		double change = change_of(i);
		bool much = change >= LEAST_BYTES && change * 100 > limits->percent * i->value[0];
		if (!is_checked(i) || (change <= limits->bytes && !much))
			continue;
		char *text = change_text(i), *percent = percent_text(i);
		fprintf(stderr, "memtrace: diff: %s, %s: %s (%s)\n", i->name, i->figure, text ? text : "", percent ? percent : "");
		free(text);
		free(percent);
		failed = 1;
	}
	return failed;
}

/* ---- command ------------------------------------------------------------------------------------------- */

static void diff_fini(struct diff *d)
{
	struct item *i, *next;
	HASH_ITER(hh, d->items, i, next) {
		HASH_DEL(d->items, i);
		free(i->key);
		free(i->name);
		free(i->figure);
		free(i);
	}
	for (int side = 0; side < 2; side++) {
		course_free(d->side[side].course);
		if (d->side[side].open)
			view_close(&d->side[side].view);
	}
	free(d->sorted);
}

static int diff(const struct diff_options *o)
{
	struct diff d = { 0 };
	struct limits limits;
	if (o->common.ndirs != 2)
		return error_set(MT_EUSAGE, "diff", ERROR_NO_OFFSET, "name two trace directories, before and after");
	int e = parse_limits(&limits, o->fail_over);
	for (int side = 0; side < 2 && e == 0; side++)
		e = take_side(&d, side, &o->common);
	if (e == 0)
		e = sort_items(&d);
	if (e == 0 && o->common.json)
		e = print_json(&d);
	for (int section = 0; section < SECTIONS && e == 0 && !o->common.json; section++)
		print_section(&d, (enum section)section);
	if (e == 0)
		e = check_limits(&d, &limits);
	diff_fini(&d);
	return e;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options o = { 0 };
	int e = options_parse(&spec, &o, argc, argv);
	if (e == 0)
		e = diff(&o);
	else if (e > 0)
		return 0;
	options_free(&o.common);
	return e;
}
