#include "analyzer/analysis/open.h"

#include "analyzer/analysis/index.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/util/error.h"
#include "analyzer/util/memory/memory.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the moment ------------------------------------------------------------------------------------------ */

int open_resolve(const struct when *w, const struct reader *r, uint64_t *ns)
{
	int64_t t = w->ns;
	switch (w->kind) {
	case WHEN_UNSET:
		return 0;
	case WHEN_END:
	case WHEN_PEAK:
		*ns = UINT64_MAX;
		return 0;
	case WHEN_WALL:
		t -= (int64_t)reader_origin_real_ns(r);
		if (t < 0)
			return error_set(MT_EUSAGE, w->text, ERROR_NO_OFFSET,
					 "is before the trace, which began %s and took %s",
					 WALL(reader_origin_real_ns(r)), DURATION(reader_duration_ns(r)));
		/* fall through */
	case WHEN_SECONDS:
		*ns = (uint64_t)t;
		return 0;
	default:
		return error_set(MT_EUSAGE, w->text, ERROR_NO_OFFSET,
				 "only seconds, an ISO time and end are known here");
	}
}

enum edge { EDGE_BEGIN, EDGE_AT, EDGE_END };

/* A step or phase: where it begins, where it ends; "at" a step is where it begins, at a phase where it has most memory.
 * */
static int resolve_stretch(struct selection *sel, const struct when *w, enum edge edge, uint64_t *ns)
{
	struct timeline *timeline;
	uint64_t begin = 0, peak = 0, end = 0;
	int e = timeline_make(&timeline, sel);
	if (e < 0)
		return e;
	if (w->kind == WHEN_STEP) {
		e = timeline_step_time(timeline, sel, w->number, w->text, &begin, &end);
		peak = begin;
	} else {
		e = timeline_phase_time(timeline, sel, w->text + sizeof("phase:") - 1, w->text, &begin, &peak, &end);
	}
	if (e == 0)
		*ns = edge == EDGE_BEGIN ? begin : edge == EDGE_END ? end : peak;
	timeline_free(timeline);
	return e;
}

/* The time that an option names. */
static int resolve(struct selection *sel, const struct when *w, enum edge edge, uint64_t *ns)
{
	uint64_t event;
	if (w->kind == WHEN_STEP || w->kind == WHEN_PHASE)
		return resolve_stretch(sel, w, edge, ns);
	return w->kind == WHEN_OOM ? selection_find_oom(sel, w, &event, ns) : open_resolve(w, sel->reader, ns);
}

/* The moment of --at: device events are told apart where times are not. */
static int resolve_at(struct selection *sel, struct model_query *q)
{
	const struct when *at = &sel->options->at;
	uint64_t ns;
	if (at->kind == WHEN_OOM)
		return selection_find_oom(sel, at, &q->until_event, &ns);
	return at->kind == WHEN_PEAK ? 0 : resolve(sel, at, EDGE_AT, &q->until_ns);
}

/* One moment, or a time from and to. */
static int resolve_times(struct selection *sel, struct model_query *q)
{
	const struct options *o = sel->options;
	bool moment = o->at.kind != WHEN_UNSET && o->at.kind != WHEN_PEAK;
	if (moment && (o->from.kind != WHEN_UNSET || o->to.kind != WHEN_UNSET))
		return error_set(MT_EUSAGE, "--at", ERROR_NO_OFFSET, "%s is one moment: not with --from or --to",
				 o->at.text);
	int e = resolve(sel, &o->from, EDGE_BEGIN, &q->from_ns);
	if (e == 0)
		e = resolve(sel, &o->to, EDGE_END, &q->until_ns);
	if (e == 0)
		e = resolve_at(sel, q);
	if (e == 0 && q->from_ns > q->until_ns)
		e = error_set(MT_EUSAGE, "--from", ERROR_NO_OFFSET, "%s is after --to %s", o->from.text, o->to.text);
	return e;
}

/* Times on screens are rounded: one that stands there as the end is not behind it. */
static uint64_t rounding_of(uint64_t ns)
{
	const uint64_t second = 1000000000;
	return ns >= 100 * second  ? second
	       : ns >= 10 * second ? second / 10
	       : ns >= second      ? second / 100
				   : second / 1000;
}

/* Behind the pass, since only then is it known when a trace ends that says nothing of it. */
static int check_end(const struct selection *sel, const char *option, const struct when *w, uint64_t ns)
{
	uint64_t end = reader_duration_ns(sel->reader);
	if ((w->kind != WHEN_SECONDS && w->kind != WHEN_WALL) || ns <= end + rounding_of(end))
		return 0;
	return error_set(MT_EUSAGE, option, ERROR_NO_OFFSET, "%s is behind the end of the trace, at %s", w->text,
			 DURATION(end));
}

/* ---- the pass -------------------------------------------------------------------------------------------- */

/* No figure depends on it, so a damaged one is no reason to say nothing. */
static void read_symbol_file(struct stacks *s, const char *dir)
{
	if (symbol_file_read(stacks_symbols(s), dir) < 0)
		print_error("memtrace: note: %s: offset %" PRId64 ": %s; read without it\n", error_get()->file,
			    error_get()->offset, error_get()->why);
}

/* Without --device, what there is. */
uint32_t selection_has_kinds(const struct selection *sel)
{
	uint32_t has = 0;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++)
		if (selection_has(sel, reader_process(sel->reader, id)))
			has |= reader_process(sel->reader, id)->imported_has;
	return has;
}

static int settle_kinds(struct selection *sel)
{
	const uint32_t has = selection_has_kinds(sel);
	if (sel->options->device)
		return selection_pick_device(sel);
	sel->kinds &=
		~((has & MT_IMPORT_HEAP ? 0u : 1u << MODEL_HEAP) | (has & MT_IMPORT_MAPPINGS ? 0u : 1u << MODEL_MAP));
	if (model_totals(sel->model, MODEL_PINNED).allocations)
		sel->kinds |= 1u << MODEL_PINNED;
	if (model_devices(sel->model))
		sel->kinds |= 1u << MODEL_DEVICE | 1u << MODEL_POOL;
	return 0;
}

/* All of the trace, and nobody looks on. */
static bool is_plain(const struct model_query *q)
{
	return q->until_ns == UINT64_MAX && !q->until_event && !q->from_ns && !q->peek_count && !q->keep_blocks &&
	       !q->changes_only && !q->level_ns && !q->stretch_count && !q->on_event && !q->on_change && !q->on_level &&
	       !q->on_left_out && !q->on_idle;
}

static int take_kept(struct selection *sel)
{
	struct analysis a; /* as old as the process */
	struct index index;
	const int e = index_take(&index, sel, &a, 0);
	index_fini(&index);
	return e;
}

int selection_run(struct selection *sel, struct model_query *q)
{
	const struct options *o = sel->options;
	int e = is_plain(q) ? take_kept(sel) : 0;
	if (e)
		return e < 0 ? e : 0;
	e = resolve_times(sel, q);
	if (e < 0)
		return e;
	sel->from_ns = q->from_ns;
	sel->until_ns = q->until_ns;
	q->processes = sel->processes;
	q->split = selection_split(sel);
	e = open_pass(sel->reader, &sel->model, q);
	if (e == 0)
		e = check_end(sel, "--from", &o->from, q->from_ns);
	if (e == 0)
		e = check_end(sel, "--at", &o->at, q->until_ns);
	if (e == 0)
		e = settle_kinds(sel);
	return e < 0 ? e : selection_names(sel);
}

int selection_names(struct selection *sel)
{
	const struct options *o = sel->options;
	if (sel->categories)
		return 0;
	for (int i = 0; i < o->ndirs; i++)
		read_symbol_file(sel->stacks, o->dirs[i]);
	const char *rules = o->rules ? o->rules : getenv("MEMTRACE_RULES");
	return categories_new(&sel->categories, sel->stacks, rules && *rules ? rules : NULL);
}

static char *imported(const struct selection *sel)
{
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		if (*p->imported && selection_has(sel, p))
			return output_format("IMPORTED from %s, %s; unknown: %s", p->imported_file, p->imported,
					     p->imported_lacks);
	}
	return NULL;
}

/* Of PyTorch's pool, whose snapshot was taken. */
static bool knows_of_before(const struct process *p)
{
	for (unsigned i = 0; i < p->code_count; i++)
		if (!strcmp(p->codes[i].name, MT_BEFORE_NAME))
			return true;
	return false;
}

char *selection_parts(const struct selection *sel, bool brief)
{
	const struct process *first = NULL;
	unsigned more = 0;
	char part[RECORDED_PART], *of_import = imported(sel);
	if (of_import)
		return of_import;
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		if (!process_was_stopped(p) && !p->attached && (brief || !p->recorded_ticks))
			continue;
		more += first != NULL;
		first = first ? first : p;
	}
	if (!first)
		return NULL;
	char *others = more ? output_format(" (and %u more)", more) : strdup("");
	char *text =
		output_format("pid %u%s was %s%s%s", first->pid, others ? others : "", recorded_part(first, part),
			      first->stops ? "; what was freed meanwhile looks alive" : "",
			      !first->attached         ? ""
			      : knows_of_before(first) ? "; it was attached to, and blocks from before are not "
							 "known, but those of PyTorch's pool"
						       : "; it was attached to, and blocks from before are not known");
	free(others);
	return text;
}

void selection_print_parts(const struct selection *sel)
{
	char *text = selection_parts(sel, true);
	if (text)
		output_wrapped(text, 0, 3, output_width(), NULL);
	free(text);
}

void selection_print_missing(const struct selection *sel)
{
	selection_print_parts(sel);
	if (!reader_complete(sel->reader))
		print("%sINCOMPLETE: what is left, see memtrace check%s\n", output_begin(STYLE_BAD),
		      output_end(STYLE_BAD));
}

/* On stderr, for who did not say it on the screen. */
static void note_unread(const struct selection *sel)
{
	struct stack_gaps g = sel->stacks ? stacks_gaps(sel->stacks) : (struct stack_gaps){ 0 };
	if (g.given_up && !sel->told_unread)
		print_error("memtrace: note: %s%s: %s; without names\n", g.given_up_path,
			    g.given_up > 1 ? " and others" : "", g.given_up_why);
}

int selection_answer(const struct option_spec *spec, void *values, int (*f)(struct selection *sel))
{
	struct selection *sel = NULL;
	int e = open_settle_dirs(values);
	if (e == 0 && !(sel = index_selection(values, spec->flags & OPTIONS_INDEX)))
		e = error_memory();
	if (e == 0)
		e = selection_open(sel, values);
	if (e == 0) {
		e = f(sel);
		if (e >= 0)
			note_unread(sel);
		selection_close(sel);
	}
	free(sel);
	options_free(values);
	return e;
}

int selection_command(const struct option_spec *spec, void *values, int argc, char **argv,
		      int (*f)(struct selection *sel))
{
	int e = options_parse(spec, values, argc, argv);
	return e ? e > 0 ? 0 : e : selection_answer(spec, values, f);
}
