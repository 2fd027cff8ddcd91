/* memtrace dump --samples. */
#ifndef MT_REPORT_DUMP_DUMP_SAMPLES_H
#define MT_REPORT_DUMP_DUMP_SAMPLES_H

#include "analyzer/reader/reader.h"

/* Prints each sample of the trace as a line or, with `json`, as an object. 0 or -MT_E*. */
int dump_samples(struct reader *r, bool json);

#endif
