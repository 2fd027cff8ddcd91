/* memtrace report: what happened, on one screen. */
#include "analyzer/benign.h"
#include "analyzer/commands.h"
#include "analyzer/error.h"
#include "analyzer/leaks.h"
#include "analyzer/pyarenas.h"
#include "analyzer/record_options.h"
#include "analyzer/report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row rows[] = {
	{ "all", 0, NULL, OPTION_FLAG, offsetof(struct report_options, all), "all that is known, not only what 80x24 holds", 0 },
	OPTIONS_ROW_PROCESS, OPTIONS_ROW_DEVICE, OPTIONS_ROW_TIMES, OPTIONS_ROW_ROWS, OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	OPTIONS_ROW_FILTER, OPTIONS_ROW_JSON, OPTIONS_ROW_RULES, OPTIONS_ROW_FRAMES, OPTIONS_ROW_FORCE, OPTIONS_ROW_QUIET,
	OPTIONS_END
};

const struct option_spec cmd_report_spec = {
	"memtrace report [options] [DIR...]",
	"What happened, on one screen: what failed and why, or that all is well; where\n"
	"the memory was and whose, and what was lost while recording. Its words are\n"
	"explained by memtrace help words.",
	rows, 0,
	"  memtrace report                         # of the newest trace here\n"
	"  memtrace report --all                   # everything, on a larger screen\n"
	"  memtrace report --process worker --from phase:train\n",
	"Next: memtrace help peak, leaks, timeline\n"
	"Read: docs/report.md; docs/DIAGNOSIS.md on verdicts",
};

static struct losses losses_of(const struct view *v)
{
	struct losses l = { .complete = reader_complete(v->reader) };
	for (unsigned id = 0; id < reader_processes(v->reader); id++) {
		const struct process *p = reader_process(v->reader, id);
		const struct model_process *m = model_process(v->model, id);
		uint64_t lost_ns = m->lost_events ? m->lost_ns : m->last_ns;
		if (p->lost_events && (!l.events || lost_ns < l.events_ns))
			l.events_ns = lost_ns;
		l.events += p->lost_events;
		l.events_why |= p->lost_why;
		l.truncated_stacks += p->truncated_stacks;
		l.unplaced_stacks += p->unplaced_stacks;
		l.unwritten_bytes += p->unwritten_bytes;
		l.skipped_slots += p->skipped_slots;
		l.turned_off += p->off;
		for (int kind = 0; kind < MODEL_KINDS; kind++)
			l.missed_frees += m->kind[kind].missed_frees;
	}
	for (unsigned i = 0; i < reader_notes(v->reader); i++)
		l.notes += reader_note(v->reader, i)->code != MT_OK;
	l.unrecorded = reader_unrecorded(v->reader);
	l.unrecorded_why = reader_unrecorded_why(v->reader);
	l.complete = l.complete && !l.events && !l.skipped_slots && !l.unrecorded && !l.turned_off;
	return l;
}

static void report_fini(struct report *r)
{
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		sites_free(r->owners[kind]);
	sites_free(r->temporary);
	sites_free(r->survivors);
	explain_free(r->explain);
	course_free(r->course);
	system_close(r->system);
}

/* What modules and libraries need for themselves takes one row each, so that the rows are the program's. */
static int host_owners(const struct view *v, enum model_kind kind, struct sites **out)
{
	bool folds = v->options->by == BY_UNSET && !v->options->json && !v->options->all_frames;
	return view_owners_brief(v, SITES_HOST_PEAK, kind, folds ? benign_library : NULL, out);
}

/* Where nothing is wrong as far as causes go, what memtrace leaks says of it. */
static int ask_leaks(struct report *r, struct view *v)
{
	struct leaks l;
	int e = leaks_init(&l, v, r->course, NULL);
	if (e < 0) {
		r->course = NULL; /* it has taken that over */
		return e;
	}
	r->leaks = (struct report_leaks){ .known = true, .alive = l.bytes, .alive_min = l.bytes_min, .unproven = l.unproven, .in_use = l.in_use };
	for (unsigned group = 1; group <= l.groups; group++)
		for (int kind = 0; kind < MODEL_KINDS; kind++) {
			struct leak_group g = leaks_group(&l, group, kind);
			r->leaks.sites += g.sites;
			r->leaks.grown += (uint64_t)g.bytes;
		}
	l.course = NULL; /* ours again */
	leaks_fini(&l);
	return 0;
}

/* The second pass has a reader and a model of its own, so the owners are added up meanwhile. */
struct second_pass { struct course *course; const struct view *view; pthread_t thread; bool threaded; int error; };

static void *run_second(void *arg)
{
	struct second_pass *p = arg;
	p->error = course_run(p->course, p->view);
	return NULL;
}

static void begin_second(struct second_pass *p)
{
	p->threaded = pthread_create(&p->thread, NULL, run_second, p) == 0;
	if (!p->threaded)
		run_second(p);
}

static int end_second(struct second_pass *p)
{
	if (p->threaded)
		pthread_join(p->thread, NULL);
	return p->error;
}

static int larger(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* The arenas that were mapped by imports and the others are one owner. Returns the others' bytes. */
static uint64_t join_arenas(struct sites *s)
{
	struct owner *all = NULL;
	uint64_t after = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct owner *o = &s->owners[i];
		if (!o->folded || !pyarenas_is_label(o->label))
			continue;
		after += strcmp(o->label, PYARENAS_LABEL) ? 0 : o->bytes;
		if (!all) {
			all = o;
			all->label[sizeof(PYARENAS_LABEL) - 1] = '\0';
			continue;
		}
		all->bytes += o->bytes;
		all->blocks += o->blocks;
		free(o->label);
		free(o->stacks);
		free(o->members);
		memmove(o, o + 1, (--s->count - i) * sizeof(*o));
		i--;
	}
	if (all)
		qsort(s->owners, s->count, sizeof(*s->owners), larger);
	return after;
}

static int build_owners(struct report *r, const struct view *v)
{
	int e = 0;
	sites_look_ahead(v->model, v->reader, v->stacks, 1u << SITES_HOST_PEAK | 1u << SITES_TEMPORARY | 1u << SITES_LIVE);
	for (int kind = 0; e == 0 && kind < MODEL_HOST_KINDS; kind++)
		if (v->kinds & 1u << kind)
			e = host_owners(v, kind, &r->owners[kind]);
	if (r->owners[MODEL_MAP])
		r->arenas_after = join_arenas(r->owners[MODEL_MAP]);
	if (e == 0 && v->kinds & 1u << MODEL_HEAP)
		e = view_owners_brief(v, SITES_TEMPORARY, MODEL_HEAP, NULL, &r->temporary);
	if (e == 0 && v->kinds & 1u << MODEL_HEAP)
		e = view_leftovers(v, MODEL_HEAP, benign_stack, &r->survivors);
	bool any = (r->survivors && r->survivors->count) || !(v->kinds & ((1u << MODEL_HOST_KINDS) - 1));
	for (int kind = 0; kind < MODEL_HOST_KINDS; kind++)
		any = any || (r->owners[kind] && r->owners[kind]->count);
	return e ? e : view_check_filter(v, any);
}

static int report_init(struct report *r, const struct view *v)
{
	struct second_pass second = { .course = r->course, .view = v };
	r->view = v;
	r->losses = losses_of(v);
	int e = explain_new(&r->explain, v, r->course, r->system, r->losses.complete);
	if (e < 0)
		return e;
	begin_second(&second);
	e = build_owners(r, v);
	int passed = end_second(&second);
	e = e < 0 ? e : passed;
	return e < 0 ? e : explain_make(r->explain);
}

static int report(struct view *v)
{
	struct model_query q = MODEL_QUERY_ALL;
	const struct report_options *o = (const struct report_options *)v->options;
	struct report r = { .course = course_new(), .brief = !o->all };
	if (!r.course)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	int e = system_open(&r.system, v->reader);
	if (e == 0) {
		v->samples = system_samples(r.system);
		system_ask(r.system, &q);
		course_attach(r.course, &q);
		e = view_run(v, &q);
	}
	if (e >= 0)
		e = system_settle(r.system, v->model);
	if (e >= 0)
		e = report_init(&r, v);
	if (e == 0 && !v->options->json && !report_is_trouble(&r))
		e = ask_leaks(&r, v);
	if (e == 0 && v->options->json)
		e = report_print_json(&r);
	else if (e == 0)
		report_print(&r);
	v->told_unread = !v->options->json && e == 0;
	report_fini(&r);
	return e;
}

int cmd_report(int argc, char **argv)
{
	struct report_options o = { 0 };
	record_unknown_variables();
	return view_command(&cmd_report_spec, &o, argc, argv, report);
}
