#include "analyzer/view.h"

#include "analyzer/course.h"
#include "analyzer/error.h"
#include "analyzer/output.h"
#include "analyzer/print.h"
#include "analyzer/symbol_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_KINDS (1u << MODEL_HEAP | 1u << MODEL_MAP)

const char *kind_name(enum model_kind kind)
{
	static const char *const names[MODEL_KINDS] = {
		[MODEL_HEAP] = "heap", [MODEL_MAP] = "map", [MODEL_PINNED] = "pinned", [MODEL_DEVICE] = "device", [MODEL_POOL] = "pool",
	};
	return names[kind];
}

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

char *frame_text(const struct frame *f)
{
	if (f->name)
		return output_format("%s", f->name);
	if (f->library)
		return output_format("%s+0x%" PRIx64, base_name(f->library), f->offset);
	return output_format("0x%" PRIx64, f->offset);
}

char *frame_where(const struct frame *f)
{
	if (f->file && f->line)
		return output_format("%s:%u", base_name(f->file), f->line);
	if (f->file)
		return output_format("%s", base_name(f->file));
	return output_format("%s", f->name && f->library ? base_name(f->library) : "");
}

char *frame_place(const struct frame *f)
{
	char *text = frame_text(f), *where = frame_where(f);
	char *line = output_format("%s%s%s", where ? where : "", where && *where ? " " : "", text ? text : "");
	free(text);
	free(where);
	return line;
}

unsigned view_telling_frames(const struct view *v, uint32_t stack, const struct frame **frames, unsigned most)
{
	unsigned count = 0;
	for (struct stack_walk w = { .next = stack }; count < most && stack_step(v->stacks, &w);)
		if (w.class == FRAME_PLAIN && w.frame->language && !strcmp(w.frame->language, "python") &&
		    stack_shows(&w, view_flags(v->options)))
			frames[count++] = w.frame;
	if (count)
		return count;
	struct stack_site site = stacks_site(v->stacks, stack, view_flags(v->options));
	if (site.frame)
		frames[count++] = site.frame;
	if (site.caller && count < most)
		frames[count++] = site.caller;
	return count;
}

char *owner_text(const struct owner *o)
{
	if (o->label)
		return strdup(o->label);
	return o->frame ? frame_text(o->frame) : strdup("(no stack)");
}

char *owner_next(const struct owner *o, char **where)
{
	const struct frame *f = o->folded ? NULL : o->caller ? o->caller : o->callee;
	char *text = f ? frame_text(f) : NULL, *line = text ? output_format("%c %s", o->caller ? '<' : '>', text) : NULL;
	*where = f ? frame_where(f) : NULL;
	free(text);
	return line;
}

char *owner_range(const struct owner *o)
{
	if (!o->estimated)
		return NULL;
	return output_format("%s to %s", BYTES(o->sum.bytes_low), BYTES(o->sum.bytes_high));
}

const char *view_end_title(const struct view *v)
{
	unsigned left = 0;
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct model_process *m = model_process(v->model, id);
		bool any = false;
		for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
			any |= v->kinds & 1u << kind && m->kind[kind].live_bytes;
		left += any && view_has(v, m->process);
	}
	return left > 1 ? "at own ends" : "at end";
}

const char *exit_name(uint32_t kind)
{
	static const char *const names[] = {
		[MT_EXIT_NONE] = "unknown", [MT_EXIT_CODE] = "exit", [MT_EXIT_SIGNAL] = "signal", [MT_EXIT_EXEC] = "exec",
	};
	return names[kind <= MT_EXIT_EXEC ? kind : MT_EXIT_NONE];
}

const char *exit_text(const struct process *p, char *out, size_t size)
{
	const char *signal = p->exit_kind == MT_EXIT_SIGNAL ? sigabbrev_np(p->exit_code) : NULL;
	if (p->state == PROCESS_RUNNING)
		snprintf(out, size, "running");
	else if (p->exit_kind == MT_EXIT_CODE)
		snprintf(out, size, "exit %d", p->exit_code);
	else if (signal)
		snprintf(out, size, "SIG%s", signal);
	else if (p->exit_kind == MT_EXIT_SIGNAL)
		snprintf(out, size, "signal %d", p->exit_code);
	else
		snprintf(out, size, "%s", exit_name(p->exit_kind));
	return out;
}

static int pick_kinds(struct view *v)
{
	const char *device = v->options->device;
	if (!device) {
		v->kinds = HOST_KINDS;
		return 0;
	}
	if (!strcmp(device, "host") || !strcmp(device, "heap"))
		v->kinds = 1u << MODEL_HEAP;
	else if (!strcmp(device, "map"))
		v->kinds = 1u << MODEL_MAP;
	else if (!strcmp(device, "pinned"))
		v->kinds = 1u << MODEL_PINNED;
	else
		v->kinds = 1u << MODEL_DEVICE | 1u << MODEL_POOL;
	return 0;
}

static int pick_processes(struct view *v)
{
	unsigned count = reader_processes(v->reader);
	const char *what = v->options->process;
	v->selected = count;
	if (!what)
		return 0;
	v->processes = calloc(count + 1, sizeof(*v->processes));
	if (!v->processes)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	v->selected = 0;
	for (unsigned id = 0; (id = reader_find(v->reader, what, id)) < count; id++) {
		v->processes[id] = true;
		v->selected++;
	}
	if (v->selected == 0)
		return reader_no_process(v->reader, what);
	return 0;
}

static int make_stacks(struct view *v)
{
	v->stacks = stacks_new();
	if (!v->stacks)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	if (v->options->no_debug_files)
		symbols_open_none(stacks_symbols(v->stacks));
	else
		symbols_prepare(stacks_symbols(v->stacks));
	return 0;
}

int view_open(struct view *v, const struct options *o)
{
	*v = (struct view){ .options = o, .by = o->by, .device = MODEL_NO_DEVICE };
	if (o->by == BY_UNSET)
		v->by = o->json ? BY_STACK : BY_SITE;
	int e = pick_kinds(v);
	if (e == 0)
		e = make_stacks(v);
	if (e == 0)
		e = reader_open(&v->reader, o->dirs, o->ndirs, o->force ? READER_FORCE : 0);
	if (e == 0)
		e = pick_processes(v);
	if (e < 0)
		view_close(v);
	return e;
}

size_t view_rows(const struct view *v, size_t usual)
{
	return v->options->rows ? v->options->rows : usual;
}

const char *view_by_name(const struct view *v)
{
	return options_by_name(v->by);
}

int view_check_filter(const struct view *v, bool matched)
{
	if (!v->options->filter || matched)
		return 0;
	return error_set(MT_EUSAGE, "--filter", ERROR_NO_OFFSET, "no stack of what was alive then has a frame that matches '%s'",
			 v->options->filter);
}

enum model_split view_split(const struct view *v)
{
	return v->by == BY_THREAD ? MODEL_SPLIT_THREAD : v->by == BY_SIZE ? MODEL_SPLIT_SIZE : MODEL_SPLIT_NONE;
}

/* No figure depends on it, so a damaged one is no reason to say nothing. */
static void read_symbol_file(struct stacks *s, const char *dir)
{
	if (symbol_file_read(stacks_symbols(s), dir) < 0)
		print_error("memtrace: note: %s: offset %" PRId64 ": %s; read without it\n", error_get()->file,
			error_get()->offset, error_get()->why);
}

enum edge { EDGE_BEGIN, EDGE_AT, EDGE_END };

/* A step or phase: where it begins, where it ends; "at" a step is where it begins, at a phase where it has most memory. */
static int resolve_stretch(struct view *v, const struct when *w, enum edge edge, uint64_t *ns)
{
	struct course *c;
	uint64_t begin = 0, peak = 0, end = 0;
	int e = course_make(&c, v);
	if (e < 0)
		return e;
	if (w->kind == WHEN_STEP) {
		e = course_step_time(c, v, w->number, w->text, &begin, &end);
		peak = begin;
	} else {
		e = course_phase_time(c, v, w->text + sizeof("phase:") - 1, w->text, &begin, &peak, &end);
	}
	if (e == 0)
		*ns = edge == EDGE_BEGIN ? begin : edge == EDGE_END ? end : peak;
	course_free(c);
	return e;
}

/* The time that an option names. */
static int resolve(struct view *v, const struct when *w, enum edge edge, uint64_t *ns)
{
	uint64_t event;
	if (w->kind == WHEN_STEP || w->kind == WHEN_PHASE)
		return resolve_stretch(v, w, edge, ns);
	return w->kind == WHEN_OOM ? view_find_oom(v, w, &event, ns) : options_resolve(w, v->reader, ns);
}

/* The moment of --at: device events are told apart where times are not. */
static int resolve_at(struct view *v, struct model_query *q)
{
	const struct when *at = &v->options->at;
	uint64_t ns;
	if (at->kind == WHEN_OOM)
		return view_find_oom(v, at, &q->until_event, &ns);
	return at->kind == WHEN_PEAK ? 0 : resolve(v, at, EDGE_AT, &q->until_ns);
}

/* Without --device, what there is. */
static int settle_kinds(struct view *v)
{
	if (v->options->device)
		return view_pick_device(v);
	if (model_totals(v->model, MODEL_PINNED).allocations)
		v->kinds |= 1u << MODEL_PINNED;
	if (model_devices(v->model))
		v->kinds |= 1u << MODEL_DEVICE | 1u << MODEL_POOL;
	return 0;
}

/* One moment, or a time from and to. */
static int resolve_times(struct view *v, struct model_query *q)
{
	const struct options *o = v->options;
	bool moment = o->at.kind != WHEN_UNSET && o->at.kind != WHEN_PEAK;
	if (moment && (o->from.kind != WHEN_UNSET || o->to.kind != WHEN_UNSET))
		return error_set(MT_EUSAGE, "--at", ERROR_NO_OFFSET, "%s is one moment: not with --from or --to", o->at.text);
	int e = resolve(v, &o->from, EDGE_BEGIN, &q->from_ns);
	if (e == 0)
		e = resolve(v, &o->to, EDGE_END, &q->until_ns);
	if (e == 0)
		e = resolve_at(v, q);
	if (e == 0 && q->from_ns > q->until_ns)
		e = error_set(MT_EUSAGE, "--from", ERROR_NO_OFFSET, "%s is after --to %s", o->from.text, o->to.text);
	return e;
}

/* Times on screens are rounded: one that stands there as the end is not behind it. */
static uint64_t rounding_of(uint64_t ns)
{
	const uint64_t second = 1000000000;
	return ns >= 100 * second ? second : ns >= 10 * second ? second / 10 : ns >= second ? second / 100 : second / 1000;
}

/* Behind the pass, since only then is it known when a trace ends that says nothing of it. */
static int check_end(const struct view *v, const char *option, const struct when *w, uint64_t ns)
{
	uint64_t end = reader_duration_ns(v->reader);
	if ((w->kind != WHEN_SECONDS && w->kind != WHEN_WALL) || ns <= end + rounding_of(end))
		return 0;
	return error_set(MT_EUSAGE, option, ERROR_NO_OFFSET, "%s is behind the end of the trace, at %s", w->text, DURATION(end));
}

int view_run(struct view *v, struct model_query *q)
{
	const struct options *o = v->options;
	int e = resolve_times(v, q);
	if (e < 0)
		return e;
	v->from_ns = q->from_ns;
	v->until_ns = q->until_ns;
	q->processes = v->processes;
	q->split = view_split(v);
	q->on_progress = output_progress;
	e = model_run(&v->model, v->reader, q);
	output_progress_end();
	if (e == 0)
		e = check_end(v, "--from", &o->from, q->from_ns);
	if (e == 0)
		e = check_end(v, "--at", &o->at, q->until_ns);
	if (e == 0)
		e = settle_kinds(v);
	if (e < 0)
		return e;
	for (int i = 0; i < o->ndirs; i++)
		read_symbol_file(v->stacks, o->dirs[i]);
	const char *rules = o->rules ? o->rules : getenv("MEMTRACE_RULES");
	return categories_new(&v->categories, v->stacks, rules && *rules ? rules : NULL);
}

void view_print_missing(const struct view *v)
{
	if (!reader_complete(v->reader))
		print("%sINCOMPLETE: what is left, see memtrace check%s\n", output_begin(STYLE_BAD), output_end(STYLE_BAD));
}

void view_close(struct view *v)
{
	categories_free(v->categories);
	stacks_free(v->stacks);
	model_free(v->model);
	reader_close(v->reader);
	free(v->processes);
	*v = (struct view){ 0 };
}

/* On stderr, for who did not say it on the screen. */
static void note_unread(const struct view *v)
{
	struct stack_gaps g = v->stacks ? stacks_gaps(v->stacks) : (struct stack_gaps){ 0 };
	if (g.given_up && !v->told_unread)
		print_error("memtrace: note: %s%s: %s; without names\n", g.given_up_path, g.given_up > 1 ? " and others" : "", g.given_up_why);
}

int view_command(const struct option_spec *spec, void *values, int argc, char **argv, int (*f)(struct view *v))
{
	struct view v;
	int e = options_parse(spec, values, argc, argv);
	if (e == 0)
		e = view_open(&v, values);
	else
		return e > 0 ? 0 : e;
	if (e == 0) {
		e = f(&v);
		if (e >= 0)
			note_unread(&v);
		view_close(&v);
	}
	options_free(values);
	return e;
}

bool view_has(const struct view *v, const struct process *p)
{
	return !v->processes || v->processes[p->id];
}

unsigned view_flags(const struct options *o)
{
	return (o->all_frames ? STACK_ALL_FRAMES : 0) | (o->no_native ? STACK_NO_NATIVE : 0) |
	       (o->no_python ? STACK_NO_PYTHON : 0);
}

static struct sites_query query_of(const struct view *v, enum sites_measure measure, enum model_kind kind)
{
	return (struct sites_query){
		.measure = measure,
		.kind = kind,
		.device = v->device != MODEL_NO_DEVICE && kind >= MODEL_HOST_KINDS ? model_device(v->model, v->device) : NULL,
		.by = v->by,
		.filter = v->options->filter,
		.categories = v->categories,
		.flags = view_flags(v->options),
		.processes = v->processes,
	};
}

int view_owners(const struct view *v, enum sites_measure measure, enum model_kind kind, sites_fold *fold, struct sites **out)
{
	struct sites_query q = query_of(v, measure, kind);
	q.fold = fold;
	return sites_build(out, v->model, v->reader, v->stacks, &q);
}

int view_owners_brief(const struct view *v, enum sites_measure measure, enum model_kind kind, sites_fold *fold, struct sites **out)
{
	struct sites_query q = query_of(v, measure, kind);
	q.fold = fold;
	q.brief = true;
	q.arenas = kind == MODEL_MAP && v->options->by == BY_UNSET && !v->options->json && !v->options->all_frames;
	return sites_build(out, v->model, v->reader, v->stacks, &q);
}

int view_device_owners(const struct view *v, enum sites_measure measure, enum model_kind kind, uint32_t device, struct sites **out)
{
	struct sites_query q = query_of(v, measure, kind);
	q.device = model_device(v->model, device);
	return sites_build(out, v->model, v->reader, v->stacks, &q);
}

int view_leftovers(const struct view *v, enum model_kind kind, sites_fold *fold, struct sites **out)
{
	struct sites_query q = query_of(v, SITES_LIVE, kind);
	q.ended_only = true;
	q.brief = true;
	q.fold = fold;
	if (q.by == BY_STACK)
		q.by = BY_SITE;
	return sites_build(out, v->model, v->reader, v->stacks, &q);
}

uint64_t view_bucket_ns(const struct view *v, uint32_t bucket)
{
	return v->from_ns + bucket * model_timeline_width_ns(v->model);
}

void view_resample(const struct view *v, const struct model_series *s, uint64_t *values, size_t count)
{
	uint64_t end = model_end_ns(v->model), span = end > v->from_ns ? end - v->from_ns : 1;
	double scale = (double)model_timeline_width_ns(v->model) / (double)span * (double)count;
	memset(values, 0, count * sizeof(*values));
	for (uint32_t i = 0; i < s->count; i++) {
		double from = (double)(s->first + i) * scale, to = (double)(s->first + i + 1) * scale;
		for (size_t k = (size_t)from; k < count && (double)k < to; k++)
			if (s->buckets[i].high > values[k])
				values[k] = s->buckets[i].high;
	}
}
