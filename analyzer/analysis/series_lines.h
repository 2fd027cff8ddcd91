/* Everything that is known over time, as lines of a chart: of each kind of memory the sum over processes, then each
 * process; the same of each layer of each device; then samples of the system. */
#ifndef MT_ANALYSIS_SERIES_LINES_H
#define MT_ANALYSIS_SERIES_LINES_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/timeline/sample_series.h"

struct series_line {
	const struct process *process; /* NULL = the sum over the processes of `host` */
	const struct reader_host *host;
	const char *what;                  /* "heap" ... "device", "pool", "reserved" */
	const struct model_device *device; /* or NULL */
	const struct model_series *series;
};

/* Calls f for each line that the selection asks for. `sampled` may be NULL: no samples. */
void series_lines_each(const struct selection *sel, const struct all_sample_series *sampled,
		       void (*f)(void *arg, const struct series_line *), void *arg);

/* When bucket `i` of a series begins, in seconds since the trace's start. */
double series_line_start(const struct selection *sel, const struct model_series *s, uint32_t i);

#endif
