/*
 * Where freed memory of a process went: back to the kernel, or kept by its allocators. Between a moment when much was
 * live and a later one, live bytes (exact) fell by so much, and what is resident, private and anonymous (sampled) by so
 * much.
 *
 *   freed = to_kernel + kept + untouched          or less than to_kernel, where other memory was given back, too
 *
 * What was freed and neither left the process nor can be in it had never been touched. The error is what live bytes and
 * mappings changed between each moment and its sample, and what the kernel's counters may be off.
 */
#ifndef MT_TIMELINE_RECLAIMED_H
#define MT_TIMELINE_RECLAIMED_H

#include "analyzer/model/selection/selection.h"

struct reclaimed_span {
	uint64_t peak_ns, peak_bytes; /* of the heap */
	uint64_t end_ns, end_bytes;   /* end_ns UINT64_MAX: the last sample of the process, with what was live then */
};

struct reclaimed {
	uint64_t bytes;    /* of the heap, exact */
	int64_t to_kernel; /* < 0: there is more resident than before */
	uint64_t kept, untouched;
	uint64_t error; /* of to_kernel, in both directions; and so of the others */
	uint64_t peak_sample_ns, end_sample_ns;
};

/* False: too little was freed, or no samples are there to tell from. */
bool reclaimed_host(const struct selection *sel, const struct process *p, struct reclaimed_span span,
		    struct reclaimed *out);

/* Over the whole life of a process, from its heap's peak on. */
bool reclaimed_process(const struct selection *sel, const struct process *p, struct reclaimed *out);

#endif
