/*
 * Nanoseconds of a pair of device calls, from as deep in the stack as argv[2] says, at best of many rounds:
 *
 *   devices driver|runtime|pool|dlsym|dlsym-cuda DEPTH
 *
 * Linked against the fake libraries of tests/cuda by devices.py.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/device/cuda_abi.h"

enum { PAIRS = 20000, ROUNDS = 40 };

extern CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
extern CUresult cuMemFree_v2(CUdeviceptr p);
extern cudaError_t cudaMalloc(void **p, size_t n);
extern cudaError_t cudaFree(void *p);

struct device { int8_t type, index; };
extern void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

static const char *what;
static void *driver;

static void pairs(void)
{
	CUdeviceptr d;
	void *p;

	for (int i = 0; i < PAIRS; i++)
		if (!strcmp(what, "driver")) {
			cuMemAlloc_v2(&d, 512);
			cuMemFree_v2(d);
		} else if (!strcmp(what, "runtime")) {
			cudaMalloc(&p, 512);
			cudaFree(p);
		} else if (!strcmp(what, "pool")) {
			report((void *)0x7000, 512, 512, 1 << 21, (struct device){ 1, 0 });
			report((void *)0x7000, -512, 0, 1 << 21, (struct device){ 1, 0 });
		} else if (!strcmp(what, "dlsym")) {
			dlsym(driver, "fake_set");
		} else {
			dlsym(driver, "cuMemAlloc_v2");
		}
}

static __attribute__((noinline)) void deeper(int depth)
{
	if (depth > 0)
		deeper(depth - 1);
	else
		pairs();
	__asm__ volatile("");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	double best = 1e30;

	what = argc > 1 ? argv[1] : "driver";
	driver = dlopen("libcuda.so.1", RTLD_LAZY);
	for (int i = 0; i < ROUNDS; i++) {
		double start = now(), took;
		deeper(argc > 2 ? atoi(argv[2]) : 0);
		took = (now() - start) / PAIRS;
		best = took < best ? took : best;
	}
	printf("%.1f\n", best);
	return 0;
}
