/* What threads have counted with MT_RECORD_SAMPLED, added up. */
#ifndef MT_UTIL_TALLIES_H
#define MT_UTIL_TALLIES_H

#include "format/format.h"

/* Adds those of PID-N.info, which has them while the process runs, to its head. */
static inline void tallies_add(struct mt_info *info, const struct mt_tally *tallies)
{
	for (unsigned i = 0; i < MT_TALLIES; i++) {
		info->heap_calls += tallies[i].calls;
		info->heap_bytes += tallies[i].bytes;
		info->heap_frees += tallies[i].frees;
	}
}

#endif
