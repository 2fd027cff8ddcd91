/* memtrace timeline: live bytes over time of each process and of all, and what was sampled, as a chart, CSV or JSON. */
#ifndef MT_REPORT_TIMELINE_TIMELINE_SCREEN_H
#define MT_REPORT_TIMELINE_TIMELINE_SCREEN_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/timeline/sample_series.h"
#include "analyzer/timeline/timeline.h"

/* The plot, and below it what fits of the chart. */
void timeline_print(struct selection *sel, const struct timeline *timeline, struct all_sample_series *sampled);

/* The chart alone, with all rows. */
void timeline_print_chart(struct selection *sel, struct all_sample_series *sampled);

void timeline_print_csv(struct selection *sel, struct all_sample_series *sampled);

/* 0 or -MT_E*. */
int timeline_print_json(struct selection *sel, struct all_sample_series *sampled);

#endif
