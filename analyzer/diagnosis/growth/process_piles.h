/*
 * Processes that pile up: one process starts more of them, in batches (a pool each epoch) or one by one, and they do
 * not end. Told from a pool that is started once, or whose workers are replaced: at the moment with the most most of
 * all that were ever started are alive, they came in at least three batches at like distances, and the next one is not
 * long overdue. A few batches that still work are no pile: a pool whose workers start slowly looks the same.
 */
#ifndef MT_DIAGNOSIS_GROWTH_PROCESS_PILES_H
#define MT_DIAGNOSIS_GROWTH_PROCESS_PILES_H

#include "analyzer/model/model.h"
#include "analyzer/reader/samples.h"

struct pile {
	const struct process *starter, *one; /* who started them, and the latest of them */
	uint32_t node, node2;                /* the starter's stack then, of `forked`; 0 = not known */
	const struct process *forked;        /* the first image of `one`: it was forked there */
	unsigned count, batches;
	/* of their own, at the most of each: heaps and anonymous mappings, as far as they were resident */
	uint64_t bytes;
	double per_second; /* so fast they come */
};

/* The largest pile by bytes, if it is worth a word; false = none. `samples` may be NULL. */
bool process_piles_find(struct pile *out, const struct reader *r, const struct model *m, const struct samples *samples);

#endif
