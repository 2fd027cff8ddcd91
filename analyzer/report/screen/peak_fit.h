/* memtrace peak --fit SIZE: whether the run would fit into SIZE, and else what has to go. */
#ifndef MT_REPORT_SCREEN_PEAK_FIT_H
#define MT_REPORT_SCREEN_PEAK_FIT_H

#include "analyzer/model/selection/selection.h"

/* Makes its own passes over the events, so `v` must be fresh, and prints. `size` in bytes. 0 or -MT_E*. */
int peak_fit(struct selection *sel, uint64_t size);

#endif
