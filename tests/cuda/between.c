/* A preloaded library that wraps a function of libc and one of CUDA, as many tools do: the next one is relative to it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/device/cuda_abi.h"

int rand(void);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);

static int calls;

int rand(void)
{
	int (*next)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_NEXT, "rand");

	return next == rand ? -1 : 1000 + next() % 2;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	CUresult (*next)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "cuMemAlloc_v2");

	calls++;
	return next == cuMemAlloc_v2 || !next ? 999 : next(p, n);
}

__attribute__((destructor)) static void count(void)
{
	printf("between: %d\n", calls);
}
