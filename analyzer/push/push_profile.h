/* One kind of memory of one process on one device, as a profile (report/export/pprof.h). */
#ifndef MT_PUSH_PUSH_PROFILE_H
#define MT_PUSH_PUSH_PROFILE_H

#include "analyzer/report/export/pprof.h"
#include "analyzer/util/event_kinds.h"

/* A stack in a process, as the model's sites are (model/model.h). */
struct push_site {
	uint32_t node, node2, device;
	enum model_kind kind;
	bool known;
	double weight; /* for how many a sampled block stands; 0: its stack is not told */
	uint64_t live_bytes, live_blocks;
	uint64_t made_bytes, made_blocks; /* since the last profile */
};

struct push_profile {
	struct stacks *stacks;
	const struct process *process;
	const struct push_site *sites;
	size_t count;
	enum model_kind kind;
	uint32_t device;
	bool made; /* what was allocated, instead of what is alive */
	struct pprof_head head;
	uint64_t most_samples, most_bytes;
};

/* The largest stacks, and all others as one sample. *bytes is NULL if there is nothing to tell, else to be freed. 0 or
 * an error. */
int push_profile_make(const struct push_profile *p, char **bytes, size_t *count);

#endif
