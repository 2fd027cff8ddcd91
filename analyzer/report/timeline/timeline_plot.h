/* A plot of memory over time for a terminal: of the device that failed, else of the one with the most memory, else of
 * the heap; with failures marked, and phases below. */
#ifndef MT_REPORT_TIMELINE_TIMELINE_PLOT_H
#define MT_REPORT_TIMELINE_TIMELINE_PLOT_H

#include "analyzer/timeline/timeline.h"

/* Prints it, output_width() columns wide. The plot has `height` lines; title, axis, phases and failures take up to 6
 * more. `timeline` may be NULL: then there are no phases. Returns how many lines were printed; 0 = there is nothing to
 * plot. */
unsigned timeline_plot(const struct selection *sel, const struct timeline *timeline, unsigned height);

#endif
