/*
 * The single blocks that are alive at the moments a report is about: the peak of each host's heap, and of each device
 * the last failure, else its peak. A second pass collects them, since only a first one can say when that is.
 *
 *   struct snapshot *m = snapshot_new(reader, model_of_the_first_pass);
 *   ... model_query.on_event = snapshot_event, .on_change = snapshot_change, .arg = m; model_run() again ...
 *   snapshot_each(m, ...) with the second pass's model; snapshot_free(m);
 *
 * Memory: the live set. Blocks of the heap below MOMENT_LEAST_HEAP are left out: they are millions, and sites say
 * enough.
 */
#ifndef MT_DIAGNOSIS_SNAPSHOT_H
#define MT_DIAGNOSIS_SNAPSHOT_H

#include "analyzer/model/model.h"

enum { MOMENT_LEAST_HEAP = 4096 };

#define SNAPSHOT_NO_THREAD UINT32_MAX

struct snapshot;

/* One block that was alive then. */
struct snapshot_block {
	const struct process *process;
	enum model_kind kind; /* heap; device and pool */
	uint32_t device;      /* MODEL_NO_DEVICE: the heap */
	uint32_t site;        /* index in the process's sites; UINT32_MAX = unknown */
	uint64_t addr, size, ns;
	uint64_t order;    /* of allocation, over all blocks */
	uint32_t thread;   /* index of the one that allocated it; SNAPSHOT_NO_THREAD = one behind 65534 */
	const char *label; /* what the program called it; NULL = nothing */
};

/* `m` is the first pass's and is only looked at here. NULL when there is no memory. */
struct snapshot *snapshot_new(const struct reader *r, const struct model *m);
void snapshot_free(struct snapshot *);

/* When the moment of that device was. */
uint64_t snapshot_device_ns(const struct snapshot *, uint32_t device);

void snapshot_event(struct snapshot *, const struct process *p, const struct mt_event *slot);
void snapshot_change(struct snapshot *, const struct model_change *c);

/* The error that collecting met, once: 0 or -MT_EMEMORY. */
int snapshot_error(const struct snapshot *);

/* All blocks of all moments, in no order; the callback returns 0 to go on. */
int snapshot_each(const struct snapshot *, int (*f)(void *arg, const struct snapshot_block *), void *arg);

#endif
