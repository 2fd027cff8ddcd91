/*
 * A model of PyTorch's caching allocator for CUDA devices, and of torch_npu's for Ascend: each request gets the block
 * that the allocator would have given it, and the driver is asked for what the allocator would have asked for. One pool
 * is that of one device in one process.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 and later, backend native:
 * - A request is rounded up to 512 bytes, or to a fraction of a power of two (roundup_power2_divisions).
 * - Small requests, of up to 1 MiB, come from segments of 2 MiB; large ones of less than 10 MiB from segments of 20
 *   MiB; others from a segment of their own size, rounded up to 2 MiB. Small and large requests, streams, and pools of
 *   CUDA graphs never share a segment.
 * - The smallest free block that is large enough serves; of several such blocks that of the oldest segment (since
 *   PyTorch 2.9 or 2.10) or, before, the one at the lowest address. The rest of it is split off if it has 512 bytes or
 *   more (small requests, expandable segments) or more than 1 MiB (all others).
 * - A freed block is merged with its free neighbours.
 * - If the driver refuses, first oversize blocks of the cache (max_split_size) go back to it, then all segments without
 *   a used block.
 * - An expandable segment is a range of addresses of 9/8 of the device's size. Pages of 2 or 20 MiB are mapped into it
 *   as they are needed.
 *
 * A block that another stream still uses when it is freed (record_stream) is free at once here, unless it is held.
 */
#ifndef MT_REPLAY_POOL_CUDA_POOL_H
#define MT_REPLAY_POOL_CUDA_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { ROUNDUP_INTERVALS = 16 };

/* As PYTORCH_CUDA_ALLOC_CONF and set_per_process_memory_fraction() set them. CUDA_POOL_DEFAULTS where nobody did. */
struct cuda_pool_settings {
	bool expandable;
	bool huge_pages; /* large requests come from segments, or pages, of whole GiB (torch_npu) */
	bool old_lists;  /* in roundup_power2_divisions ">" is also for the last size named, as before PyTorch 2.9 */
	/* of free blocks of one size that of the oldest segment serves, else the one at the lowest address */
	bool oldest_first;
	/* blocks of this size and more are not split; UINT64_MAX = all are */
	uint64_t max_split_bytes;
	uint64_t most_rounding; /* by how many bytes such a block may be larger than its request */
	uint64_t large_segment; /* bytes of a segment for large requests, but for those with one of their own */
	uint64_t large_page;    /* bytes of a page of an expandable segment for large requests; 0 = as large_segment */
	uint64_t aligned;       /* alignment of blocks of 2 MiB and more in expandable segments, in bytes; 0 = none */
	/* roundup_power2_divisions: of each power of two from 1 MiB to 32 GiB, the last also of all above; 0, 1 =
	 * none */
	uint32_t divisions[ROUNDUP_INTERVALS];
	double gc_threshold;    /* part of allowed_bytes above which the cache is collected; 0 = never. Needs a limit */
	uint64_t allowed_bytes; /* the pool's own limit; UINT64_MAX = none */
};

#define CUDA_POOL_DEFAULTS \
	((struct cuda_pool_settings){ .oldest_first = true, \
				      .max_split_bytes = UINT64_MAX, \
				      .most_rounding = 20ull << 20, \
				      .large_segment = 20ull << 20, \
				      .allowed_bytes = UINT64_MAX })

/* torch_npu's allocator is a copy that has changed since (torch_npu/csrc/core/npu/NPUCachingAllocator.cpp). It also
 * adds 32 bytes to each request; here requests have them already. */
#define NPU_POOL_DEFAULTS \
	((struct cuda_pool_settings){ .max_split_bytes = UINT64_MAX, \
				      .most_rounding = 20ull << 20, \
				      .large_segment = 20ull << 20, \
				      .aligned = 16384, \
				      .allowed_bytes = UINT64_MAX })

/* The driver below the pool. */
struct cuda_pool_driver {
	void *arg;
	/* Gives memory at address `at` of a reserved range, or anywhere (0). Returns its address; 0 = refused. */
	uint64_t (*take)(void *arg, uint64_t at, uint64_t bytes);
	/* Gives a range of addresses, without memory, for an expandable segment. */
	uint64_t (*reserve)(void *arg, uint64_t bytes);
	void (*give_back)(void *arg, uint64_t addr, uint64_t bytes);
	uint64_t device_bytes;
};

struct cuda_pool_request {
	uint64_t bytes;
	uint64_t stream;
	uint32_t capture; /* the graph capture whose private pool is meant; 0 = the common pool */
	bool capturing;   /* a graph is being captured, so segments may not go back to the driver */
	bool rounded;     /* `bytes` are those of the block and not rounded again */
};

/* Bytes now, and their peaks; then counts. */
struct cuda_pool_figures {
	uint64_t reserved, most_reserved;    /* segments */
	uint64_t used, most_used;            /* blocks, with what rounding and not splitting adds */
	uint64_t requested, most_requested;  /* blocks, as asked for */
	uint64_t requests, refused, retries; /* retries: all of the cache went back before the driver was asked again */
};

struct cuda_pool;
struct pool_block;

/* NULL = no memory. Settings are copied; the driver is borrowed. */
struct cuda_pool *cuda_pool_new(const struct cuda_pool_settings *settings, const struct cuda_pool_driver *driver);
void cuda_pool_free(struct cuda_pool *p);

/* Changes the settings from now on, as torch.cuda.memory._set_allocator_settings() does. */
void cuda_pool_set(struct cuda_pool *p, const struct cuda_pool_settings *settings);
const struct cuda_pool_settings *cuda_pool_settings(const struct cuda_pool *p);

/* 0 with *block, NULL if the request is refused; or -MT_EMEMORY. */
int cuda_pool_take(struct cuda_pool *p, const struct cuda_pool_request *request, struct pool_block **block);

/* Whether a free block would serve the request, so that the driver is not asked. */
bool cuda_pool_has(const struct cuda_pool *p, const struct cuda_pool_request *request);

/* The block that a request would get; address 0 = the driver would be asked first. */
struct cuda_pool_offer {
	uint64_t addr, bytes;
};
struct cuda_pool_offer cuda_pool_offer(const struct cuda_pool *p, const struct cuda_pool_request *request);

/* Whether the pool's own limit keeps it from a segment for the request, which no free block serves. */
bool cuda_pool_at_limit(const struct cuda_pool *p, const struct cuda_pool_request *request);

/* Whether the driver would be asked for a range of addresses, if the request is not served from the cache. */
bool cuda_pool_lacks_range(const struct cuda_pool *p, const struct cuda_pool_request *request);
void cuda_pool_give_back(struct cuda_pool *p, struct pool_block *block);

/* A block that was freed while another stream used it (record_stream) serves nobody until it is let go. *block is NULL
 * where not all of these bytes are free. 0 or -MT_EMEMORY. */
int cuda_pool_hold(struct cuda_pool *p, uint64_t addr, uint64_t bytes, struct pool_block **block);
void cuda_pool_let_go(struct cuda_pool *p, struct pool_block *block);

int cuda_pool_empty_cache(struct cuda_pool *p);

/* Bytes that cuda_pool_empty_cache() would give back. */
uint64_t cuda_pool_cached(const struct cuda_pool *p);

/* The graph of a capture is gone: free segments of its private pool can go back like others. */
void cuda_pool_forget(struct cuda_pool *p, uint32_t capture);

uint64_t cuda_pool_bytes_of(const struct pool_block *block);
uint64_t cuda_pool_address_of(const struct pool_block *block);

/* The least bytes that a request can have been for which got this block, where only the block's size is known: taken
 * with `rounded`, and nothing else was since. */
uint64_t cuda_pool_least_request(const struct cuda_pool *p, const struct pool_block *block);

const struct cuda_pool_figures *cuda_pool_figures(const struct cuda_pool *p);

/* Bytes of the block for a request of so many bytes, if no larger one serves it. */
uint64_t cuda_pool_round(const struct cuda_pool_settings *settings, uint64_t bytes);

#endif
