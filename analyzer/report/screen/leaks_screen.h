/* memtrace leaks: what is printed of it, and the limits of --fail-over. */
#ifndef MT_REPORT_SCREEN_LEAKS_SCREEN_H
#define MT_REPORT_SCREEN_LEAKS_SCREEN_H

#include "analyzer/analysis/held.h"
#include "analyzer/report/ci/ci.h"

#define LEAKS_ROWS 10 /* that are shown without -n, on the screen and in CI */

/* `held`: who holds what each of the list made, as many as that is long. */
void leaks_print(const struct leaks *l, const struct held_question *held);

/* 0 or -MT_E*. */
int leaks_print_json(const struct leaks *l, const struct held_question *held);

/* "save train.py:73 and 9 more sites at the same pace", "serve server.py:14 in fast.c:12 fast_parse". The caller frees
 * it; NULL when there is no memory. */
char *leaks_group_name(const struct leaks *l, const struct leak_group *g);

/* All groups, those that grew most first. The caller frees them; NULL when there is no memory, then *count is 0. */
struct leak_group *leaks_groups(const struct leaks *l, size_t *count);

struct leaks_limits {
	uint64_t bytes, bytes_per_s, bytes_per_step; /* UINT64_MAX = none */
};

/* "100M,1M/s,1M/step"; NULL = no limits. 0 or -MT_E*. */
int leaks_limits_parse(struct leaks_limits *limits, const char *text);

/* Says what exceeds a limit, and keeps it for CI. 1 when a limit is exceeded, or can't be checked: a check that could
 * not look must not pass; else 0. */
int leaks_check_limits(const struct leaks *l, const struct leaks_limits *limits, struct ci *ci);

/* What grows without being over a limit is worth a remark, the largest at least. */
void leaks_add_growing(const struct leaks *l, struct ci *ci);

#endif
