/* How the blocks of a framework's pool lie in its segments, at one moment. */
#ifndef MT_MODEL_POOL_LAYOUT_H
#define MT_MODEL_POOL_LAYOUT_H

#include "analyzer/model/model.h"

struct pool_layout_block {
	uint64_t addr, size, ns;
	uint32_t site; /* index in the process's sites */
	uint32_t thread;
};

/* One allocation of the driver's, or all that is mapped without a gap in one reserved range. */
struct pool_layout_segment {
	uint32_t process;
	bool expandable;
	bool noted; /* blocks were seen to lie in it, of: */
	uint64_t stream;
	uint8_t sizes; /* POOL_LAYOUT_SMALL, POOL_LAYOUT_LARGE */
	/* number of the graphs' private pool it belongs to in its process; 0 = the common pool */
	uint32_t private;
	bool withheld; /* a pool of the program's own has it */
	uint64_t addr, size;
	uint64_t used; /* bytes of its blocks */
	uint64_t hole; /* its largest stretch without a block */
	uint64_t idle; /* bytes of it that could go back: all, or the mapped pages without a block */
	uint64_t ns;   /* when it was allocated, or its first page */
	uint32_t site; /* index in the process's sites */
	uint32_t block_count;
	const struct pool_layout_block *blocks; /* by address; one that lies in two segments is in both, cut */
};

struct pool_layout {
	struct pool_layout_segment *segments; /* by process and address */
	size_t segment_count;
	struct pool_layout_block *blocks;
	size_t block_count;
	uint64_t reserved, allocated; /* allocated: of blocks in segments */
	uint64_t stray;               /* bytes of blocks that lie in no segment: its allocation was not seen */
	uint64_t largest_hole, idle;
	unsigned captures, private_pools; /* that have segments here */
	bool partly_seen;                 /* as model_share's: what is no block may be in use */
};

enum { POOL_LAYOUT_COMMON = 0, POOL_LAYOUT_PRIVATE = UINT32_MAX - 1 };

/* PyTorch's caching allocators keep requests of up to 1 MiB (kSmallSize of c10/cuda/CUDACachingAllocator.cpp, as of
 * 2.13) in segments of their own; segments in which both were seen are some other pool's, which doesn't. */
enum { POOL_LAYOUT_SMALL = 1, POOL_LAYOUT_LARGE = 2 };
static inline uint8_t pool_layout_sizes_of(uint64_t bytes)
{
	return bytes <= 1u << 20 ? POOL_LAYOUT_SMALL : POOL_LAYOUT_LARGE;
}

/* The sums of one pool, by its number, or of all private ones. */
struct model_pools pool_layout_pools(const struct pool_layout *l, uint32_t pool);

bool pool_layout_serves(const struct pool_layout_segment *s, const struct pool_request *r);

/* The sums of the segments that may serve the request. */
struct model_pools pool_layout_usable(const struct pool_layout *l, const struct pool_request *r);

/* Marks free segments that the pool neither used for a request that would have fitted into one of them, nor gave back
 * before it gave up: they are of a pool of the program's own, of which nothing else tells. Returns their bytes. */
uint64_t pool_layout_withhold(struct pool_layout *l, const struct pool_request *r);

/* What is live on the device now (after model_run(): at the end of the pass; ended processes need query.keep_blocks).
 * `process` is an id, or UINT32_MAX for all. 0 or -MT_EMEMORY. */
int pool_layout_take(struct pool_layout **out, const struct model *m, uint32_t device, uint32_t process);
void pool_layout_free(struct pool_layout *l);

#endif
