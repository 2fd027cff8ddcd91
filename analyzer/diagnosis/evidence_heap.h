/* Advice about malloc's settings, tried on the recorded calls before it is given. */
#ifndef MT_DIAGNOSIS_EVIDENCE_HEAP_H
#define MT_DIAGNOSIS_EVIDENCE_HEAP_H

#include "analyzer/diagnosis/diagnosis_data.h"

/* Fills x->evidence.host.heap with what settings of malloc would have done for that process. Starts a child for each,
 * which takes the memory that the heap had: only where allocators keep much, and where that is a matter of seconds and
 * of a part of what is free. 0 or -MT_E*; a heap that can't be replayed is no error. */
int evidence_replay_heap(struct diagnosis *diagnosis, const struct process *keeper);

#endif
