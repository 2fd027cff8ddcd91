/* Output of memtrace live for programs: a line of JSON for each look, or a file in the format OpenMetrics. */
#ifndef MT_LIVE_LIVE_PRINT_H
#define MT_LIVE_LIVE_PRINT_H

#include "analyzer/live/live_follow.h"

/* The levels, in per cent, from which on a gauge warns. */
struct live_levels {
	double first, second;
};

/* How full it is, in per cent. */
double live_percent(const struct gauge *g);

/* 0 = below both levels, 1 = a warning, 2 = an alert. */
int live_level(const struct gauge *g, const struct live_levels *levels);

/* One line on stdout. 0 or -MT_EMEMORY. */
int live_print_json(const struct live *l, const struct live_levels *levels);

/* Replaces the file `path` by the figures in OpenMetrics 1.0: it is written beside and renamed. 0 or -MT_EOUTPUT. */
int live_write_openmetrics(const struct live *l, const char *path);

#endif
