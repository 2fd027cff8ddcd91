/* memtrace report: what happened, on one screen. */
#include "analyzer/benign.h"
#include "analyzer/commands.h"
#include "analyzer/error.h"
#include "analyzer/report.h"

#include <pthread.h>
#include <string.h>

static const struct option_row rows[] = { OPTIONS_READ, OPTIONS_END };

static const struct option_spec spec = {
	"memtrace report [options] [DIR...]",
	"What happened, on one screen: totals, processes, memory over time, who owned most at the peak, and what was\n"
	"lost while recording.",
	rows, 0,
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

static bool folds_most(const struct sites *s)
{
	uint64_t folded = 0;
	for (size_t i = 0; i < s->count; i++)
		folded += s->owners[i].folded ? s->owners[i].bytes : 0;
	return folded > s->bytes / 10 * 9;
}

/* What modules and libraries need for themselves takes one row each, so that the rows are the program's; unless
 * it is nearly all, as in a program that does its work while it is imported. */
static int heap_owners(const struct view *v, struct sites **out)
{
	bool folds = v->options->by == BY_UNSET && !v->options->json && !v->options->all_frames;
	int e = view_owners_brief(v, SITES_HOST_PEAK, MODEL_HEAP, folds ? benign_stack : NULL, out);
	if (e < 0 || !folds || !folds_most(*out))
		return e;
	sites_free(*out);
	*out = NULL;
	return view_owners_brief(v, SITES_HOST_PEAK, MODEL_HEAP, NULL, out);
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

static int build_owners(struct report *r, const struct view *v)
{
	int e = 0;
	sites_look_ahead(v->model, v->reader, v->stacks, 1u << SITES_HOST_PEAK | 1u << SITES_TEMPORARY | 1u << SITES_LIVE);
	for (int kind = 0; e == 0 && kind < MODEL_HOST_KINDS; kind++)
		if (v->kinds & 1u << kind)
			e = kind == MODEL_HEAP ? heap_owners(v, &r->owners[kind])
				: view_owners_brief(v, SITES_HOST_PEAK, kind, NULL, &r->owners[kind]);
	if (e == 0 && v->kinds & 1u << MODEL_HEAP)
		e = view_owners_brief(v, SITES_TEMPORARY, MODEL_HEAP, NULL, &r->temporary);
	if (e == 0 && v->kinds & 1u << MODEL_HEAP)
		e = view_leftovers(v, MODEL_HEAP, benign_stack, &r->survivors);
	return e;
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
	struct report r = { .course = course_new() };
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
	if (e == 0 && v->options->json)
		e = report_print_json(&r);
	else if (e == 0)
		report_print(&r);
	report_fini(&r);
	return e;
}

int cmd_report(int argc, char **argv)
{
	struct options o = { 0 };
	return view_command(&spec, &o, argc, argv, report);
}
