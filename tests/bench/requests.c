/*
 * A pool of PyTorch's with COUNT requests, of which at most ALIVE are alive: what memtrace whatif is measured on.
 * Blocks lie where the replay's own model puts them, so that the trace is one of a run that did so.
 *
 *   requests COUNT [ALIVE [SEED]]
 *
 * Built by replay.py for the stand-in, and with -DLIBRARY as the libc10.so that it calls.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct device {
	int8_t type, index;
};
void report(void *p, int64_t size, size_t allocated, size_t reserved,
	    struct device d) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
size_t round_up(size_t bytes) __asm__(
	"_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm");

#ifdef LIBRARY

void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
{
	(void)p;
	(void)size;
	(void)allocated;
	(void)reserved;
	(void)d;
}

size_t round_up(size_t bytes)
{
	(void)bytes;
	return 0;
}

#else

#include "analyzer/replay/pool/cuda_pool.h"
#include "shim/device/cuda_abi.h"

extern cudaError_t cudaMalloc(void **p, size_t n);
extern cudaError_t cudaFree(void *p);

static uint64_t take(void *arg, uint64_t at, uint64_t bytes)
{
	void *p = NULL;

	(void)arg;
	(void)at;
	return cudaMalloc(&p, bytes) ? 0 : (uintptr_t)p;
}

static uint64_t reserve(void *arg, uint64_t bytes)
{
	(void)arg;
	(void)bytes;
	return 0;
}

static void give_back(void *arg, uint64_t addr, uint64_t bytes)
{
	(void)arg;
	(void)bytes;
	cudaFree((void *)(uintptr_t)addr);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* As a training's: many small, some of megabytes, few large. */
static uint64_t bytes_of(uint64_t random)
{
	const uint64_t most[] = { 1 << 14, 1 << 20, 8 << 20, 40 << 20 };
	const unsigned kind = random % 100 < 50 ? 0 : random % 100 < 80 ? 1 : random % 100 < 96 ? 2 : 3;

	return 512 + (random >> 8) % most[kind];
}

static const struct device cuda0 = { 1, 0 };

static void note(const struct pool_block *b, int64_t sign)
{
	report((void *)(uintptr_t)cuda_pool_address_of(b), sign * (int64_t)cuda_pool_bytes_of(b), 0, 0, cuda0);
}

int main(int argc, char **argv)
{
	const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	const uint64_t alive = argc > 2 ? strtoull(argv[2], NULL, 10) : 3000;
	uint64_t random = argc > 3 ? strtoull(argv[3], NULL, 10) : 88172645463325252ull;
	struct cuda_pool_driver driver = { NULL, take, reserve, give_back, 80ull << 30 };
	struct cuda_pool *pool = cuda_pool_new(&CUDA_POOL_DEFAULTS, &driver);
	struct pool_block **live = calloc(alive, sizeof(*live));

	for (uint64_t i = 0; pool && live && i < count; i++) {
		const uint64_t chosen = next_random(&random) % alive;
		const struct cuda_pool_request r = { .bytes = bytes_of(next_random(&random)) };
		if (live[chosen]) {
			note(live[chosen], -1);
			cuda_pool_give_back(pool, live[chosen]);
			live[chosen] = NULL;
		}
		round_up(r.bytes);
		if (cuda_pool_take(pool, &r, &live[chosen]) || !live[chosen])
			return 1;
		note(live[chosen], 1);
	}
	printf("%llu\n", (unsigned long long)(pool ? cuda_pool_figures(pool)->most_reserved : 0));
	return 0;
}

#endif
