/*
 * Why, and what to do: what a rule finds is a list of reasons with their figures, and the words for them are one table
 * (reasons.def). Whoever prints a verdict asks for the sentence; whoever compares looks at kinds and figures.
 *
 *   struct reasons why = { 0 };
 *   SAY(&why, short_by, .need = GIB, .free = 0, .missing = GIB, .unused = 0);
 *   char *text = reasons_text(&why);        "asked 1.00 GiB, free 0 B: short by 1.00 GiB with 0 B unused in the pool"
 *   reasons_fini(&why);
 */
#ifndef MT_DIAGNOSIS_REASONS_H
#define MT_DIAGNOSIS_REASONS_H

#include "analyzer/diagnosis/growth/forecast.h"
#include "analyzer/diagnosis/growth/outlook.h"

enum reason_kind {
#define REASON(name, words) REASON_##name,
#include "analyzer/diagnosis/reasons.def"
	REASON_KINDS
};

#define TYPE_BYTES    uint64_t
#define TYPE_COUNT    uint64_t
#define TYPE_NUMBER   uint64_t
#define TYPE_DURATION uint64_t /* ns */
#define TYPE_SECOND   double
#define TYPE_LENGTH   double /* s */
#define TYPE_TIMES    double
#define TYPE_PERCENT  double
#define TYPE_FORECAST struct forecast
#define TYPE_SHAPE    enum growth_kind
#define TYPE_HOW      enum outlook
#define TYPE_NAME     const char *

/* Those that the reason's words name; the others are 0. Names are borrowed, from the evidence or who knew them. */
struct figures {
	int none; /* always 0: so that SAY() may be given none */
#define FIGURE(name, unit) TYPE_##unit name;
#include "analyzer/diagnosis/reasons.def"
};

struct reason {
	enum reason_kind kind;
	struct figures figures;
};

/* One sentence; zero is an empty one. */
struct reasons {
	struct reason *items;
	size_t count;
};

/* Adds a reason: SAY(list, short_by, .need = ..., .free = ...). Where there is no memory it is left out. */
#define SAY(list, reason, ...) reasons_add(list, REASON_##reason, &(struct figures){ .none = 0, __VA_ARGS__ })

/* The same of a kind that is computed; `figures` NULL: none. */
void reasons_add(struct reasons *list, enum reason_kind kind, const struct figures *figures);
void reasons_fini(struct reasons *list);

/* The figures of the first reason of that kind; NULL = there is none. */
const struct figures *reasons_find(const struct reasons *list, enum reason_kind kind);

/* The sentence, which the caller frees; NULL where there is none, or no memory. */
char *reasons_text(const struct reasons *list);

#endif
