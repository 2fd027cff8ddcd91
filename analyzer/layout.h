/* How the blocks of a framework's pool lie in its segments, at one moment. */
#ifndef MT_LAYOUT_H
#define MT_LAYOUT_H

#include "analyzer/model.h"

struct layout_block {
	uint64_t addr, size, ns;
	uint32_t site;            /* index in the process's sites */
	uint32_t thread;
};

/* One allocation of the driver's, or all that is mapped without a gap in one reserved range. */
struct layout_segment {
	uint32_t process;
	bool expandable;
	bool noted;               /* blocks were seen to lie in it, of: */
	uint64_t stream;
	uint8_t sizes;            /* LAYOUT_SMALL, LAYOUT_LARGE */
	uint32_t private;         /* number of the graphs' private pool it belongs to in its process; 0 = the common pool */
	uint64_t addr, size;
	uint64_t used;            /* bytes of its blocks */
	uint64_t hole;            /* its largest stretch without a block */
	uint64_t idle;            /* bytes of it that could go back: all, or the mapped pages without a block */
	uint64_t ns;              /* when it was allocated, or its first page */
	uint32_t site;            /* index in the process's sites */
	uint32_t block_count;
	const struct layout_block *blocks; /* by address; one that lies in two segments is in both, cut */
};

struct layout {
	struct layout_segment *segments; /* by process and address */
	size_t segment_count;
	struct layout_block *blocks;
	size_t block_count;
	uint64_t reserved, allocated;    /* allocated: of blocks in segments */
	uint64_t stray;                  /* bytes of blocks that lie in no segment: its allocation was not seen */
	uint64_t largest_hole, idle;
	unsigned captures, private_pools; /* that have segments here */
};

enum { LAYOUT_COMMON = 0, LAYOUT_PRIVATE = UINT32_MAX - 1 };

/* PyTorch's caching allocators keep requests of up to 1 MiB (kSmallSize of c10/cuda/CUDACachingAllocator.cpp, as of 2.13) in segments
 * of their own; segments in which both were seen are some other pool's, which doesn't. */
enum { LAYOUT_SMALL = 1, LAYOUT_LARGE = 2 };
static inline uint8_t layout_sizes_of(uint64_t bytes) { return bytes <= 1u << 20 ? LAYOUT_SMALL : LAYOUT_LARGE; }

/* The sums of one pool, by its number, or of all private ones. */
struct model_pools layout_pools(const struct layout *l, uint32_t pool);

bool layout_serves(const struct layout_segment *s, const struct pool_request *r);

/* The sums of the segments that may serve the request. */
struct model_pools layout_usable(const struct layout *l, const struct pool_request *r);

/* What is live on the device now (after model_run(): at the end of the pass; ended processes need query.keep_blocks).
 * `process` is an id, or UINT32_MAX for all. 0 or -MT_EMEMORY. */
int layout_take(struct layout **out, const struct model *m, uint32_t device, uint32_t process);
void layout_free(struct layout *l);

#endif
