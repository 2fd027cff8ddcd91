/*
 * Pools of frameworks that lie on the host's heap (TensorFlow's). Their blocks are blocks of the heap, each with its
 * owner. What such a pool asked of malloc, its segments, is none: so nothing is counted twice, and what the pool keeps
 * free is no program's. Segments are known by their address alone, and end with the free of it.
 */
#ifndef MT_MODEL_HOST_POOLS_H
#define MT_MODEL_HOST_POOLS_H

#include "analyzer/model/process_memory.h"

/* The pool got [addr, addr + size). 0 or -MT_EMEMORY. */
int host_pool_grow(struct process_memory *memory, uint64_t addr, uint64_t size, uint64_t ns);

/* A segment begins at this address, which is freed: it ends. False: none does. */
bool host_pool_shrink(struct process_memory *memory, uint64_t addr);

/* A block begins to be live (delta 1) or ends (-1). */
void host_pool_move(struct process_memory *memory, uint64_t size, int64_t delta);

/* Figures begin now. */
void host_pool_restart(struct process_memory *memory, uint64_t ns);

#endif
