/* A library that links a runtime, as an extension module does; -DTAG names its functions. */
#include <dlfcn.h>
#include <stddef.h>

#include "shim/device/cuda_abi.h"

extern cudaError_t cudaMalloc(void **p, size_t n);
extern cudaError_t cudaFree(void *p);

int plugin_linked(size_t n);
int plugin_default(size_t n);

int plugin_linked(size_t n)
{
	void *p = NULL;
	int status = (int)cudaMalloc(&p, n);

	return status ? status : (int)cudaFree(p);
}

/* What this library links is in its own scope only. */
int plugin_default(size_t n)
{
	cudaError_t (*allocate)(void **, size_t) = (cudaError_t(*)(void **, size_t))(size_t)dlsym(RTLD_DEFAULT, "cudaMalloc");
	cudaError_t (*release)(void *) = (cudaError_t(*)(void *))(size_t)dlsym(RTLD_DEFAULT, "cudaFree");
	void *p = NULL;
	int status;

	if (!allocate || !release)
		return -1;
	if (dlerror())
		return -2;
	status = (int)allocate(&p, n);
	return status ? status : (int)release(p);
}
