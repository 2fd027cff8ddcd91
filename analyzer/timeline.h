/* The timelines whose stretches are steps or phases rather than equal lengths of time. */
#ifndef MT_ANALYZER_TIMELINE_H
#define MT_ANALYZER_TIMELINE_H

#include "analyzer/view.h"

/* By v->options->by, BY_STEP or BY_PHASE: a table, CSV or JSON. A command's result. */
int timeline_by_course(struct view *v);

void timeline_print_field(const char *text); /* a field of CSV, in quotes */

#endif
