/*
 * Two traces side by side. Every figure that one of them has is an item, with a section, a name, and a value for each
 * trace that has it. Items are matched by name: devices by the order in which they are used, processes by name and
 * order, phases by name, sites by the functions of their stacks (not by lines, which any change of a source file
 * shifts).
 */
#ifndef MT_REPORT_SCREEN_DIFF_H
#define MT_REPORT_SCREEN_DIFF_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/timeline/timeline.h"

#include <uthash.h>

/* X(section, its key in JSON, its title) */
/* clang-format off */
#define DIFF_SECTIONS(X)                                                   \
	X(TOTALS,        "totals",     "TOTALS")                           \
	X(SYSTEM,        "system",     "SYSTEM")                           \
	X(DEVICES,       "devices",    "DEVICES")                          \
	X(CATEGORIES_OF, "categories", "CATEGORIES at the peak")           \
	X(PROCESSES,     "processes",  "PROCESSES")                        \
	X(PHASES,        "phases",     "PHASES")                           \
	X(STEPS,         "steps",      "STEPS")                            \
	X(SITES,         "sites",      "SITES at the peak")
/* clang-format on */

enum section {
#define X(section, key, title) section,
	DIFF_SECTIONS(X)
#undef X
		SECTIONS
};

/* A figure of one trace or of both: [0] is the trace BEFORE, [1] the trace AFTER. */
struct item {
	UT_hash_handle hh;
	char *key;           /* section and name */
	char *name, *figure; /* "cuda:0", "pool peak" */
	enum section section;
	bool seconds; /* the unit of values; else bytes */
	bool has[2];
	double value[2], doubt[2]; /* doubt: how much of the value may only be there as frees were lost */
	size_t order;              /* in which items were added */
	int stack_side;            /* of a site: the trace that `stack` is of */
	uint32_t stack;            /* 0 = no site */
};

/* One of the two traces. */
struct side {
	struct options options;
	const char *dir;
	struct selection selection;
	struct analysis analysis;
	bool open;
};

struct diff {
	struct side side[2];
	struct item *items; /* by key */
	struct item **sorted;
	size_t count;
};

/* Reads the trace o->dirs[side] and adds its figures. 0 or -MT_E*; diff_fini() in either case. */
int diff_take(struct diff *d, int side, const struct options *o);
void diff_fini(struct diff *d);

#endif
