/* Between host_memory.c, which picks the ledger's moment, host_ledger.c, which makes the ledger of it, and
 * host_untouched.c. Nobody else includes this. */
#ifndef MT_DIAGNOSIS_LEDGER_HOST_MEMORY_INTERNAL_H
#define MT_DIAGNOSIS_LEDGER_HOST_MEMORY_INTERNAL_H

#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/util/minmax.h"

#define SECOND 1000000000ull /* in nanoseconds */

/* Of a cgroup: the most of what it had that couldn't give way, all but pages of files, and those then. ns 0 = never
 * seen Whether the kernel killed because of its limit: between two looks it was hit, too. */
struct worst {
	uint64_t bytes, ns, file;
	uint64_t hits, kills; /* counted up to the latest look */
	bool looked, killed;
};

struct host_memory {
	struct reader *reader;
	struct samples *samples;
	const struct reader_host *host;
	struct sample_state *states; /* of subjects, at the ledger's moment */
	struct host_process *processes;
	struct model_stretch *stretches; /* the large mappings that processes had then ... */
	unsigned *stretch_subjects;      /* ... by subject */
	size_t stretch_count;
	struct worst *worst; /* by subject */
	uint64_t ns;
	struct host_facts facts;
	struct host_ledger ledger;
	struct host_other *others;
	size_t other_count, other_room;
	struct host_moment *moments;
	size_t moment_count, moment_room;
	unsigned moment_each, moment_more; /* so many samples for each of them; in the last one */
};

static inline uint64_t known_or(const struct sample_state *x, unsigned field, uint64_t otherwise)
{
	return x->known >> field & 1 ? x->value[field] : otherwise;
}

/* Which stretches of address space the model is to look at, from `states`. 0 or -MT_EMEMORY. */
int host_memory_make_stretches(struct host_memory *s);

/* What of a process's live memory was never touched, by its large mappings: live bytes and anon of `out` are set. */
int host_memory_set_untouched(const struct host_memory *s, const struct model *m, const struct sample_subject *process,
			      struct host_process *out);

#endif
