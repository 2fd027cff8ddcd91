/* memtrace timeline --by: a row for each step or phase, rather than for equal lengths of time. */
#ifndef MT_REPORT_TIMELINE_TIMELINE_ROWS_H
#define MT_REPORT_TIMELINE_TIMELINE_ROWS_H

#include "analyzer/model/selection/selection.h"

/* Prints the rows of v->options->by, BY_STEP or BY_PHASE, as a table, CSV or JSON. 0 or -MT_E*. */
int timeline_by_step(struct selection *sel);

void timeline_print_field(const char *text); /* a field of CSV, in quotes */

#endif
