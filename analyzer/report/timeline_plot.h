/* What matters most over time as a plot of some height: the device that failed, else the one with most, else the heap;
 * with phases below it and failures marked. For a terminal. */
#ifndef MT_REPORT_TIMELINE_PLOT_H
#define MT_REPORT_TIMELINE_PLOT_H

#include "analyzer/timeline/timeline.h"

/* Prints it in output_width() columns and `height` lines, and up to 6 for title, axis, phases and failures. `c` may be
 * NULL: without phases. Returns the lines; 0: there is nothing to plot. */
unsigned timeline_plot(const struct selection *v, const struct timeline *c, unsigned height);

#endif
