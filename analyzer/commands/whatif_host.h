/* memtrace whatif --host: a process's heap again with another allocator. */
#ifndef MT_COMMANDS_WHATIF_HOST_H
#define MT_COMMANDS_WHATIF_HOST_H

#include "analyzer/model/selection.h"

/* `setting` as heap_setting_parse() takes it, or "all": the usual ones. Prints; 0 or -MT_E*. */
int whatif_host(struct selection *v, const char *setting);

#endif
