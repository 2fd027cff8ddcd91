/* What the hooks need of CUDA's ABI, in our own words: only what is passed by value or looked into has its true shape.
 * With MT_CUDA_VENDOR defined the toolkit's headers take its place, so that the compiler compares the hook table with
 * them. */
#ifndef MT_DEVICE_CUDA_ABI_H
#define MT_DEVICE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MT_CUDA_VENDOR
#define __CUDA_API_VERSION_INTERNAL /* every version of a function under its own name */
#include <cuda.h>
#include <cuda_runtime_api.h>
#else

typedef int CUresult;
typedef int cudaError_t;

/* ---- driver ---- */
typedef int CUdevice;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef int CUmemAllocationHandleType;
typedef int CUdriverProcAddressQueryResult;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct {
	char bytes[64];
} CUipcMemHandle;
typedef struct {
	char bytes[16];
} CUuuid;
typedef struct {
	int type, id;
} CUmemLocation;
typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;
typedef struct {
	int allocType, handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
} CUmemPoolProps;
typedef struct {
	CUmemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct {
	unsigned Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct {
	size_t Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;
typedef struct {
	unsigned Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;
typedef struct {
	size_t Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
typedef struct {
	unsigned long long offset, size;
	unsigned flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
typedef struct {
	unsigned long long offset;
	CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
	unsigned numLevels, reserved[16];
} CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;

/* ---- runtime ---- */
typedef CUstream cudaStream_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef struct cudaArray *cudaArray_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef CUexternalMemory cudaExternalMemory_t;
typedef struct {
	char bytes[64];
} cudaIpcMemHandle_t;
struct cudaMemPoolPtrExportData;
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
struct cudaExtent {
	size_t width, height, depth;
};
struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct cudaChannelFormatDesc {
	int x, y, z, w, f;
};
struct cudaExternalMemoryBufferDesc {
	unsigned long long offset, size;
	unsigned flags; /* from 13 on more words follow */
};
struct cudaExternalMemoryMipmappedArrayDesc {
	unsigned long long offset;
	struct cudaChannelFormatDesc formatDesc;
	struct cudaExtent extent;
	unsigned flags, numLevels; /* from 13 on more words follow */
};
struct cudaMemPoolProps {
	CUmemPoolProps driver;
};
struct cudaMemAllocNodeParams {
	struct cudaMemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
};

#endif
#endif
