/* What memtrace live says to programs: a line of JSON a look, or OpenMetrics in a file. */
#ifndef MT_REPORT_LIVE_PRINT_H
#define MT_REPORT_LIVE_PRINT_H

#include "analyzer/report/live_follow.h"

/* The levels, in per cent, from which on a gauge warns. */
struct live_levels {
	double first, second;
};

double live_percent(const struct gauge *g);

/* 0: below; 1: a warning; 2: an alert. */
int live_level(const struct gauge *g, const struct live_levels *levels);

/* One line on stdout. 0 or -MT_EMEMORY. */
int live_print_json(const struct live *l, const struct live_levels *levels);

/* The file, as OpenMetrics 1.0, renamed into place. 0 or -MT_EOUTPUT. */
int live_write_openmetrics(const struct live *l, const char *path);

#endif
