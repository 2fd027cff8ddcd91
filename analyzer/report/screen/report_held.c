/* Who holds what a leak's line made, and what the headline's line made, where a snapshot of holders says it. */
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <stdlib.h>

static struct held_question question_of(const struct verdict *v)
{
	bool grows = verdict_has(v->kind, VERDICT_TELLS_GROWTH) || verdict_has(v->kind, VERDICT_IS_FACT);
	return (struct held_question){ .site = grows ? v->sites[0] : NULL, .device = v->device != NULL };
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
	r->grown_site = report_is_trouble(r) ? NULL : report_grown_site(r, &q->device);
	q->site = r->grown_site;
	int e = held_find(r->selection, r->held, r->held_count);
	return e ? e : tell(r);
}

void report_held_fini(struct report *r)
{
	if (r->held)
		held_fini(r->held, r->held_count);
	free(r->held);
	free(r->grown_site);
}
