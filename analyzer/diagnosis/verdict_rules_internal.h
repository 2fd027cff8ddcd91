/* What the rules for devices and for the host share: how a rule answers. Each fills in `out`, which owns its texts. */
#ifndef MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H
#define MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H

#include "analyzer/diagnosis/verdicts.h"
#include "analyzer/timeline/outlook.h"
#include "analyzer/util/output.h"

#include <stdlib.h>
#include <string.h>

#define LOST        0.8 /* of a confidence, in a trace that lost events */
#define MANY_COPIED 16  /* blocks of a copy: fewer may be alike by chance */

static inline enum finding holds(struct verdict *out, const struct evidence *e, uint64_t bytes,
				 enum confidence confidence)
{
	out->bytes = bytes;
	out->confidence = confidence_value(confidence) * (e->complete ? 1 : LOST);
	return FINDING_HOLDS;
}

/* What grows is as sure as its growth, which knows what was lost (growth_doubt()). */
static inline enum finding holds_as(struct verdict *out, const struct evidence_growth *g, uint64_t bytes)
{
	static const enum confidence confidence[] = { [CERTAINTY_LOW] = CONFIDENCE_guess,
						      [CERTAINTY_MEDIUM] = CONFIDENCE_unsaid,
						      [CERTAINTY_HIGH] = CONFIDENCE_counted };
	out->bytes = bytes;
	out->confidence = confidence_value(confidence[g->fit.certainty]);
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

/* The line that makes most besides the largest one's of what grows at one pace, where it makes a good part; or NULL. */
static inline const char *growth_second(const struct evidence_growth *g)
{
	return g->second && 10 * g->second_bytes >= g->bytes ? g->second : NULL;
}

/* "a.py:9 keep", or "a.py:9 keep (3.0 MiB), a.py:12 note (2.0 MiB) and 4 more sites at the same pace": the caller frees
 * it. */
static inline char *growth_makers(const struct evidence_growth *g)
{
	const char *second = growth_second(g);
	const unsigned rest = g->sites - (g->sites > 0) - (second != NULL);
	char *extension = g->extension ? output_format(" in %s", g->extension) : NULL;
	char *bytes = second ? output_format(" (%s)", BYTES(g->site_bytes)) : NULL;
	char *next = second ? output_format("%s %s (%s)", rest ? "," : " and", second, BYTES(g->second_bytes)) : NULL;
	char *more = rest ? output_format(" and %u more site%s", rest, rest == 1 ? "" : "s") : NULL;
	char *text = output_format("%s%s%s%s%s%s", g->site ? g->site : "one site", extension ? extension : "",
				   bytes ? bytes : "", next ? next : "", more ? more : "",
				   g->sites > 1 ? " at the same pace" : "");
	free(extension);
	free(bytes);
	free(next);
	free(more);
	return text;
}

/* Behind those that are there, as far as there is room. A line may grow on the heap and in arenas. */
static inline void add_site(struct verdict *out, const char *site)
{
	for (int i = 0; site && i < VERDICT_SITES; i++)
		if (!out->sites[i] || !strcmp(out->sites[i], site)) {
			out->sites[i] = site;
			return;
		}
}

#endif
