/* Prints where things are in the structures that the hooks pass by value or look into: once with our declarations, once with NVIDIA's
 * (-DMT_CUDA_VENDOR). */
#include <stdio.h>

#include "shim/device/cuda_abi.h"

#define FIELD(type, field) \
	printf("%s.%s: %zu, %zu of %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field), sizeof(type));
#define START(type, field) /* of a structure that a newer major makes longer */ \
	printf("%s.%s: %zu, %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field));
#define WHOLE(type) printf("%s: %zu, aligned %zu\n", #type, sizeof(type), _Alignof(type));

int main(void)
{
	FIELD(CUmemAllocationProp, location.type)
	FIELD(CUmemAllocationProp, location.id)
	FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize)
	FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, dptr)
	FIELD(struct cudaMemAllocNodeParams, bytesize)
	FIELD(struct cudaMemAllocNodeParams, dptr)
	FIELD(CUDA_ARRAY_DESCRIPTOR_v1, NumChannels)
	FIELD(CUDA_ARRAY_DESCRIPTOR, Format)
	FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels)
	FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, Flags)
	FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth)
	FIELD(CUDA_ARRAY3D_DESCRIPTOR, Format)
	FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags)
	FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size)
	FIELD(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc)
	FIELD(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels)
	START(struct cudaExternalMemoryBufferDesc, size)
	START(struct cudaExternalMemoryMipmappedArrayDesc, formatDesc)
	START(struct cudaExternalMemoryMipmappedArrayDesc, extent)
	START(struct cudaExternalMemoryMipmappedArrayDesc, flags)
	START(struct cudaExternalMemoryMipmappedArrayDesc, numLevels)
	FIELD(struct cudaExtent, depth)
	FIELD(struct cudaPitchedPtr, ptr)
	FIELD(struct cudaPitchedPtr, pitch)
	FIELD(struct cudaChannelFormatDesc, w)
	FIELD(struct cudaChannelFormatDesc, f)
	WHOLE(CUuuid)
	WHOLE(CUipcMemHandle)
	WHOLE(cudaIpcMemHandle_t)
	WHOLE(CUresult)
	WHOLE(cudaError_t)
	WHOLE(CUmemAllocationHandleType)
	WHOLE(CUdriverProcAddressQueryResult)
	WHOLE(enum cudaDriverEntryPointQueryResult)
	return 0;
}
