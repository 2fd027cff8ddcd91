/* Calls NVIDIA's own runtime, linked statically, on whatever driver there is. Prints what it says. */
#include <stdio.h>

#include <cuda_runtime_api.h>

int main(void)
{
	void *p = NULL;
	int version = -1;

	printf("cudaMalloc %d\n", (int)cudaMalloc(&p, 100));
	printf("last error %d\n", (int)cudaGetLastError());
	printf("cudaMallocHost %d\n", (int)cudaMallocHost(&p, 100));
	printf("cudaFree %d\n", (int)cudaFree(NULL));
	printf("cudaDeviceReset %d\n", (int)cudaDeviceReset());
	cudaDriverGetVersion(&version);
	printf("driver %d\n", version);
	return 0;
}
