/* Calls what between.c wraps. Linked with libcuda.so.1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/device/cuda_abi.h"

extern CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
extern CUresult cuMemFree_v2(CUdeviceptr p);

int main(void)
{
	CUdeviceptr p = 0;

	printf("rand %s\n", rand() >= 1000 ? "wrapped" : "plain");
	printf("allocate %d\n", (int)cuMemAlloc_v2(&p, 70));
	printf("free %d\n", (int)cuMemFree_v2(p));
	return 0;
}
