/* The figures of memtrace frag: gathered by cmd_frag.c, printed by frag_screen.c and frag_json.c. */
#ifndef MT_REPORT_SCREEN_FRAG_H
#define MT_REPORT_SCREEN_FRAG_H

#include "analyzer/diagnosis/pins.h"
#include "analyzer/model/heap_layout.h"
#include "analyzer/model/pool_layout.h"
#include "analyzer/model/selection/selection.h"

/* A device at one moment. */
struct frag_device {
	const struct model_device *device;
	const char *moment;            /* "oom", "peak", "end" or "time" */
	unsigned number;               /* of the out-of-memory failure on its device, from 1; 0 = it is no failure */
	const struct model_oom *oom;   /* that failure; NULL = none */
	const struct process *process; /* whose segments are laid out; NULL = those of all processes */
	uint64_t ns;
	struct pool_layout *layout;
	bool own;         /* `layout` is freed with this */
	struct pin *pins; /* blocks that keep segments from going back, pin_count of them */
	size_t pin_count;
};

/* The heap of a process, when it ended or at the time that was asked for. */
struct frag_heap {
	const struct model_process *process;
	struct arenas arenas;
	uint64_t resident; /* bytes of anonymous pages, as sampled; or MODEL_UNKNOWN */
};

struct frag {
	struct selection *selection;
	struct frag_device *devices;
	size_t device_count, device_room;
	struct frag_heap *heaps;
	size_t heap_count, heap_room;
	bool picked; /* heaps of which only picked blocks were recorded are left out */
};

void frag_print(const struct frag *f);
int frag_print_json(const struct frag *f);

/* Fragmentation, as a part of what is reserved: 1 - allocated / reserved, or 0. */
static inline double frag_share(uint64_t allocated, uint64_t reserved)
{
	return reserved > allocated ? 1.0 - (double)allocated / (double)reserved : 0;
}

/* Bytes that the pool asked the driver for: a segment, or all pages that an expandable segment needed. */
static inline uint64_t frag_asked(const struct model_oom *o)
{
	return o->block_bytes > o->requested_bytes ? o->block_bytes : o->requested_bytes;
}

/* Bytes of the largest free range that could have served the request, or, without a failure, of the largest there
 * is. */
static inline uint64_t frag_hole(const struct frag_device *d)
{
	return d->oom && d->oom->usable.largest_hole != MODEL_UNKNOWN ? d->oom->usable.largest_hole
								      : d->layout->largest_hole;
}

/* Bytes of segments without a used block, which can go back to the driver; those of private pools (CUDA graphs)
 * can't. */
static inline uint64_t frag_idle(const struct frag_device *d)
{
	return d->layout->idle - pool_layout_pools(d->layout, POOL_LAYOUT_PRIVATE).idle;
}

/* Whether the request would fit into the device's free memory if these segments went back first. */
static inline bool frag_fits(const struct frag_device *d)
{
	uint64_t asked = d->oom ? frag_asked(d->oom) : 0;
	return d->oom && d->oom->at.free_bytes != MODEL_UNKNOWN && d->oom->at.free_bytes + frag_idle(d) >= asked;
}

#endif
