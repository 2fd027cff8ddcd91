/*
 * Two traces side by side. Every figure that one of them has is an item, with a section, a name, and a value for each
 * trace that has it. Items are matched by name: devices by the order in which they are used, processes by name and
 * order, phases by name, sites by the functions of their stacks and holders by the way to them (not by lines, which any
 * change of a source file shifts).
 */
#ifndef MT_REPORT_DIFF_DIFF_H
#define MT_REPORT_DIFF_DIFF_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/report/ci/ci.h"
#include "analyzer/timeline/timeline.h"

#include <jansson.h>
#include <string.h>
#include <uthash.h>

#define DIFF_ROWS        10        /* that are shown without -n, on the screen and in CI */
#define DIFF_LEAST_BYTES 1048576.0 /* smaller sums are not worth a percentage */

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
	X(HOLDERS,       "holders",    "HOLDERS at the snapshots")         \
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

/* Adds to a figure that is matched by `id` and called `name`; NULL = no memory. */
struct item *diff_add_named(struct diff *d, int side, enum section section, const char *id, const char *name,
			    const char *figure, double value);

/* Behind both: adds which object of Python held how much, where both have a snapshot that says so. 0 or -MT_E*. */
int diff_take_holders(struct diff *d);

/* Makes `sorted`: sites, holders and categories by what they changed, everything else as it came. 0 or -MT_E*. */
int diff_sort(struct diff *d);

static inline double diff_change(const struct item *i)
{
	return i->value[1] - i->value[0];
}

/* Sites, holders and categories, which are ranked. */
static inline bool diff_is_ranked(enum section section)
{
	return section == SITES || section == HOLDERS || section == CATEGORIES_OF;
}

static inline bool diff_is_end(const struct item *i)
{
	return i->section == TOTALS && !strcmp(i->figure, "at end");
}

/* What follows is of a sorted one. */

void diff_print(const struct diff *d);

/* A new reference. */
json_t *diff_json(const struct diff *d);

/* "+1.5 GiB"; "+3.0 %", "x 12", "new". The caller frees them; NULL when there is no memory. */
char *diff_change_text(const struct item *i);
char *diff_percent_text(const struct item *i);

struct diff_limits {
	double percent, bytes; /* INFINITY = none */
};

/* "5%,100M"; NULL = no limits. 0 or -MT_E*. */
int diff_limits_parse(struct diff_limits *limits, const char *text);

/* Says what grew more than that, and keeps it for CI. Returns 1 if anything did, else 0. What may be more than allowed
 * is no success: of BEFORE's live bytes those count that lost frees can't have made. */
int diff_check_limits(const struct diff *d, const struct diff_limits *limits, struct ci *ci);

/* For CI the sites that make it more, at their lines. */
void diff_add_sites(struct diff *d, struct ci *ci);

#endif
