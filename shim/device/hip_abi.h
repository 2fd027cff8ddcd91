/* What the hooks need of HIP's ABI, in our own words: only what is passed by value or looked into has its true shape.
 * With MT_HIP_VENDOR defined AMD's headers take its place, so that the compiler compares the hook table with them. */
#ifndef MT_DEVICE_HIP_ABI_H
#define MT_DEVICE_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MT_HIP_VENDOR
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#else

typedef int hipError_t;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef int hipMemAllocationHandleType;
typedef void *hipExternalMemory_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipArray *hipArray_t;
typedef struct hipMipmappedArray *hipMipmappedArray_t;
typedef struct hipMemPoolPtrExportData hipMemPoolPtrExportData;
typedef int hipDriverProcAddressQueryResult;
typedef int hipDriverEntryPointQueryResult;
typedef struct {
	char reserved[64];
} hipIpcMemHandle_t;
typedef struct {
	char bytes[16];
} hipUUID;
typedef struct {
	size_t width, height, depth;
} hipExtent;
typedef struct {
	void *ptr;
	size_t pitch, xsize, ysize;
} hipPitchedPtr;
typedef struct {
	int x, y, z, w, f;
} hipChannelFormatDesc;
typedef struct {
	size_t Width, Height;
	int Format;
	unsigned NumChannels;
} HIP_ARRAY_DESCRIPTOR;
typedef struct {
	size_t Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} HIP_ARRAY3D_DESCRIPTOR;
typedef struct {
	int type, id;
} hipMemLocation;
typedef struct {
	int type, requestedHandleType;
	hipMemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[4];
} hipMemAllocationProp;
typedef struct {
	int allocType, handleTypes;
	hipMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
} hipMemPoolProps;
typedef struct {
	hipMemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
} hipMemAllocNodeParams;
typedef struct {
	unsigned long long offset, size;
	unsigned flags; /* from 5.5 on more words follow */
} hipExternalMemoryBufferDesc;

#endif
#endif
