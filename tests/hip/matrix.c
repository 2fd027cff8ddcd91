/*
 * Calls every function of the hook table as tests/hip/calls.def says, got in the way that argv[1] names, and prints what each call did:
 * kind class function address bytes device status (numbers of format.h), and what the last error is then. With -DLINKED the functions are
 * bound at link time.
 *
 *   matrix WAY [STATUS [DEVICE]]    STATUS: what every function shall return
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/device/hip_abi.h"

#ifdef LINKED
#define HAND(since, name, params, args) extern hipError_t name params;
#include "shim/hooks/hooks_hip.def"
#endif

static struct {
#define HAND(since, name, params, args) hipError_t (*name) params;
#include "shim/hooks/hooks_hip.def"
} f;

static void *library;

static void *find(const char *way, const char *name)
{
	void *p = NULL;

	if (!strcmp(way, "handle"))
		return dlsym(library, name);
	if (!strcmp(way, "default"))
		return dlsym(RTLD_DEFAULT, name);
	if (!strcmp(way, "proc")) {
		hipError_t (*get)(const char *, void **, int, uint64_t, int *) = dlsym(library, "hipGetProcAddress");
		return get(name, &p, 60100000, 0, NULL) == 0 ? p : NULL;
	}
	hipError_t (*get)(const char *, void **, unsigned long long, int *) =
		dlsym(library, !strcmp(way, "spt") ? "hipGetDriverEntryPoint_spt" : "hipGetDriverEntryPoint");
	return get(name, &p, 0, NULL) == 0 ? p : NULL;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "handle";
	int status = argc > 2 ? atoi(argv[2]) : 0, device = argc > 3 ? atoi(argv[3]) : 0, got;
	void (*set)(int, int);
	hipError_t (*peek)(void);

	void *p = &p;
	char own[64];
	hipMemGenericAllocationHandle_t h = (hipMemGenericAllocationHandle_t)1, h2 = h;
	size_t pitch = 512, total = (size_t)(device + 1) << 30;
	hipPitchedPtr pitched = { &p, 512, 0, 0 };
	hipStream_t stream = (hipStream_t)(uintptr_t)0xabc0, captured = (hipStream_t)(uintptr_t)0xcafe;
	hipMemPool_t pool = NULL;
	hipArray_t array = (hipArray_t)&p;
	hipMipmappedArray_t mipmaps = (hipMipmappedArray_t)&p;
	hipChannelFormatDesc texel = { 8, 8, 8, 8, 1 };
	HIP_ARRAY_DESCRIPTOR flat = { 10, 20, 0x10, 2 };
	HIP_ARRAY3D_DESCRIPTOR deep = { 10, 20, 3, 0x20, 1, 0 };
	hipMemAllocNodeParams node = { .bytesize = 1013, .dptr = &p };
	hipMemAllocationProp where = { .location = { 1, 1 } }; /* another device than the current one */
	hipExternalMemoryBufferDesc part = { .offset = 4096, .size = 1012 };
	hipIpcMemHandle_t ipc;

	memset(&ipc, 0, sizeof(ipc));
	library = dlopen(getenv("RUNTIME") ? getenv("RUNTIME") : "libamdhip64.so.7",
			 RTLD_LAZY | (!strcmp(way, "default") ? RTLD_GLOBAL : RTLD_LOCAL));
	if (!library || !(set = dlsym(library, "fake_set")) || !(peek = dlsym(library, "hipPeekAtLastError")))
		return fprintf(stderr, "no library: %s\n", dlerror()), 1;
	set(status, device);
#ifdef LINKED
#define HAND(since, name, params, args) f.name = name;
#else
#define HAND(since, name, params, args) f.name = find(way, #name);
#endif
#include "shim/hooks/hooks_hip.def"

#define CALL(kind, class, name, arguments, address, bytes, device)                                                        \
	got = (int)f.name arguments;                                                                                      \
	printf("CALL %d %d %s %" PRIu64 " %" PRIu64 " %d %d\nlast %d\n", kind, class, #name, (uint64_t)(uintptr_t)(address), \
	       (uint64_t)(bytes), device, got, (int)peek());
#define ALLOC(class, name, arguments, address, bytes) CALL(10, class, name, arguments, address, bytes, class == 5 ? 1 : device)
#define DROP(class, name, arguments, address) CALL(11, class, name, arguments, address, 0, device)
#define OTHER(kind, name, arguments, address, bytes) \
	CALL(kind, kind == 14 || kind == 15 ? 5 : 0, name, arguments, address, bytes, device)
#include "tests/hip/calls.def"
	return 0;
}
