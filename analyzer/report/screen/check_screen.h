/* memtrace check: reads all of a trace, stepping over damage, and says what it finds. */
#ifndef MT_REPORT_SCREEN_CHECK_SCREEN_H
#define MT_REPORT_SCREEN_CHECK_SCREEN_H

#include "analyzer/reader/reader.h"
#include "analyzer/util/options.h"

/* Prints findings as they come: a line each or, with o->json, one object of all. 0 = the trace is complete, 1 = it is
 * not, or -MT_E*. */
int check_print(struct reader *r, const struct options *o);

#endif
