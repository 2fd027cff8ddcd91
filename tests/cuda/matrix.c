/*
 * Calls every function of the hook table as tests/cuda/calls.def says, got in the way that argv[1] names, and prints what each
 * call did: kind class function address bytes device status (numbers of format.h). With -DLINKED the functions are bound at link time.
 *
 *   matrix WAY [STATUS [DEVICE [ALIVE]]]    STATUS: what every function shall return
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/device/cuda_abi.h"

typedef CUresult status_CUDA;
typedef cudaError_t status_CUDART;

#ifdef LINKED
#define HAND(library, name, params, args) extern status_##library name params;
#include "shim/hooks/hooks_cuda.def"
#endif

static struct {
#define HAND(library, name, params, args) status_##library (*name) params;
#include "shim/hooks/hooks_cuda.def"
} f;

static void *driver, *runtime;

/* ---- ways ---- */

static void *proc4(const char *name, int version, int flags)
{
	static CUresult (*get)(const char *, void **, int, cuuint64_t);
	void *p = NULL;

	if (!get)
		get = (__typeof__(get))(uintptr_t)dlsym(driver, "cuGetProcAddress");
	return get(name, &p, version, (cuuint64_t)flags) == 0 ? p : NULL;
}

static void *proc5(const char *name, int version, int flags)
{
	static CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *p = NULL;

	if (!get) { /* as the runtime does: asks for itself, first with an empty name to see that it works */
		CUresult (*first)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
			(__typeof__(first))(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");
		first("", &p, 0, 0, NULL);
		if (first("cuGetProcAddress", &p, 12000, 0, NULL) == 0)
			get = (__typeof__(get))(uintptr_t)p;
	}
	return get(name, &p, version, (cuuint64_t)flags, NULL) == 0 ? p : NULL;
}

static void *entry_point(const char *name, int version, int flags)
{
	cudaError_t (*get)(const char *, void **, unsigned long long, enum cudaDriverEntryPointQueryResult *);
	void *p = NULL;

	(void)version;
	get = (__typeof__(get))(uintptr_t)dlsym(runtime, flags & 2 ? "cudaGetDriverEntryPoint_ptsz" : "cudaGetDriverEntryPoint");
	return get(name, &p, 0, NULL) == 0 ? p : NULL;
}

static void *entry_point_by_version(const char *name, int version, int flags)
{
	cudaError_t (*get)(const char *, void **, unsigned, unsigned long long, enum cudaDriverEntryPointQueryResult *);
	void *p = NULL;

	get = (__typeof__(get))(uintptr_t)dlsym(runtime, "cudaGetDriverEntryPointByVersion");
	return get(name, &p, (unsigned)version, (unsigned)flags, NULL) == 0 ? p : NULL;
}

/* How to ask for a name with its suffix: by the one without, a version (the first that means it) and flags. */
static void *by_version(void *(*get)(const char *, int, int), const char *name)
{
	static const struct { const char *name; int oldest, newest; } versions[] = {
		{ "cuMemAlloc", 2000, 3020 }, { "cuMemFree", 2000, 3020 }, { "cuMemAllocPitch", 2000, 3020 },
		{ "cuMemAllocHost", 2000, 3020 }, { "cuMemHostRegister", 4000, 6050 }, { "cuArrayCreate", 2000, 3020 },
		{ "cuArray3DCreate", 2000, 3020 }, { "cuIpcOpenMemHandle", 4010, 11000 }, { "cuCtxDestroy", 2000, 4000 },
		{ "cuDevicePrimaryCtxReset", 7000, 11000 }, { "cuDevicePrimaryCtxRelease", 7000, 11000 },
	};
	char base[80];
	size_t n = strlen(name);
	int flags = 0, second = 0;

	strcpy(base, name);
	if (n > 5 && !strcmp(base + n - 5, "_ptsz")) {
		base[n - 5] = 0;
		flags = 2;
	} else if (n > 3 && !strcmp(base + n - 3, "_v2")) {
		base[n - 3] = 0;
		second = 1;
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(versions[i].name, base))
			return get == entry_point && !second ? NULL : /* it has no version to ask for the oldest */
			       get(base, second ? versions[i].newest : versions[i].oldest, flags);
	return get(base, 12000, flags);
}

static const char *way;

static int is(const char *name)
{
	return !strcmp(way, name);
}

static void *find(const char *name)
{
	if (is("handle"))
		return dlsym(name[2] == 'd' ? runtime : driver, name);
	if (is("default"))
		return dlsym(RTLD_DEFAULT, name);
	if (name[2] == 'd' || strstr(name, "GetProcAddress"))
		return NULL;
	return is("proc4") ? by_version(proc4, name) : is("proc5") ? by_version(proc5, name) :
	       is("entry") ? by_version(entry_point, name) : by_version(entry_point_by_version, name);
}

static void find_all(void)
{
#ifdef LINKED
#define HAND(library, name, params, args) f.name = name;
#else
#define HAND(library, name, params, args) f.name = (status_##library(*) params)(uintptr_t)find(#name);
#endif
#include "shim/hooks/hooks_cuda.def"
}

/* ---- calls ---- */

static void say(int kind, int class, const char *name, uint64_t address, uint64_t bytes, int device, int status)
{
	printf("CALL %d %d %s %" PRIu64 " %" PRIu64 " %d %d\n", kind, class, name, address, bytes, device, status);
}

int main(int argc, char **argv)
{
	int status = argc > 2 ? atoi(argv[2]) : 0, device = argc > 3 ? atoi(argv[3]) : 0, alive = argc > 4 ? atoi(argv[4]) : 0;
	int mode = RTLD_LAZY | (argc > 1 && !strcmp(argv[1], "default") ? RTLD_GLOBAL : RTLD_LOCAL), got;
	void (*set)(int, int, int);

	void *p = &p;
	char own[64];
	CUdeviceptr d = 1;
	CUdeviceptr_v1 o = 1;
	CUmemGenericAllocationHandle h = 1, h2 = 1;
	size_t pitch = 512, total = (size_t)(device + 1) << 30;
	unsigned narrow = 512;
	struct cudaPitchedPtr pitched = { &p, 512, 0, 0 };
	cudaStream_t stream = (cudaStream_t)(uintptr_t)0xabc0, captured = (cudaStream_t)(uintptr_t)0xcafe;
	cudaMemPool_t pool = NULL;
	cudaArray_t array = (cudaArray_t)&p;
	cudaMipmappedArray_t mipmaps = (cudaMipmappedArray_t)&p;
	CUarray carray = (CUarray)&p;
	CUmipmappedArray cmipmaps = (CUmipmappedArray)&p;
	struct cudaChannelFormatDesc texel = { 8, 8, 8, 8, 1 };
	CUDA_ARRAY_DESCRIPTOR_v1 flat1 = { 10, 20, 0x10, 2 };
	CUDA_ARRAY_DESCRIPTOR flat2 = { 10, 20, 0x10, 2 };
	CUDA_ARRAY3D_DESCRIPTOR_v1 deep1 = { 10, 20, 3, 0x20, 1, 0 };
	CUDA_ARRAY3D_DESCRIPTOR deep2 = { 10, 20, 3, 0x20, 1, 0 };
	struct cudaMemAllocNodeParams node = { .bytesize = 1010, .dptr = &p };
	CUDA_MEM_ALLOC_NODE_PARAMS cnode = { .bytesize = 2014, .dptr = 1 };
	CUmemAllocationProp where = { .location = { 1, 1 } }; /* another device than the current one */
	struct cudaExternalMemoryBufferDesc part = { .offset = 4096, .size = 1011 };
	struct cudaExternalMemoryMipmappedArrayDesc picture = { .formatDesc = texel, .extent = { 8, 4, 0 }, .numLevels = 2 };
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC cpart = { .offset = 4096, .size = 2015 };
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC cpicture = { .arrayDesc = deep2, .numLevels = 2 };
	cudaIpcMemHandle_t ipc;
	CUipcMemHandle cipc;

	way = argc > 1 ? argv[1] : "handle";
	memset(&ipc, 0, sizeof(ipc));
	memset(&cipc, 0, sizeof(cipc));
	driver = dlopen("libcuda.so.1", mode);
	runtime = dlopen(getenv("RUNTIME") ? getenv("RUNTIME") : "libcudart.so.13", mode);
	if (!driver || !runtime || !(set = (void (*)(int, int, int))(uintptr_t)dlsym(driver, "fake_set")))
		return fprintf(stderr, "no libraries: %s\n", dlerror()), 1;
	set(status, device, alive);
	find_all();

#define CALL(kind, class, name, arguments, address, bytes, device)                            \
	if (f.name) {                                                                         \
		got = (int)f.name arguments;                                                  \
		say(kind, class, #name, (uint64_t)(uintptr_t)(address), (uint64_t)(bytes), device, got); \
	}
#define ALLOC(library, class, name, arguments, address, bytes) \
	CALL(10, class, name, arguments, address, bytes, class == 5 ? 1 : device)
#define DROP(library, class, name, arguments, address) CALL(11, class, name, arguments, address, 0, device)
#define OTHER(library, kind, name, arguments, address, bytes) CALL(kind, kind == 14 || kind == 15 ? 5 : 0, name, arguments, address, bytes, device)
#include "tests/cuda/calls.def"
	return 0;
}
