/* What memtrace holders --scan shows, as a screen or as JSON. */
#ifndef MT_REPORT_SCREEN_SCAN_REPORT_H
#define MT_REPORT_SCREEN_SCAN_REPORT_H

#include "analyzer/model/holders/scan.h"
#include "analyzer/model/selection/selection.h"

struct scan_report {
	struct selection *selection; /* has run until the copy's moment */
	const struct process *process;
	const struct memory_copy *copy;
	const struct scan *scan;
	bool whole; /* as scan_make() was told */
};

void scan_print(const struct scan_report *r);
int scan_print_json(const struct scan_report *r);

/* "global", "stack", ...: what such an owner is. */
const char *scan_what_name(enum scan_what what);

#endif
