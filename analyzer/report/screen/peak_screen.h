/* memtrace peak: what is printed of the moments that it found. */
#ifndef MT_REPORT_SCREEN_PEAK_SCREEN_H
#define MT_REPORT_SCREEN_PEAK_SCREEN_H

#include "analyzer/model/selection/moment.h"

void peak_print(struct selection *sel, const struct moment *moments, int count);

/* 0 or -MT_E*. */
int peak_print_json(struct selection *sel, const struct moment *moments, size_t count);

#endif
