/* What the kernel's limits for a single process leave it: address space (RLIMIT_AS) and private memory (RLIMIT_DATA).
 * */
#ifndef MT_READER_PROCESS_LIMITS_H
#define MT_READER_PROCESS_LIMITS_H

#include "analyzer/reader/samples.h"

/* In bytes, as of the sample before that moment, or of the refusal where there is none; INFINITY = it has no limits, or
 * nobody looked. *at_ns is of the sample; left as it is where there is none. */
double process_limits_room(const struct samples *s, const struct process *p, uint64_t ns, uint64_t *at_ns);

#endif
