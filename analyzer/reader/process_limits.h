/* Room under the kernel's limits for a single process: on address space (RLIMIT_AS) and private memory (RLIMIT_DATA).
 */
#ifndef MT_READER_PROCESS_LIMITS_H
#define MT_READER_PROCESS_LIMITS_H

#include "analyzer/reader/samples.h"

/* Bytes that were left under the tighter limit at the last sample before `ns`; without samples, at the request that was
 * refused. INFINITY = the process has no limits, or nobody looked. *at_ns is set to the time of the sample, if there is
 * one. */
double process_limits_room(const struct samples *s, const struct process *p, uint64_t ns, uint64_t *at_ns);

#endif
