/* memtrace peak: what is printed of the moments that it found. */
#ifndef MT_REPORT_SCREEN_PEAK_SCREEN_H
#define MT_REPORT_SCREEN_PEAK_SCREEN_H

#include "analyzer/analysis/held.h"

/* `seen`: the snapshots that --by holder looked at; empty without it. */
void peak_print(struct selection *sel, const struct moments *m, const struct held_seens *seen);

/* 0 or -MT_E*. */
int peak_print_json(struct selection *sel, const struct moments *m, const struct held_seens *seen);

#endif
