/* memtrace dump --samples. */
#ifndef MT_REPORT_DUMP_SAMPLES_H
#define MT_REPORT_DUMP_SAMPLES_H

#include "analyzer/reader/reader.h"

/* Prints them; a line or, with `json`, an object each. */
int dump_samples(struct reader *r, bool json);

#endif
