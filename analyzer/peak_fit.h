/* memtrace peak --fit SIZE: would it fit, and what must go for it to fit. */
#ifndef MT_PEAK_FIT_H
#define MT_PEAK_FIT_H

#include "analyzer/view.h"

/* Runs its own passes on a view that has not run yet, and prints. */
int peak_fit(struct view *v, uint64_t size);

#endif
