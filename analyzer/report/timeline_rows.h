/* The timelines whose stretches are steps or phases rather than equal lengths of time. */
#ifndef MT_REPORT_TIMELINE_ROWS_H
#define MT_REPORT_TIMELINE_ROWS_H

#include "analyzer/model/selection.h"

/* By v->options->by, BY_STEP or BY_PHASE: a table, CSV or JSON. A command's result. */
int timeline_by_step(struct selection *v);

void timeline_print_field(const char *text); /* a field of CSV, in quotes */

#endif
