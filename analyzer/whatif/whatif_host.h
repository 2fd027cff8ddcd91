/* memtrace whatif --host: replays the heap of a process with another allocator. */
#ifndef MT_WHATIF_WHATIF_HOST_H
#define MT_WHATIF_WHATIF_HOST_H

#include "analyzer/model/selection/selection.h"

/* Replays and prints. `setting` is a text for heap_setting_parse(), or "all" for the usual ones. 0 or -MT_E*. */
int whatif_host(struct selection *sel, const char *setting);

#endif
