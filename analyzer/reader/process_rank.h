/* Which part of a distributed job a process was, as its launcher's variables say. */
#ifndef MT_READER_PROCESS_RANK_H
#define MT_READER_PROCESS_RANK_H

#include "analyzer/reader/image.h"

/* Fills in the ranks and tags of struct process from its environment, and its name for screens. What it has once said
 * stays where it is. Returns 0, or -MT_EMEMORY. */
int process_rank_load(struct image *im);

#endif
