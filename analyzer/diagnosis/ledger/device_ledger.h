/*
 * The ledger of a device at one moment: a table in which every byte has a row:
 *
 *   pool_allocated + pool_free + other_own + other_processes + free + unexplained = total
 *
 * over all traced processes. A figure that nobody measured is MODEL_UNKNOWN, and then `unexplained` means nothing.
 * Where the driver's free bytes are known, but not which other processes there are, other_processes is unknown and
 * counts as 0: what others hold is part of `unexplained`.
 */
#ifndef MT_DIAGNOSIS_LEDGER_DEVICE_LEDGER_H
#define MT_DIAGNOSIS_LEDGER_DEVICE_LEDGER_H

#include "analyzer/model/model.h"
#include "analyzer/reader/samples.h"
#include "analyzer/symbols/stacks.h"

struct device_ledger_process {
	const struct process *process;        /* NULL: not traced */
	const struct sample_subject *subject; /* of an untraced one */
	uint32_t pid;
	const char *name; /* "?" = unknown */
	uint64_t bytes;
	uint64_t pool_allocated, pool_free, other; /* of a traced one; other: with its context */
	bool partly_seen;                          /* pool_free may be in use: model_share */
	uint64_t graphs_free;                      /* of pool_free: in private pools of CUDA graphs */
	uint64_t since_ns;
	bool before;  /* it was there when the recording began */
	bool guessed; /* the driver's pid is of another namespace, and this process was found by how much it holds */
};

/* Memory of the traced processes outside segments. */
struct device_ledger_part {
	const struct process *process;
	/* "NCCL", "cuBLAS", "context", a library, or NULL: the program's own calls. Static or the stacks' */
	const char *name;
	uint64_t bytes;
	bool context; /* what the driver says beyond what was allocated */
};

struct device_ledger {
	const struct model_device *device;
	const struct model_moment *at;
	uint64_t ns;
	uint64_t total, free; /* MODEL_UNKNOWN */
	uint64_t pool_allocated, pool_reserved, pool_free;
	uint64_t graphs_reserved, graphs_allocated; /* of it: private pools of CUDA graphs */
	uint64_t other_own;
	uint64_t unmapped;        /* of other_own: physical memory that is mapped nowhere */
	uint64_t other_processes; /* untraced ones; MODEL_UNKNOWN */
	bool explained;           /* `unexplained` means something */
	int64_t unexplained;
	struct device_ledger_process *processes; /* largest first */
	unsigned process_count;
	struct device_ledger_part *parts; /* largest first */
	unsigned part_count;
	bool by_use; /* nothing lists the processes: others have what was in use before the first traced one */
	bool then;   /* no sample that was taken later is used */
	struct model_moment own; /* of device_ledger_make_then() */
};

/* Sum of the rows that are known: pool, other_own, other_processes. */
uint64_t device_ledger_known(const struct device_ledger *l);

/* device_ledger_samples.c: what the driver's own list of processes adds: contexts of traced ones, and who else is
 * there. */
int device_ledger_take_samples(struct device_ledger *l, const struct model *m, const struct samples *samples);
/* Live bytes of a series in the stretch around `ns`; false if they changed. */
bool device_ledger_still_at(const struct model *m, const struct model_series *s, uint64_t ns, uint64_t *bytes);
/* A sample is about that device, or a process on it. */
bool device_ledger_is_of(const struct model_device *d, const struct sample_subject *s);
/* What the driver charges a process beyond its own memory; MODEL_UNKNOWN if that can be no context. */
uint64_t device_ledger_context(uint64_t charged, uint64_t own);
struct device_ledger_process *device_ledger_add_process(struct device_ledger *l, const struct process *p, uint32_t pid,
							const char *name);
int device_ledger_add_part(struct device_ledger *l, const struct process *p, const char *name, uint64_t bytes,
			   bool context);

/* At an OOM's moment, or the device's peak. `samples` may be NULL. 0 or an error; device_ledger_fini() either way. */
int device_ledger_make(struct device_ledger *l, const struct model *m, const struct reader *r,
		       const struct samples *samples, struct stacks *stacks, const struct model_device *d,
		       const struct model_moment *at);
/* As it could be known at a time in the middle of the run: the highest in the stretch of the timelines that ended last,
 * and no sample of later. */
int device_ledger_make_then(struct device_ledger *l, const struct model *m, const struct reader *r,
			    const struct samples *samples, struct stacks *stacks, const struct model_device *d,
			    uint64_t ns);
void device_ledger_fini(struct device_ledger *l);

/* "NCCL" for the path of its library; NULL for one that has no such name. */
const char *device_ledger_library(const char *path);

/* The moment the report shows: the device's last OOM, else its peak. *oom (unless NULL) is that one, or NULL. */
const struct model_moment *device_ledger_moment(const struct model_device *d, const struct model_oom **oom);

#endif
