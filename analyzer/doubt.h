/*
 * What lost events leave open: a block that nobody saw being freed is alive, or its free was lost.
 *
 * A lost event freed one block at most, and none that was allocated behind it. So of the blocks that are alive by the record at most as
 * many are not as events were lost since they were allocated; which ones, nobody knows: the largest are taken. Two gaps are told apart,
 * the latest that the stream has told (MT_LOST) and what it has not: a ring that lost events until it ended, slots that can't be read.
 * Blocks whose allocation was lost are in no figure.
 *
 * What lies where something newer lies was freed for certain (doubt_prove()), and is no longer alive then.
 */
#ifndef MT_ANALYZER_DOUBT_H
#define MT_ANALYZER_DOUBT_H

#include "analyzer/account.h"

enum { DOUBT_LEAST = 256, DOUBT_PART = 8 };

/* An own block of the heap was found to be freed unseen. */
void doubt_missed(struct account *a, uint32_t site, uint64_t bytes);

/* Ends heap blocks that newer ones lie in, where events were lost. Before the process leaves its host's sums. 0 or -MT_E*. */
int doubt_prove(struct account *a, uint64_t ns);

/* The same behind a gap, for each allocation: it comes about as often as keeps its costs low. */
static inline int doubt_allocated(struct account *a, uint64_t ns)
{
	return a->lost && ++a->unproven > DOUBT_LEAST + a->heap.count / DOUBT_PART ? doubt_prove(a, ns) : 0;
}

/* Behind tally_settle_sites(): fills the sites' doubts and those of the kinds. 0 or -MT_E*. */
int doubt_look(struct account *a);

#endif
