/*
 * What lost events leave open: a block that nobody saw being freed is alive, or its free was lost.
 *
 * A lost event freed one block at most, and none that was allocated behind it. So of the blocks that are alive by the
 * record at most as many are not as events were lost since they were allocated; which ones, nobody knows: the largest
 * are taken. Two gaps are told apart, the latest that the stream has told (MT_LOST) and what it has not: a ring that
 * lost events until it ended, slots that can't be read. Blocks whose allocation was lost are in no figure.
 *
 * What lies where something newer lies was freed for certain (process_memory_prove()), and is no longer alive then.
 */
#ifndef MT_MODEL_LOSS_DOUBT_H
#define MT_MODEL_LOSS_DOUBT_H

#include "analyzer/model/process_memory.h"

/* Behind site_table_settle(): fills the sites' doubts and those of the kinds. 0 or -MT_E*. */
int loss_doubt_fill(struct process_memory *memory);

#endif
