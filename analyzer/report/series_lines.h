/* All that is known over time as lines of a chart: of each kind of memory the sums over processes, then the processes;
 * of each device its layers likewise; what the system was seen to do. */
#ifndef MT_REPORT_SERIES_LINES_H
#define MT_REPORT_SERIES_LINES_H

#include "analyzer/model/selection.h"
#include "analyzer/timeline/sample_series.h"

struct series_line {
	const struct process *process; /* NULL = the sum over a host's processes */
	const struct reader_host *host;
	const char *what;                  /* "heap" ... "device", "pool", "reserved" */
	const struct model_device *device; /* or NULL */
	const struct model_series *series;
};

/* Calls f for each one that was asked for. `sampled` may be NULL. */
void series_lines_each(const struct selection *v, const struct all_sample_series *sampled,
		       void (*f)(void *arg, const struct series_line *), void *arg);

/* When a bucket of it begins, in seconds. */
double series_line_start(const struct selection *v, const struct model_series *s, uint32_t i);

#endif
