/* memtrace list: what is said of each trace of a list. */
#ifndef MT_REPORT_SCREEN_LIST_SCREEN_H
#define MT_REPORT_SCREEN_LIST_SCREEN_H

#include "analyzer/reader/trace_list.h"
#include "analyzer/util/options.h"

/* Looks into each trace that is shown, and prints them as a table or, with o->json, as JSON. `verdict`: also what went
 * wrong, for which a trace is read. 0 or -MT_E*. */
int list_print(const struct trace_list *of, const struct options *o, bool verdict);

#endif
