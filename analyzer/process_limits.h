/* What the kernel's limits for a single process leave it: address space (RLIMIT_AS) and private memory (RLIMIT_DATA). */
#ifndef MT_PROCESS_LIMITS_H
#define MT_PROCESS_LIMITS_H

#include "analyzer/samples.h"

/* In bytes, as of the sample before that moment, or of the refusal where there is none; INFINITY = it has no limits, or nobody looked. */
double process_limits_room(const struct samples *s, const struct process *p, uint64_t ns);

#endif
