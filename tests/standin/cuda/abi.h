/* What the stand-ins need of the CUDA ABI, in their own words. With -DVENDOR the toolkit's headers take its place, so that the
 * compiler compares every declaration with the real one (make standin-abi). */
#ifndef STANDIN_ABI_H
#define STANDIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

#ifdef VENDOR
#include <cuda.h>
#else

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUlaunchConfig_st CUlaunchConfig;
typedef struct CUDA_MEMCPY2D_st CUDA_MEMCPY2D;
typedef struct CUDA_MEMCPY3D_st CUDA_MEMCPY3D;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

/* Enumerations are int-sized; only the values used are named. */
typedef int CUdevice_attribute;
typedef int CUpointer_attribute;
typedef int CUmemPool_attribute;
typedef int CUgraphMem_attribute;
typedef int CUmemAllocationHandleType;
typedef int CUmemAllocationGranularity_flags;
typedef int CUmemLocationType;
typedef int CUmemAccess_flags;
typedef int CUmemAllocationType;
typedef int CUarray_format;
typedef int CUstreamCaptureStatus;
typedef int CUstreamCaptureMode;
typedef int CUdriverProcAddressQueryResult;
typedef int CUfunc_cache;
typedef int CUjit_option;
typedef int CUfunction_attribute;
typedef int CUlimit;

enum {
	CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_OPERATING_SYSTEM = 304, CUDA_ERROR_INVALID_HANDLE = 400, CUDA_ERROR_ILLEGAL_STATE = 401, CUDA_ERROR_NOT_FOUND = 500, CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, CUDA_ERROR_NOT_PERMITTED = 800, CUDA_ERROR_NOT_SUPPORTED = 801,
};
enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
       CU_MEM_HANDLE_TYPE_FABRIC = 8 };
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum {
	CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
	CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7, CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
};
enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1, CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2, CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4, CU_POINTER_ATTRIBUTE_BUFFER_ID = 7, CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11, CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
};
enum { CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2 };
enum { CU_GET_PROC_ADDRESS_SUCCESS = 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2 };
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };

typedef struct { char bytes[16]; } CUuuid;
typedef struct { char reserved[64]; } CUipcMemHandle;
typedef struct { char reserved[64]; } CUipcEventHandle;
typedef struct { unsigned char reserved[64]; } CUmemPoolPtrExportData;
typedef struct { CUmemLocationType type; int id; } CUmemLocation;
typedef struct { CUmemLocation location; CUmemAccess_flags flags; } CUmemAccessDesc;
typedef struct {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;
typedef struct {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;
typedef struct {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct { size_t Width, Height; CUarray_format Format; unsigned NumChannels; } CUDA_ARRAY_DESCRIPTOR;
typedef struct { size_t Width, Height, Depth; CUarray_format Format; unsigned NumChannels, Flags; } CUDA_ARRAY3D_DESCRIPTOR;
#endif

/* The numbers of cuDeviceGetAttribute and cudaDeviceGetAttribute that have another answer than 0. */
#define DEVICE_ATTRIBUTES(A) \
	A(1, 1024) A(2, 1024) A(3, 1024) A(4, 64) A(5, 2147483647) A(6, 65535) A(7, 65535) A(8, 49152) A(9, 65536) A(10, 32) A(11, 2147483647) \
	A(12, 65536) A(13, 1980000) A(14, 512) A(16, 132) A(19, 1) A(31, 1) A(36, 2619000) A(37, 5120) A(38, 50 << 20) A(39, 2048) A(40, 3) \
	A(41, 1) A(75, 9) A(76, 0) A(78, 1) A(79, 1) A(80, 1) A(81, 233472) A(82, 65536) A(83, 1) A(87, 64) A(89, 1) A(90, 1) \
	A(91, 1) A(95, 1) A(97, 232448) A(99, 1) A(102, 1) A(103, 1) A(106, 32) A(115, 1) A(125, 1)

#endif
