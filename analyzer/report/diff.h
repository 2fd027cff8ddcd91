/*
 * Two traces side by side: every figure of either is an item, found by its section and name, with a value for each
 * trace that has it. Matching is by name: devices by the order in which they are used, processes by name and order,
 * phases by name, sites by the functions of their stacks. Lines are left out of that, since a change shifts them.
 */
#ifndef MT_REPORT_DIFF_H
#define MT_REPORT_DIFF_H

#include "analyzer/model/selection.h"
#include "analyzer/report/analysis.h"
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

/* Something that is in one trace or both. */
struct item {
	UT_hash_handle hh;
	char *key;           /* section and name */
	char *name, *figure; /* "cuda:0", "pool peak" */
	enum section section;
	bool seconds; /* else bytes */
	bool has[2];
	double value[2], doubt[2]; /* doubt: so much of the value may be wrong for lost frees */
	size_t order;
	int stack_side; /* of a site: whose stack it is */
	uint32_t stack;
};

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

/* Adds what the trace o->dirs[side] has. 0 or -MT_E*; diff_fini() in either case. */
int diff_take(struct diff *d, int side, const struct options *o);
void diff_fini(struct diff *d);

#endif
