/*
 * PyTorch's caching allocator for CUDA devices, or torch_npu's for Ascend, made again: each request gets the block that
 * the allocator would have given it, and the driver is asked for what the allocator would have asked for. One pool is
 * one device of one process.
 *
 * The rules are those of c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.1 and later, backend native:
 * - A request is rounded up to 512 bytes, or to a fraction of a power of two (roundup_power2_divisions).
 * - Requests of up to 1 MiB come from segments of 2 MiB, those of less than 10 MiB from segments of 20 MiB, others from
 * one of their own
 *   size, rounded up to 2 MiB. Small and large ones, streams, and pools of CUDA graphs never share a segment.
 * - The smallest free block that is large enough serves; of several that of the oldest segment (since PyTorch 2.9 or
 * 2.10), or the lowest. What is left over is split off from 512 bytes on (small, expandable)
 *   or if it is more than 1 MiB.
 * - A freed block becomes one with its free neighbours.
 * - Where the driver refuses, oversize blocks of the cache (max_split_size) go back to it first, then all segments
 * without a used block.
 * - An expandable segment is a range of addresses as large as 9/8 of the device, which is mapped in pages of 2 or 20
 * MiB as it is needed.
 *
 * Not modelled: blocks that another stream still uses when they are freed (record_stream) are taken to be free at once.
 */
#ifndef MT_REPLAY_CUDA_POOL_H
#define MT_REPLAY_CUDA_POOL_H

#include <stdbool.h>
#include <stdint.h>

enum { ROUNDUP_INTERVALS = 16 };

/* As PYTORCH_CUDA_ALLOC_CONF and set_per_process_memory_fraction() set them. CUDA_POOL_DEFAULTS where nobody did. */
struct cuda_pool_settings {
	bool expandable;
	bool huge_pages; /* large requests come from segments, or pages, of whole GiB (torch_npu) */
	bool old_lists;  /* of roundup_power2_divisions: ">" is also for the last size named, as before PyTorch 2.9 */
	/* of free blocks of one size the oldest segment's serves, not the lowest */
	bool oldest_first;
	/* blocks from here on are not split; UINT64_MAX = none are that large */
	uint64_t max_split_bytes;
	uint64_t most_rounding; /* bytes that such a block may be larger than its request */
	uint64_t large_segment; /* of large requests that have none of their own */
	uint64_t large_page;    /* of an expandable segment for large requests; 0 = as large_segment */
	uint64_t aligned;       /* where blocks of 2 MiB and more begin in expandable segments; 0 = anywhere */
	/* of each power of two from 1 MiB to 32 GiB, and what lies beyond; 0 and 1 = none */
	uint32_t divisions[ROUNDUP_INTERVALS];
	double gc_threshold;    /* of allowed_bytes; 0 = no garbage collection. Needs a limit */
	uint64_t allowed_bytes; /* UINT64_MAX = no limit of its own */
};

#define CUDA_POOL_DEFAULTS \
	((struct cuda_pool_settings){ .oldest_first = true, \
				      .max_split_bytes = UINT64_MAX, \
				      .most_rounding = 20ull << 20, \
				      .large_segment = 20ull << 20, \
				      .allowed_bytes = UINT64_MAX })

/* torch_npu's allocator is a copy that went its own way (torch_npu/csrc/core/npu/NPUCachingAllocator.cpp). It also adds
 * 32 bytes to a request, which is what the pool is asked for here. */
#define NPU_POOL_DEFAULTS \
	((struct cuda_pool_settings){ .max_split_bytes = UINT64_MAX, \
				      .most_rounding = 20ull << 20, \
				      .large_segment = 20ull << 20, \
				      .aligned = 16384, \
				      .allowed_bytes = UINT64_MAX })

/* What lies below the pool. */
struct cuda_pool_driver {
	void *arg;
	/* So many bytes at an address of a range, or anywhere (at = 0). Their address, 0 = refused. */
	uint64_t (*take)(void *arg, uint64_t at, uint64_t bytes);
	/* Addresses for an expandable segment, which are no memory. */
	uint64_t (*reserve)(void *arg, uint64_t bytes);
	void (*give_back)(void *arg, uint64_t addr, uint64_t bytes);
	uint64_t device_bytes;
};

struct cuda_pool_request {
	uint64_t bytes;
	uint64_t stream;
	uint32_t capture; /* whose pool it is for; 0 = the common one */
	bool capturing;   /* it is being captured: the cache stays */
	bool rounded;     /* bytes are those of the block: they are not rounded again */
};

struct cuda_pool_figures {
	uint64_t reserved, most_reserved;
	uint64_t used, most_used;            /* blocks as rounded and split */
	uint64_t requested, most_requested;  /* as asked for */
	uint64_t requests, refused, retries; /* retries: all of the cache went back */
};

struct cuda_pool;
struct pool_block;

/* NULL if memory is short. The driver is borrowed. */
struct cuda_pool *cuda_pool_new(const struct cuda_pool_settings *settings, const struct cuda_pool_driver *driver);
void cuda_pool_free(struct cuda_pool *p);

/* Another setting from now on, as torch.cuda.memory._set_allocator_settings() does. */
void cuda_pool_set(struct cuda_pool *p, const struct cuda_pool_settings *settings);

/* 0 with the block, NULL in it if the request is refused; -MT_EMEMORY. */
int cuda_pool_take(struct cuda_pool *p, const struct cuda_pool_request *request, struct pool_block **block);

/* A free block would serve it: the driver is not asked. */
bool cuda_pool_has(const struct cuda_pool *p, const struct cuda_pool_request *request);
void cuda_pool_give_back(struct cuda_pool *p, struct pool_block *block);
int cuda_pool_empty_cache(struct cuda_pool *p);

/* What cuda_pool_empty_cache() would give back. */
uint64_t cuda_pool_cached(const struct cuda_pool *p);

/* The graph of a capture is gone: what it leaves goes back with the cache. */
void cuda_pool_forget(struct cuda_pool *p, uint32_t capture);

uint64_t cuda_pool_bytes_of(const struct pool_block *block);
uint64_t cuda_pool_address_of(const struct pool_block *block);
const struct cuda_pool_figures *cuda_pool_figures(const struct cuda_pool *p);

/* Bytes of the block that a request of so many gets where one is made to measure. */
uint64_t cuda_pool_round(const struct cuda_pool_settings *settings, uint64_t bytes);

#endif
