/* What the stand-in runtime needs of the CUDA runtime's ABI, in its own words; see abi.h. MAJOR is 11, 12 or 13. */
#ifndef STANDIN_ABI_RUNTIME_H
#define STANDIN_ABI_RUNTIME_H

#include "abi.h"

#if MAJOR == 11
#define RUNTIME_VERSION 11070
#elif MAJOR == 12
#define RUNTIME_VERSION 12080
#else
#define RUNTIME_VERSION 13000
#endif

#ifdef VENDOR
#include <cuda_runtime_api.h>
#undef cudaGetDeviceProperties
typedef enum cudaDeviceAttr cudaDeviceAttr;
typedef enum cudaMemcpyKind cudaMemcpyKind;
typedef enum cudaMemPoolAttr cudaMemPoolAttr;
typedef enum cudaMemAllocationHandleType cudaMemAllocationHandleType;
typedef enum cudaGraphMemAttributeType cudaGraphMemAttributeType;
typedef enum cudaStreamCaptureStatus cudaStreamCaptureStatus;
typedef enum cudaStreamCaptureMode cudaStreamCaptureMode;
typedef enum cudaFuncAttribute cudaFuncAttribute;
typedef enum cudaDriverEntryPointQueryResult cudaDriverEntryPointQueryResult;
typedef enum cudaLimit cudaLimit;
#else

typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef const struct cudaMipmappedArray *cudaMipmappedArray_const_t;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct cudaLaunchConfig_st cudaLaunchConfig_t;
typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
typedef int cudaDeviceAttr, cudaMemcpyKind, cudaMemPoolAttr, cudaMemAllocationHandleType, cudaGraphMemAttributeType;
typedef int cudaStreamCaptureStatus, cudaStreamCaptureMode, cudaFuncAttribute, cudaDriverEntryPointQueryResult, cudaLimit;

enum {
	cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInitializationError = 3,
	cudaErrorCudartUnloading = 4, cudaErrorInsufficientDriver = 35, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101,
};
enum { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3 };
enum { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1, cudaDriverEntryPointVersionNotSufficent = 2 };

typedef struct { unsigned x, y, z; } dim3;
struct cudaExtent { size_t width, height, depth; };
struct cudaPitchedPtr { void *ptr; size_t pitch, xsize, ysize; };
struct cudaChannelFormatDesc { int x, y, z, w, f; };
struct cudaMemPoolProps;
struct cudaMemAccessDesc;
struct cudaMemPoolPtrExportData;
struct cudaMemAllocNodeParams;
struct cudaMemcpy3DParms;
struct cudaPointerAttributes {
	int type, device;
	void *devicePointer, *hostPointer;
#if MAJOR >= 13
	long reserved[8];
#endif
};
struct cudaFuncAttributes {
	size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
	int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes;
	int more[24];
};
struct cudaDeviceProp {
	char name[256], uuid[16];
	char rest[(MAJOR == 11 ? 728 : MAJOR == 12 ? 1032 : 1008) - 272];
};
#endif

/* Where the answers of cudaGetDeviceProperties lie in struct cudaDeviceProp: P(field, offset in 12, offset in 13, C type, value).
 * In 11 it is the beginning of 12's. */
#define PROPERTIES(P) \
	P(totalGlobalMem, 288, 288, size_t, total) P(sharedMemPerBlock, 296, 296, size_t, 49152) P(regsPerBlock, 304, 304, int, 65536) \
	P(warpSize, 308, 308, int, 32) P(maxThreadsPerBlock, 320, 320, int, 1024) P(maxThreadsDim[0], 324, 324, int, 1024) \
	P(maxThreadsDim[1], 328, 328, int, 1024) P(maxThreadsDim[2], 332, 332, int, 64) P(maxGridSize[0], 336, 336, int, 2147483647) \
	P(maxGridSize[1], 340, 340, int, 65535) P(maxGridSize[2], 344, 344, int, 65535) P(major, 360, 360, int, 9) P(minor, 364, 364, int, 0) \
	P(textureAlignment, 368, 368, size_t, 512) P(multiProcessorCount, 388, 384, int, 132) P(canMapHostMemory, 400, 392, int, 1) \
	P(concurrentKernels, 576, 560, int, 1) P(pciBusID, 584, 568, int, bus) P(unifiedAddressing, 604, 588, int, 1) \
	P(memoryBusWidth, 612, 592, int, 5120) P(l2CacheSize, 616, 596, int, 50 << 20) P(maxThreadsPerMultiProcessor, 624, 604, int, 2048) \
	P(streamPrioritiesSupported, 628, 608, int, 1) P(sharedMemPerMultiprocessor, 640, 624, size_t, 233472) \
	P(regsPerMultiprocessor, 648, 632, int, 65536) P(managedMemory, 652, 636, int, 1) P(concurrentManagedAccess, 676, 656, int, 1) \
	P(cooperativeLaunch, 688, 668, int, 1) P(sharedMemPerBlockOptin, 696, 672, size_t, 232448) \
	P(maxBlocksPerMultiProcessor, 712, 688, int, 32) P(memoryPoolsSupported, 744, 720, int, 1)

#endif
