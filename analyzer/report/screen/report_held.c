/* Who holds what a leak's line made, and what the headline's line made, where a snapshot of holders says it. */
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

static struct held_question question_of(const struct verdict *v)
{
	bool grows = verdict_has(v->kind, VERDICT_TELLS_GROWTH) || verdict_has(v->kind, VERDICT_IS_FACT);
	return (struct held_question){ .site = grows && v->sites[0] ? strdup(v->sites[0]) : NULL,
				       .device = v->device != NULL };
}

/* Who holds it is evidence; the container is what is to be mended, rather than the line. */
static void tell(struct report *r)
{
	struct verdicts *v = &r->analysis.diagnosis->verdicts;
	for (size_t i = 0; i < v->held_count; i++) {
		const struct held_question *q = &r->held[i];
		struct reasons *advice = &v->held[i].advice;
		if (!q->known)
			continue;
		SAY(&v->held[i].evidence, held_by);
		held_say(q, &v->held[i].evidence);
		reasons_fini(advice);
		if (q->holder.what == HOLDER_CYCLE)
			SAY(advice, break_cycle, .site = q->site);
		else
			SAY(advice, let_go, .name = q->name, .site = q->site);
	}
}

/* ---- copies: which object keeps each ----------------------------------------------------------------------- */

/* The copies that the verdict is about: the largest of its device. */
static const struct copy_set *copies_of(const struct report *r, const struct verdict *v)
{
	const struct diagnosis *diagnosis = r->analysis.diagnosis;
	const char *name = v->device ? v->device->name : "host";
	for (size_t i = 0; i < diagnosis->copies.count; i++)
		if (!strcmp(name, diagnosis_space_name(diagnosis, diagnosis->copies.sets[i].space)))
			return &diagnosis->copies.sets[i];
	return NULL;
}

static int ask_copies(struct report *r, const struct copy_set *s, bool device)
{
	r->copies_held = calloc(s->count, sizeof(*r->copies_held));
	if (!r->copies_held)
		return error_memory();
	r->copies = s;
	for (unsigned i = 0; i < s->count; i++)
		r->copies_held[i] = (struct held_question){
			.site = strdup(diagnosis_call(r->analysis.diagnosis, s->owners[i].stack)),
			.below = s->owners[i].stack,
			.device = device,
		};
	return held_find(r->selection, r->copies_held, s->count);
}

/* "; kept by __main__.model (Model), __main__.inference (Model)" behind the evidence. */
static void tell_copies(struct report *r, struct verdict *v)
{
	unsigned told = 0;
	for (unsigned i = 0; i < r->copies->count; i++) {
		const struct held_question *q = &r->copies_held[i];
		if (q->known)
			reasons_add(&v->evidence, told++ ? REASON_also_keeps_what : REASON_keeps_what,
				    &(struct figures){ .name = q->name, .site = q->site });
	}
}

static int find_copies(struct report *r)
{
	struct verdicts *v = &r->analysis.diagnosis->verdicts;
	for (size_t i = 0; i < v->held_count; i++) {
		const struct copy_set *s = v->held[i].kind == VERDICT_COPIES ? copies_of(r, &v->held[i]) : NULL;
		if (!s)
			continue;
		int e = ask_copies(r, s, v->held[i].device != NULL);
		if (!e)
			tell_copies(r, &v->held[i]);
		return e;
	}
	return 0;
}

/* ---- all of it ---- */

int report_find_held(struct report *r)
{
	struct verdicts *v = &r->analysis.diagnosis->verdicts;
	struct held_question *q;
	r->held_count = v->held_count + v->fact_count + 1;
	r->held = calloc(r->held_count, sizeof(*r->held));
	if (!r->held)
		return error_memory();
	q = r->held;
	for (size_t i = 0; i < v->held_count; i++)
		*q++ = question_of(&v->held[i]);
	for (size_t i = 0; i < v->fact_count; i++)
		*q++ = question_of(&v->facts[i]);
	q->site = report_is_trouble(r) ? NULL : report_grown_site(r, &q->device);
	int e = held_find(r->selection, r->held, r->held_count);
	if (e < 0)
		return e;
	tell(r);
	return find_copies(r);
}

void report_held_fini(struct report *r)
{
	if (r->held)
		held_fini(r->held, r->held_count);
	free(r->held);
	if (r->copies_held)
		held_fini(r->copies_held, r->copies->count);
	free(r->copies_held);
}
