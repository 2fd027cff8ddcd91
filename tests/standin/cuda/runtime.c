/* The stand-in libcudart.so.12 and .13, layered on the driver as NVIDIA's are: dlopen("libcuda.so.1") and
 * dlsym("cuGetProcAddress_v2"), everything else through that. */
#include "abi_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- the driver ---- */

/* D(name, arguments): a driver function that is called here. */
#define DRIVER(D) \
	D(cuInit, (unsigned)) D(cuDeviceGetCount, (int *)) D(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	D(cuDevicePrimaryCtxReset, (CUdevice)) D(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *)) D(cuCtxSetCurrent, (CUcontext)) \
	D(cuCtxGetCurrent, (CUcontext *)) D(cuCtxGetDevice, (CUdevice *)) D(cuCtxSynchronize, (void)) \
	D(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) D(cuDeviceTotalMem, (size_t *, CUdevice)) \
	D(cuDeviceGetName, (char *, int, CUdevice)) D(cuDeviceGetUuid, (CUuuid *, CUdevice)) D(cuDeviceGetPCIBusId, (char *, int, CUdevice)) \
	D(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice)) D(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice)) \
	D(cuDeviceGetMemPool, (CUmemoryPool *, CUdevice)) D(cuDeviceSetMemPool, (CUdevice, CUmemoryPool)) \
	D(cuDeviceGraphMemTrim, (CUdevice)) D(cuDeviceGetGraphMemAttribute, (CUdevice, CUgraphMem_attribute, void *)) \
	D(cuMemGetInfo, (size_t *, size_t *)) D(cuMemAlloc, (CUdeviceptr *, size_t)) D(cuMemFree, (CUdeviceptr)) \
	D(cuMemAllocPitch, (CUdeviceptr *, size_t *, size_t, size_t, unsigned)) D(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) \
	D(cuMemAllocHost, (void **, size_t)) D(cuMemHostAlloc, (void **, size_t, unsigned)) D(cuMemFreeHost, (void *)) \
	D(cuMemHostRegister, (void *, size_t, unsigned)) D(cuMemHostUnregister, (void *)) \
	D(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream)) D(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream)) \
	D(cuMemFreeAsync, (CUdeviceptr, CUstream)) D(cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *)) \
	D(cuMemPoolDestroy, (CUmemoryPool)) D(cuMemPoolTrimTo, (CUmemoryPool, size_t)) \
	D(cuMemPoolSetAttribute, (CUmemoryPool, CUmemPool_attribute, void *)) D(cuMemPoolGetAttribute, (CUmemoryPool, CUmemPool_attribute, void *)) \
	D(cuMemPoolExportPointer, (CUmemPoolPtrExportData *, CUdeviceptr)) \
	D(cuMemPoolImportPointer, (CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *)) \
	D(cuMemPoolExportToShareableHandle, (void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long)) \
	D(cuMemPoolImportFromShareableHandle, (CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long long)) \
	D(cuArrayCreate, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *)) D(cuArray3DCreate, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *)) \
	D(cuArrayDestroy, (CUarray)) D(cuMipmappedArrayCreate, (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned)) \
	D(cuMipmappedArrayGetLevel, (CUarray *, CUmipmappedArray, unsigned)) D(cuMipmappedArrayDestroy, (CUmipmappedArray)) \
	D(cuIpcGetMemHandle, (CUipcMemHandle *, CUdeviceptr)) D(cuIpcOpenMemHandle, (CUdeviceptr *, CUipcMemHandle, unsigned)) \
	D(cuIpcCloseMemHandle, (CUdeviceptr)) D(cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr)) \
	D(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t)) D(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
	D(cuStreamCreateWithPriority, (CUstream *, unsigned, int)) D(cuStreamDestroy, (CUstream)) D(cuStreamSynchronize, (CUstream)) \
	D(cuStreamGetPriority, (CUstream, int *)) D(cuStreamBeginCapture, (CUstream, CUstreamCaptureMode)) \
	D(cuStreamEndCapture, (CUstream, CUgraph *)) \
	D(cuStreamGetCaptureInfo, (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *)) \
	D(cuEventCreate, (CUevent *, unsigned)) D(cuEventDestroy, (CUevent)) D(cuEventRecord, (CUevent, CUstream)) \
	D(cuEventQuery, (CUevent)) \
	D(cuEventElapsedTime, (float *, CUevent, CUevent)) D(cuGraphCreate, (CUgraph *, unsigned)) D(cuGraphDestroy, (CUgraph)) \
	D(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *)) \
	D(cuGraphAddMemAllocNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *)) \
	D(cuGraphAddMemFreeNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr)) \
	D(cuGraphInstantiate, (CUgraphExec *, CUgraph, unsigned long long)) D(cuGraphExecDestroy, (CUgraphExec)) \
	D(cuGraphLaunch, (CUgraphExec, CUstream))

#define D(name, arguments) CUresult(*name) arguments;
static struct { DRIVER(D) } driver;
/* Of the streams' calls those for programs whose default stream is the thread's. */
static struct {
	CUresult (*allocate)(CUdeviceptr *, size_t, CUstream);
	CUresult (*from_pool)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
	CUresult (*release)(CUdeviceptr, CUstream);
	CUresult (*launch)(CUgraphExec, CUstream);
} ptsz;
#undef D
static CUresult (*get_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t started = cudaErrorInsufficientDriver;
static int device_count;
static unsigned generation = 1; /* of contexts: a reset makes all threads take new ones */
static __thread int device;
static __thread unsigned current_generation;
static __thread int current_device = -1;
static __thread cudaError_t last_error;

static void look_up(const char *name, void *slot, cuuint64_t flags)
{
	if (get_address(name, slot, RUNTIME_VERSION, flags, NULL) != CUDA_SUCCESS)
		fprintf(stderr, "stand-in runtime: the driver has no %s\n", name);
}

static void start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *found = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	memcpy(&get_address, &found, sizeof found);
	if (!found)
		return;
#define D(name, arguments) look_up(#name, &driver.name, 0);
	DRIVER(D)
#undef D
	look_up("cuMemAllocAsync", &ptsz.allocate, 2);
	look_up("cuMemAllocFromPoolAsync", &ptsz.from_pool, 2);
	look_up("cuMemFreeAsync", &ptsz.release, 2);
	look_up("cuGraphLaunch", &ptsz.launch, 2);
	CUresult status = driver.cuInit(0);
	started = (cudaError_t)status;
	if (status == CUDA_SUCCESS)
		started = driver.cuDeviceGetCount(&device_count) == CUDA_SUCCESS ? cudaSuccess : cudaErrorNoDevice;
}

static cudaError_t failed(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

/* The runtime's errors have the driver's numbers, these included. */
static cudaError_t result(CUresult status)
{
	return failed((cudaError_t)status);
}

static cudaError_t begin(void)
{
	pthread_once(&once, start);
	return started;
}

/* Before a call that needs a context: the primary one of the thread's device, unless the program has made its own current. */
static cudaError_t enter(void)
{
	CUcontext context;
	if (begin() != cudaSuccess)
		return started;
	unsigned now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	if (current_device == device && current_generation == now)
		return cudaSuccess;
	CUresult status = driver.cuDevicePrimaryCtxRetain(&context, device);
	if (status == CUDA_SUCCESS)
		status = driver.cuCtxSetCurrent(context);
	if (status != CUDA_SUCCESS)
		return (cudaError_t)status;
	current_device = device;
	current_generation = now;
	return cudaSuccess;
}

#define ENTER() \
	do { \
		cudaError_t state = enter(); \
		if (state != cudaSuccess) \
			return failed(state); \
	} while (0)
#define BEGIN() \
	do { \
		cudaError_t state = begin(); \
		if (state != cudaSuccess) \
			return failed(state); \
	} while (0)

static CUdeviceptr as_device(const void *address)
{
	return (CUdeviceptr)(uintptr_t)address;
}

/* ---- versions, errors, devices ---- */

API cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

API cudaError_t cudaDriverGetVersion(int *version)
{
	*version = begin() == cudaErrorInsufficientDriver ? 0 : 13000;
	return cudaSuccess;
}

API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;
	last_error = cudaSuccess;
	return error;
}

API cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

API const char *cudaGetErrorString(cudaError_t error)
{
	switch ((int)error) {
	case cudaSuccess: return "no error";
	case cudaErrorInvalidValue: return "invalid argument";
	case cudaErrorMemoryAllocation: return "out of memory";
	case cudaErrorInitializationError: return "initialization error";
	case cudaErrorCudartUnloading: return "driver shutting down";
	case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
	case cudaErrorNoDevice: return "no CUDA-capable device is detected";
	case cudaErrorInvalidDevice: return "invalid device ordinal";
	}
	return "stand-in runtime error";
}

API const char *cudaGetErrorName(cudaError_t error)
{
	switch ((int)error) {
	case cudaSuccess: return "cudaSuccess";
	case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
	case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
	case cudaErrorInitializationError: return "cudaErrorInitializationError";
	case cudaErrorCudartUnloading: return "cudaErrorCudartUnloading";
	case cudaErrorNoDevice: return "cudaErrorNoDevice";
	}
	return "cudaErrorUnknown";
}

API cudaError_t cudaGetDeviceCount(int *count)
{
	*count = 0;
	BEGIN();
	*count = device_count;
	return cudaSuccess;
}

API cudaError_t cudaGetDevice(int *number)
{
	BEGIN();
	*number = device;
	return cudaSuccess;
}

API cudaError_t cudaSetDevice(int number)
{
	BEGIN();
	if (number < 0 || number >= device_count)
		return failed(cudaErrorInvalidDevice);
	device = number;
	return failed(enter());
}

API cudaError_t cudaDeviceSynchronize(void)
{
	ENTER();
	return result(driver.cuCtxSynchronize());
}

API cudaError_t cudaDeviceReset(void)
{
	BEGIN();
	CUresult status = driver.cuDevicePrimaryCtxReset(device);
	__atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL);
	return result(status);
}

API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number)
{
	BEGIN();
	return result(driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, number));
}

static cudaError_t properties(struct cudaDeviceProp *p, int number)
{
	size_t total = 0;
	int bus = 0;
	BEGIN();
	memset(p, 0, sizeof *p);
	CUresult status = driver.cuDeviceTotalMem(&total, number);
	if (status != CUDA_SUCCESS)
		return result(status);
	driver.cuDeviceGetName(p->name, sizeof p->name, number);
	driver.cuDeviceGetUuid((CUuuid *)&p->uuid, number);
	driver.cuDeviceGetAttribute(&bus, 33, number);
#ifdef VENDOR
#define P(field, old, new, type, value) _Static_assert(offsetof(struct cudaDeviceProp, field) == (MAJOR == 13 ? new : old), #field);
	PROPERTIES(P)
#undef P
#endif
#define P(field, old, new, type, value) \
	if ((MAJOR == 13 ? new : old) + sizeof(type) <= sizeof *p) \
		*(type *)((char *)p + (MAJOR == 13 ? new : old)) = (type)(value);
	PROPERTIES(P)
#undef P
	return cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int number)
{
	return properties(p, number);
}

#if MAJOR == 12
API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int number)
{
	return properties(p, number);
}
#endif

API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int number)
{
	BEGIN();
	return result(driver.cuDeviceGetPCIBusId(text, size, number));
}

API cudaError_t cudaDeviceCanAccessPeer(int *can, int from, int to)
{
	BEGIN();
	return result(driver.cuDeviceCanAccessPeer(can, from, to));
}

API cudaError_t cudaDeviceEnablePeerAccess(int number, unsigned flags)
{
	ENTER();
	return cudaSuccess;
}

API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return cudaSuccess;
}

/* ---- memory ---- */

API cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
	ENTER();
	return result(driver.cuMemGetInfo(left, total));
}

API cudaError_t cudaMalloc(void **address, size_t bytes)
{
	ENTER();
	*address = bytes ? *address : NULL;
	return bytes ? result(driver.cuMemAlloc((CUdeviceptr *)address, bytes)) : cudaSuccess;
}

API cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
	ENTER();
	return result(driver.cuMemAllocPitch((CUdeviceptr *)address, pitch, width, height, 4));
}

API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	ENTER();
	CUdeviceptr address = 0;
	size_t pitch = 0;
	CUresult status = driver.cuMemAllocPitch(&address, &pitch, extent.width, extent.height * extent.depth, 4);
	if (status == CUDA_SUCCESS)
		*out = (struct cudaPitchedPtr){(void *)(uintptr_t)address, pitch, extent.width, extent.height};
	return result(status);
}

API cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
	ENTER();
	return result(driver.cuMemAllocManaged((CUdeviceptr *)address, bytes, flags));
}

API cudaError_t cudaFree(void *address)
{
	ENTER();
	return address ? result(driver.cuMemFree(as_device(address))) : cudaSuccess;
}

API cudaError_t cudaMallocHost(void **address, size_t bytes)
{
	ENTER();
	return result(driver.cuMemAllocHost(address, bytes));
}

API cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
	ENTER();
	return result(driver.cuMemHostAlloc(address, bytes, flags));
}

API cudaError_t cudaFreeHost(void *address)
{
	ENTER();
	return address ? result(driver.cuMemFreeHost(address)) : cudaSuccess;
}

API cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
	ENTER();
	return result(driver.cuMemHostRegister(address, bytes, flags));
}

API cudaError_t cudaHostUnregister(void *address)
{
	ENTER();
	return result(driver.cuMemHostUnregister(address));
}

API cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags)
{
	ENTER();
	*out = host;
	return cudaSuccess;
}

/* ---- stream-ordered memory and pools ---- */

API cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuMemAllocAsync((CUdeviceptr *)address, bytes, stream));
}

API cudaError_t cudaMallocAsync_ptsz(void **address, size_t bytes, cudaStream_t stream)
{
	ENTER();
	return result(ptsz.allocate((CUdeviceptr *)address, bytes, stream));
}

API cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuMemAllocFromPoolAsync((CUdeviceptr *)address, bytes, pool, stream));
}

API cudaError_t cudaMallocFromPoolAsync_ptsz(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
	ENTER();
	return result(ptsz.from_pool((CUdeviceptr *)address, bytes, pool, stream));
}

API cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuMemFreeAsync(as_device(address), stream));
}

API cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream)
{
	ENTER();
	return result(ptsz.release(as_device(address), stream));
}

API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int number)
{
	BEGIN();
	return result(driver.cuDeviceGetDefaultMemPool(pool, number));
}

API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int number)
{
	BEGIN();
	return result(driver.cuDeviceGetMemPool(pool, number));
}

API cudaError_t cudaDeviceSetMemPool(int number, cudaMemPool_t pool)
{
	BEGIN();
	return result(driver.cuDeviceSetMemPool(number, pool));
}

API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	BEGIN();
	return result(driver.cuMemPoolCreate(pool, (const CUmemPoolProps *)properties));
}

API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	BEGIN();
	return result(driver.cuMemPoolDestroy(pool));
}

API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	BEGIN();
	return result(driver.cuMemPoolTrimTo(pool, keep));
}

API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
	BEGIN();
	return result(driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
	BEGIN();
	return result(driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t n)
{
	return cudaSuccess;
}

API cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *address)
{
	BEGIN();
	return result(driver.cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, as_device(address)));
}

API cudaError_t cudaMemPoolImportPointer(void **address, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data)
{
	ENTER();
	return result(driver.cuMemPoolImportPointer((CUdeviceptr *)address, pool, (CUmemPoolPtrExportData *)data));
}

API cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned flags)
{
	BEGIN();
	return result(driver.cuMemPoolExportToShareableHandle(handle, pool, (CUmemAllocationHandleType)type, flags));
}

API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle, cudaMemAllocationHandleType type, unsigned flags)
{
	BEGIN();
	return result(driver.cuMemPoolImportFromShareableHandle(pool, handle, (CUmemAllocationHandleType)type, flags));
}

/* ---- arrays ---- */

/* Kinds of a channel: 0 signed, 1 unsigned, 2 float. */
static CUarray_format channel_format(const struct cudaChannelFormatDesc *d)
{
	static const unsigned char formats[3][3] = {{8, 9, 10}, {1, 2, 3}, {0, 0x10, 0x20}};
	int size = d->x == 8 ? 0 : d->x == 16 ? 1 : 2;
	return (CUarray_format)formats[(unsigned)d->f % 3][size];
}

static CUDA_ARRAY3D_DESCRIPTOR array_descriptor(const struct cudaChannelFormatDesc *d, struct cudaExtent extent, unsigned flags)
{
	unsigned channels = (d->x > 0) + (d->y > 0) + (d->z > 0) + (d->w > 0);
	return (CUDA_ARRAY3D_DESCRIPTOR){extent.width, extent.height, extent.depth, channel_format(d), channels, flags};
}

API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels, size_t width, size_t height, unsigned flags)
{
	ENTER();
	CUDA_ARRAY3D_DESCRIPTOR d = array_descriptor(channels, (struct cudaExtent){width, height, 0}, flags);
	if (flags)
		return result(driver.cuArray3DCreate((CUarray *)array, &d));
	CUDA_ARRAY_DESCRIPTOR flat = {d.Width, d.Height, d.Format, d.NumChannels};
	return result(driver.cuArrayCreate((CUarray *)array, &flat));
}

API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels, struct cudaExtent extent, unsigned flags)
{
	ENTER();
	CUDA_ARRAY3D_DESCRIPTOR d = array_descriptor(channels, extent, flags);
	return result(driver.cuArray3DCreate((CUarray *)array, &d));
}

API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *channels, struct cudaExtent extent,
					 unsigned levels, unsigned flags)
{
	ENTER();
	CUDA_ARRAY3D_DESCRIPTOR d = array_descriptor(channels, extent, flags);
	return result(driver.cuMipmappedArrayCreate((CUmipmappedArray *)array, &d, levels));
}

API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level, cudaMipmappedArray_const_t array, unsigned n)
{
	ENTER();
	return result(driver.cuMipmappedArrayGetLevel((CUarray *)level, (CUmipmappedArray)(uintptr_t)array, n));
}

API cudaError_t cudaFreeArray(cudaArray_t array)
{
	ENTER();
	return array ? result(driver.cuArrayDestroy((CUarray)array)) : cudaSuccess;
}

API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	ENTER();
	return array ? result(driver.cuMipmappedArrayDestroy((CUmipmappedArray)array)) : cudaSuccess;
}

/* ---- sharing, pointers, copies ---- */

API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *address)
{
	ENTER();
	return result(driver.cuIpcGetMemHandle((CUipcMemHandle *)handle, as_device(address)));
}

API cudaError_t cudaIpcOpenMemHandle(void **address, cudaIpcMemHandle_t handle, unsigned flags)
{
	CUipcMemHandle copy;
	ENTER();
	memcpy(&copy, &handle, sizeof copy);
	return result(driver.cuIpcOpenMemHandle((CUdeviceptr *)address, copy, flags));
}

API cudaError_t cudaIpcCloseMemHandle(void *address)
{
	ENTER();
	return result(driver.cuIpcCloseMemHandle(as_device(address)));
}

API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *address)
{
	unsigned type = 0, managed = 0;
	int number = 0;
	ENTER();
	memset(a, 0, sizeof *a);
	if (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_device(address)) != CUDA_SUCCESS) {
		a->type = cudaMemoryTypeUnregistered;
		a->device = -2;
		a->hostPointer = (void *)(uintptr_t)address;
		return cudaSuccess;
	}
	driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, as_device(address));
	driver.cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, as_device(address));
	a->type = managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
	a->device = number;
	a->devicePointer = (void *)(uintptr_t)address;
	a->hostPointer = a->type == cudaMemoryTypeDevice ? NULL : a->devicePointer;
	return cudaSuccess;
}

static cudaError_t copy(void *to, const void *from, size_t n)
{
	ENTER();
	return result(driver.cuMemcpy(as_device(to), as_device(from), n));
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
	return copy(to, from, n);
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy(to, from, n);
}

API cudaError_t cudaMemcpyPeerAsync(void *to, int there, const void *from, int here, size_t n, cudaStream_t stream)
{
	return copy(to, from, n);
}

API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
				  cudaMemcpyKind kind, cudaStream_t stream)
{
	for (size_t i = 0; i < height; i++)
		copy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
	return cudaSuccess;
}

API cudaError_t cudaMemset(void *start, int value, size_t n)
{
	ENTER();
	return result(driver.cuMemsetD8Async(as_device(start), (unsigned char)value, n, NULL));
}

API cudaError_t cudaMemsetAsync(void *start, int value, size_t n, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuMemsetD8Async(as_device(start), (unsigned char)value, n, stream));
}

/* Variables of device code don't exist: writes go nowhere, and all have one address. */
API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, cudaMemcpyKind kind)
{
	return cudaSuccess;
}

API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
	static char nowhere[1 << 16];
	*address = nowhere;
	return cudaSuccess;
}

/* ---- streams, events, graphs ---- */

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	ENTER();
	return result(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, 0, 0);
}

API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	ENTER();
	return result(driver.cuStreamDestroy(stream));
}

API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	ENTER();
	return result(driver.cuStreamSynchronize(stream));
}

API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	ENTER();
	return result(driver.cuStreamGetPriority(stream, priority));
}

API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
	ENTER();
	return result(driver.cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	ENTER();
	return result(driver.cuStreamEndCapture(stream, graph));
}

static cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
				const cudaGraphNode_t **dependencies, size_t *n)
{
	CUstreamCaptureStatus state = 0;
	cuuint64_t number = 0;
	ENTER();
	CUresult got = driver.cuStreamGetCaptureInfo(stream, &state, &number, graph, dependencies, n);
	*status = (cudaStreamCaptureStatus)state;
	if (id && state)
		*id = number;
	return result(got);
}

API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
	return capture_info(stream, status, NULL, NULL, NULL, NULL);
}

#if MAJOR == 11
API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id)
{
	return capture_info(stream, status, id, NULL, NULL, NULL);
}
#endif

#if MAJOR < 13
API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
					    const cudaGraphNode_t **dependencies, size_t *n)
{
	return capture_info(stream, status, id, graph, dependencies, n);
}

API cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
					    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *n)
#else
API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
					 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *n)
#endif
{
	if (edges)
		*edges = NULL;
	return capture_info(stream, status, id, graph, dependencies, n);
}

API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
	return cudaSuccess;
}

API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags)
{
	function(stream, cudaSuccess, data);
	return cudaSuccess;
}

API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	function(data);
	return cudaSuccess;
}

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	ENTER();
	return result(driver.cuEventCreate(event, flags));
}

API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	ENTER();
	return result(driver.cuEventDestroy(event));
}

API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuEventRecord(event, stream));
}

API cudaError_t cudaEventQuery(cudaEvent_t event)
{
	ENTER();
	return result(driver.cuEventQuery(event));
}

API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	return cudaEventRecord(event, stream);
}

API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
	ENTER();
	return result(driver.cuEventElapsedTime(milliseconds, from, to));
}

API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	return cudaEventCreateWithFlags(event, 0);
}

API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	BEGIN();
	return result(driver.cuGraphCreate(graph, flags));
}

API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	BEGIN();
	return result(driver.cuGraphDestroy(graph));
}

API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	BEGIN();
	return result(driver.cuGraphGetNodes(graph, nodes, n));
}

API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
					 struct cudaMemAllocNodeParams *parameters)
{
	ENTER();
	return result(driver.cuGraphAddMemAllocNode(node, graph, after, n, (CUDA_MEM_ALLOC_NODE_PARAMS *)parameters));
}

API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n, void *address)
{
	ENTER();
	return result(driver.cuGraphAddMemFreeNode(node, graph, after, n, as_device(address)));
}

API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	ENTER();
	return result(driver.cuGraphInstantiate(exec, graph, flags));
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	BEGIN();
	return result(driver.cuGraphExecDestroy(exec));
}

API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER();
	return result(driver.cuGraphLaunch(exec, stream));
}

API cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER();
	return result(ptsz.launch(exec, stream));
}

API cudaError_t cudaDeviceGraphMemTrim(int number)
{
	BEGIN();
	return result(driver.cuDeviceGraphMemTrim(number));
}

API cudaError_t cudaDeviceGetGraphMemAttribute(int number, cudaGraphMemAttributeType attribute, void *value)
{
	BEGIN();
	return result(driver.cuDeviceGetGraphMemAttribute(number, (CUgraphMem_attribute)attribute, value));
}

/* ---- kernels: registered, never run ---- */

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *function)
{
	memset(a, 0, sizeof *a);
	a->maxThreadsPerBlock = 1024;
	a->numRegs = 32;
	a->ptxVersion = a->binaryVersion = 90;
	a->maxDynamicSharedSizeBytes = 49152;
	return cudaSuccess;
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int size, size_t shared)
{
	*blocks = 2;
	return cudaSuccess;
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int size, size_t shared, unsigned flags)
{
	*blocks = 2;
	return cudaSuccess;
}

API cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	ENTER();
	return cudaSuccess;
}

API cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	ENTER();
	return cudaSuccess;
}

API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
	ENTER();
	return cudaSuccess;
}

/* What the compiler generates calls of. */
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	memset(grid, 0, sizeof *grid);
	memset(block, 0, sizeof *block);
	*shared = 0;
	*(void **)stream = NULL;
	return cudaSuccess;
}

API void **__cudaRegisterFatBinary(void *binary)
{
	static void *handle[2];
	return handle;
}

API cudaError_t __cudaGetKernel(void **kernel, const void *function)
{
	*kernel = (void *)(uintptr_t)function;
	return cudaSuccess;
}

API cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	ENTER();
	return cudaSuccess;
}

/* ---- the driver's functions, for the program ---- */

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
						 cudaDriverEntryPointQueryResult *found)
{
	CUdriverProcAddressQueryResult state = 0;
	begin();
	if (!get_address)
		return failed(cudaErrorInsufficientDriver);
	/* cudaEnablePerThreadDefaultStream and the driver's flag are both 2 */
	get_address(name, function, (int)version, flags, &state);
	if (found)
		*found = (cudaDriverEntryPointQueryResult)state;
	return cudaSuccess;
}

API cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, cudaDriverEntryPointQueryResult *found)
{
	return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, found);
}

API cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **function, unsigned long long flags, cudaDriverEntryPointQueryResult *found)
{
	return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags ? flags : 2, found);
}

API cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **function, unsigned version, unsigned long long flags,
						      cudaDriverEntryPointQueryResult *found)
{
	return cudaGetDriverEntryPointByVersion(name, function, version, flags ? flags : 2, found);
}
