/* Threads that look functions up and call them, while others load and unload a library that links the runtime. Prints how many
 * blocks were allocated and freed. Linked with libcuda.so.1. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/device/cuda_abi.h"

enum { THREADS = 4, CALLS = 2000, LOADS = 150 };

extern CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
extern CUresult cuMemFree_v2(CUdeviceptr p);

static const char *plugin;
static int wrong;

static void *call(void *library)
{
	CUdeviceptr p;

	for (int i = 0; i < CALLS; i++) {
		CUresult (*make)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))(uintptr_t)dlsym(library, "cuMemAlloc_v2");
		CUresult (*drop)(CUdeviceptr) = (CUresult(*)(CUdeviceptr))(uintptr_t)dlsym(i % 2 ? library : RTLD_DEFAULT, "cuMemFree_v2");
		if (!make || !drop || make(&p, 16) || drop(p) || cuMemAlloc_v2(&p, 16) || cuMemFree_v2(p))
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *load(void *unused)
{
	for (int i = 0; i < LOADS; i++) {
		void *library = dlopen(plugin, RTLD_LAZY | RTLD_LOCAL);
		int (*go)(size_t) = library ? (int (*)(size_t))(uintptr_t)dlsym(library, i % 2 ? "plugin_linked" : "plugin_default") : NULL;
		if (!go || go(16))
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
		dlclose(library);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS + 1];

	plugin = argc > 1 ? argv[1] : "plugin.so";
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, dlopen("libcuda.so.1", RTLD_LAZY));
	pthread_create(&threads[THREADS], NULL, load, NULL);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d blocks, %d wrong\n", THREADS * CALLS * 2 + LOADS, wrong);
	return 0;
}
