/* memtrace peak --fit SIZE: would it fit, and what must go for it to fit. */
#ifndef MT_REPORT_PEAK_FIT_H
#define MT_REPORT_PEAK_FIT_H

#include "analyzer/model/selection.h"

/* Runs its own passes on a view that has not run yet, and prints. */
int peak_fit(struct selection *v, uint64_t size);

#endif
