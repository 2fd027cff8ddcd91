/* What the rules for devices and for the host share: how a rule answers. Each fills in `out`. */
#ifndef MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H
#define MT_DIAGNOSIS_VERDICT_RULES_INTERNAL_H

#include "analyzer/diagnosis/verdicts.h"

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
	out->growth = g;
	out->confidence = confidence_value(confidence[g->fit.certainty]);
	return FINDING_HOLDS;
}

/* RULED_OUT(out, copies_little, .bytes = extra); what is not known is UNKNOWN(out, ...) */
#define RULED_OUT(out, reason, ...) (SAY(&(out)->evidence, reason, __VA_ARGS__), FINDING_RULED_OUT)
#define UNKNOWN(out, reason, ...)   (SAY(&(out)->evidence, reason, __VA_ARGS__), FINDING_UNKNOWN)

static inline double percent_of(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0.0;
}

/* Growth whose evidence is in `out` already, and which is no leak: a fact, with the reason and without advice. */
static inline enum finding fact(struct verdict *out, const struct evidence_growth *g)
{
	SAY(&out->evidence, no_leak, .how = g->outlook);
	reasons_fini(&out->advice);
	out->sites[0] = g->site;
	return holds_as(out, g, g->bytes);
}

/* Why growth of low certainty is no leak. */
static inline enum finding uncertain(struct verdict *out, const struct evidence_growth *g)
{
	if (g->rate_may_be_none)
		return RULED_OUT(out, rate_may_be_none, .site = g->site, .bytes = g->bytes);
	return RULED_OUT(out, grows_uncertain, .site = g->site, .bytes = g->bytes);
}

/* The line that makes most besides the largest one's of what grows at one pace, where it makes a good part; or NULL. */
static inline const char *growth_second(const struct evidence_growth *g)
{
	return g->second && 10 * g->second_bytes >= g->bytes ? g->second : NULL;
}

/* "made by a.py:9 keep", or "made by a.py:9 keep (3.0 MiB), a.py:12 note (2.0 MiB) and 4 more sites at the same pace" */
static inline void say_makers(struct reasons *evidence, const struct evidence_growth *g)
{
	const char *second = growth_second(g);
	const unsigned rest = g->sites - (g->sites > 0) - (second != NULL);
	SAY(evidence, made_by, .site = g->site);
	if (g->extension)
		SAY(evidence, in_extension, .extension = g->extension);
	if (second)
		SAY(evidence, made_bytes, .bytes = g->site_bytes);
	if (second && rest)
		SAY(evidence, comma_second, .second = second, .bytes = g->second_bytes);
	else if (second)
		SAY(evidence, and_second, .second = second, .bytes = g->second_bytes);
	if (rest == 1)
		SAY(evidence, one_more_site);
	else if (rest)
		SAY(evidence, more_sites, .count = rest);
	if (g->sites > 1)
		SAY(evidence, same_pace);
}

/* ", 3.0 MiB more each step", or " within 0.07 s" where it grew for less than a second; `always`: also if there is
 * nothing to say */
static inline void say_pace(struct reasons *evidence, const struct evidence_growth *g, bool always)
{
	if (g->per_step > 0)
		SAY(evidence, each_step, .rate = (uint64_t)g->per_step);
	else if (g->brief)
		SAY(evidence, within, .lasted = g->lasted_s);
	else if (g->per_second > 0 || always)
		SAY(evidence, each_second, .rate = (uint64_t)(g->per_second > 0 ? g->per_second : 0));
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
