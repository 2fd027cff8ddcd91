/* memtrace holders --scan PID: copies what a running program's pointers may be in. */
#ifndef MT_ATTACH_COPY_H
#define MT_ATTACH_COPY_H

#include "analyzer/util/system/memory_copy.h"

#include <sys/types.h>

/* All threads of the program stand still for the time of one copy, and go on as if nothing had been. Copied is what may
 * be written to and is in memory; not the files of the trace in `session`, files of devices, and the stack of a thread
 * below its stack pointer. `clock`: enum mt_clock. 0, or an error that says why nothing was done; memory_copy_free() in
 * any case. */
int copy_memory(struct memory_copy *c, pid_t pid, const char *session, uint32_t clock);

#endif
