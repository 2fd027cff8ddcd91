/* What the rules for devices and for the host share: how a rule answers. Each fills in `out`, which owns its texts. */
#ifndef MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H
#define MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H

#include "analyzer/diagnosis/verdicts.h"
#include "analyzer/timeline/outlook.h"
#include "analyzer/util/output.h"

#include <stdlib.h>

/* Of a trace that lost events less is certain. */
static inline enum finding holds(struct verdict *out, const struct evidence *e, uint64_t bytes, double confidence)
{
	out->bytes = bytes;
	out->confidence = e->complete ? confidence : confidence * 0.8;
	return FINDING_HOLDS;
}

/* What grows is as sure as its growth, which knows what was lost (growth_doubt()). */
static inline enum finding holds_as(struct verdict *out, const struct evidence_growth *g, uint64_t bytes)
{
	static const double confidence[] = { [CERTAINTY_LOW] = 0.4, [CERTAINTY_MEDIUM] = 0.7, [CERTAINTY_HIGH] = 0.9 };
	out->bytes = bytes;
	out->confidence = confidence[g->fit.certainty];
	return FINDING_HOLDS;
}

/* `why` is allocated; it is `out`'s from now on. */
static inline enum finding ruled_out(struct verdict *out, char *why)
{
	out->evidence = why;
	return FINDING_RULED_OUT;
}

/* Growth that is described in `out` already, and is no leak: a fact, with the reason and without advice. */
static inline enum finding fact(struct verdict *out, const struct evidence_growth *g)
{
	char *why = outlook_why_no_leak(g->outlook), *text = output_format("%s, %s", out->evidence, why ? why : "");
	free(why);
	free(out->evidence);
	free(out->advice);
	out->evidence = text;
	out->advice = NULL;
	out->sites[0] = g->site;
	return holds_as(out, g, g->bytes);
}

#endif
