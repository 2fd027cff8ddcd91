/* Who holds what a leak's line made, and what the headline's line made, where a snapshot of holders says it. */
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

static struct held_question question_of(const struct verdict *v)
{
	bool grows = verdict_has(v->kind, VERDICT_TELLS_GROWTH) || verdict_has(v->kind, VERDICT_IS_FACT);
	return (struct held_question){ .site = grows && v->sites[0] ? strdup(v->sites[0]) : NULL,
				       .device = v->device != NULL };
}

static int replace(char **text, char *by)
{
	if (!by)
		return error_memory();
	free(*text);
	*text = by;
	return 0;
}

/* Who holds it is evidence; the container is what is to be mended, rather than the line. */
static int tell(struct report *r)
{
	struct verdicts *v = &r->analysis.diagnosis->verdicts;
	int e = 0;
	for (size_t i = 0; !e && i < v->held_count; i++) {
		if (!r->held[i].known)
			continue;
		char *text = held_text(&r->held[i]);
		e = replace(&v->held[i].advice, held_advice(&r->held[i]));
		if (!e)
			e = replace(&v->held[i].evidence,
				    text ? output_format("%s; held by %s", v->held[i].evidence, text) : NULL);
		free(text);
	}
	return e;
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
static int tell_copies(struct report *r, struct verdict *v)
{
	char *text = strdup(v->evidence);
	unsigned told = 0;
	for (unsigned i = 0; text && i < r->copies->count; i++) {
		const struct held_question *q = &r->copies_held[i];
		if (!q->known)
			continue;
		char *more = output_format("%s%s %s keeps what %s made", text, told++ ? "," : ";", q->name, q->site);
		free(text);
		text = more;
	}
	return replace(&v->evidence, text);
}

static int find_copies(struct report *r)
{
	struct verdicts *v = &r->analysis.diagnosis->verdicts;
	for (size_t i = 0; i < v->held_count; i++) {
		const struct copy_set *s = v->held[i].kind == VERDICT_COPIES ? copies_of(r, &v->held[i]) : NULL;
		if (!s)
			continue;
		int e = ask_copies(r, s, v->held[i].device != NULL);
		return e ? e : tell_copies(r, &v->held[i]);
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
	e = e ? e : tell(r);
	return e ? e : find_copies(r);
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
