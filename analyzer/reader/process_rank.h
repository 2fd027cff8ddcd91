/* Which part of a distributed job a process was, as its launcher's variables say. */
#ifndef MT_READER_PROCESS_RANK_H
#define MT_READER_PROCESS_RANK_H

#include "analyzer/reader/image.h"

/* Fills in ranks, job, tags and `name` of struct process from its recorded environment. Strings that were filled in
 * before stay valid. Returns 0 or -MT_EMEMORY. */
int process_rank_load(struct image *im);

#endif
