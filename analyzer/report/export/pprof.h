/*
 * A profile as profile.proto has it (github.com/google/pprof, proto/profile.proto), compressed by gzip: what Go's
 * pprof, speedscope, Pyroscope, Parca and Perfetto read.
 *
 *   struct pprof *p = pprof_new(stacks);
 *   int e = pprof_add(p, &(struct pprof_stack){ ... });                as often as there are stacks
 *   e = pprof_write(p, &(struct pprof_head){ ... });                   prints it, where print_into() says
 *   pprof_free(p);
 */
#ifndef MT_REPORT_EXPORT_PPROF_H
#define MT_REPORT_EXPORT_PPROF_H

#include "analyzer/symbols/stacks.h"

enum pprof_value { ALLOCATED_BLOCKS, ALLOCATED_BYTES, LIVE_BLOCKS, LIVE_BYTES, PPROF_VALUES };

/* Frames are borrowed until pprof_free(). */
struct pprof_stack {
	const char *memory;                   /* "heap", "cuda:0 pool": the outermost frame; NULL = none */
	const char *kind, *device, *category; /* labels; `kind` NULL = there are none */
	const struct process *process;
	const struct frame *const *frames; /* innermost first */
	size_t count;
	int64_t values[PPROF_VALUES];
};

enum { PPROF_COMMENTS = 4 };

struct pprof_head {
	enum pprof_value first, last; /* the values that it has; the last is the one to show */
	uint64_t real_ns, duration_ns;
	uint64_t period; /* mean bytes between sampled stacks; 1: all were taken */
	const char *comments[PPROF_COMMENTS];
};

struct pprof;

/* NULL: no memory. */
struct pprof *pprof_new(struct stacks *stacks);
void pprof_free(struct pprof *p); /* NULL is fine */

int pprof_add(struct pprof *p, const struct pprof_stack *s);
int pprof_write(struct pprof *p, const struct pprof_head *head);

/* The mean bytes between sampled stacks, the largest where processes differ; 1 where all stacks were taken. */
uint64_t pprof_period(const struct reader *r);

#endif
