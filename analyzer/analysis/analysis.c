#include "analyzer/analysis/analysis.h"

#include "analyzer/analysis/index.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/memory/memory.h"

#include <pthread.h>

static struct losses losses_of(const struct selection *sel)
{
	struct losses l = { .complete = reader_complete(sel->reader) };
	for (unsigned id = 0; id < reader_processes(sel->reader); id++) {
		const struct process *p = reader_process(sel->reader, id);
		const struct model_process *m = model_process(sel->model, id);
		const uint64_t lost_ns = model_lost_ns(sel->model, id);
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
			l.missed_frees += p->stops ? 0 : m->kind[kind].missed_frees;
	}
	for (unsigned i = 0; i < reader_notes(sel->reader); i++)
		l.notes += reader_note(sel->reader, i)->code != MT_OK;
	l.unrecorded = reader_unrecorded(sel->reader);
	l.unrecorded_why = reader_unrecorded_why(sel->reader);
	l.complete = l.complete && !l.events && !l.skipped_slots && !l.unrecorded && !l.turned_off;
	return l;
}

/* The second pass has a reader and a model of its own, so that others can look at the selection's meanwhile. */
struct second_pass {
	struct timeline *timeline;
	const struct selection *selection;
	pthread_t thread;
	int error;
};

static void *run_second(void *arg)
{
	struct second_pass *p = arg;
	p->error = timeline_run(p->timeline, p->selection);
	return NULL;
}

static int second_pass(struct analysis *a, const struct selection *sel, int (*beside)(void *arg), void *arg)
{
	struct second_pass p = { .timeline = a->timeline, .selection = sel };
	bool threaded = beside && pthread_create(&p.thread, NULL, run_second, &p) == 0;
	if (!threaded)
		run_second(&p);
	int e = beside ? beside(arg) : 0;
	if (threaded)
		pthread_join(p.thread, NULL);
	return e < 0 ? e : p.error;
}

/* The selection's pass, with who looks on. */
static int first_pass(struct analysis *a, struct selection *sel, unsigned wants)
{
	struct model_query q = MODEL_QUERY_ALL;
	int e = wants & ANALYSIS_HOST ? host_memory_open(&a->host, sel->reader) : 0;
	if (e < 0)
		return e;
	if (a->host) {
		sel->samples = host_memory_samples(a->host);
		host_memory_ask(a->host, &q);
	}
	if (a->timeline)
		timeline_attach(a->timeline, &q);
	e = selection_run(sel, &q);
	if (e >= 0 && a->host)
		e = host_memory_settle(a->host, sel->model);
	return e;
}

static int watch_windows(struct analysis *a, const struct selection *sel)
{
	a->windows = site_windows_new(sel);
	if (!a->windows)
		return error_memory();
	site_windows_watch(a->windows, a->timeline);
	return 0;
}

static int make(struct analysis *a, struct selection *sel, unsigned wants, int (*beside)(void *arg), void *arg)
{
	bool diagnosed = wants & (ANALYSIS_CATEGORIES | ANALYSIS_DIAGNOSIS);
	*a = (struct analysis){ 0 };
	if (wants & ANALYSIS_TIMELINE && !(a->timeline = timeline_new()))
		return error_memory();
	int e = first_pass(a, sel, wants);
	if (e < 0)
		return e;
	a->losses = losses_of(sel);
	e = 0;
	if (diagnosed) /* the second pass collects for it */
		e = diagnosis_new(&a->diagnosis, sel, a->timeline, a->host, a->losses.complete);
	if (e == 0 && wants & ANALYSIS_WINDOWS)
		e = watch_windows(a, sel);
	if (e == 0 && a->timeline)
		e = second_pass(a, sel, beside, arg);
	if (e == 0 && a->windows)
		e = site_windows_finish(a->windows);
	if (e == 0 && wants & ANALYSIS_DIAGNOSIS)
		e = diagnosis_make(a->diagnosis);
	else if (e == 0 && diagnosed)
		e = diagnosis_categories(a->diagnosis);
	return e;
}

int analysis_run(struct analysis *a, struct selection *sel, unsigned wants, int (*beside)(void *arg), void *arg)
{
	struct index index;
	int e = index_take(&index, sel, a, wants);
	if (e > 0) {
		e = beside ? beside(arg) : 0;
	} else if (e == 0) {
		const bool before = mem_use(mem_has(sel));
		e = make(a, sel, wants, beside, arg);
		mem_use(before);
		if (e == 0)
			index_keep(&index, sel, a, wants);
	}
	index_fini(&index);
	return e;
}

void analysis_free(struct analysis *a)
{
	site_windows_free(a->windows);
	diagnosis_free(a->diagnosis);
	timeline_free(a->timeline);
	host_memory_close(a->host);
	*a = (struct analysis){ 0 };
}
