/*
 * What lost events leave open: a block that nobody saw being freed is alive, or its free was lost.
 *
 * A lost event freed one block at most, and none that was allocated behind it. So of the blocks that are alive by the
 * record at most as many are not as events were lost since they were allocated; which ones, nobody knows: the largest
 * are taken. Two gaps are told apart, the latest that the stream has told (MT_LOST) and what it has not: a ring that
 * lost events until it ended, slots that can't be read. Blocks whose allocation was lost are in no figure.
 *
 * What lies where something newer lies was freed for certain (loss_doubt_prove()), and is no longer alive then.
 */
#ifndef MT_MODEL_LOSS_DOUBT_H
#define MT_MODEL_LOSS_DOUBT_H

#include "analyzer/model/process_memory.h"

enum { LOSS_DOUBT_LEAST = 256, LOSS_DOUBT_PART = 8 };

/* An own block of the heap was found to be freed unseen. */
void loss_doubt_missed(struct process_memory *a, uint32_t site, uint64_t bytes);

/* Ends heap blocks that newer ones lie in, where events were lost. Before the process leaves its host's sums. 0 or
 * -MT_E*. */
int loss_doubt_prove(struct process_memory *a, uint64_t ns);

/* The same behind a gap, for each allocation: it comes about as often as keeps its costs low. */
static inline int loss_doubt_allocated(struct process_memory *a, uint64_t ns)
{
	return a->lost && ++a->unproven > LOSS_DOUBT_LEAST + a->heap.count / LOSS_DOUBT_PART ? loss_doubt_prove(a, ns)
											     : 0;
}

/* Behind site_table_settle(): fills the sites' doubts and those of the kinds. 0 or -MT_E*. */
int loss_doubt_look(struct process_memory *a);

#endif
