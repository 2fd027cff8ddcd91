/* Prints where things are in the structures that the hooks pass by value or look into, and the numbers that they know: once with our
 * declarations, once with AMD's (-DMT_HIP_VENDOR). */
#include <stdio.h>

#include "shim/device/hip_abi.h"

#ifndef MT_HIP_VENDOR
enum { HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, hipErrorOutOfMemory = 2, hipErrorDeinitialized = 4, hipErrorNoDevice = 100 };
enum { hipMemLocationTypeDevice = 1, hipStreamCaptureStatusActive = 1, HIP_AD_FORMAT_HALF = 0x10, HIP_AD_FORMAT_FLOAT = 0x20 };
#endif

#define FIELD(type, field) \
	printf("%s.%s: %zu, %zu of %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field), sizeof(type));
#define START(type, field) /* of a structure that a newer major makes longer */ \
	printf("%s.%s: %zu, %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field));
#define WHOLE(type) printf("%s: %zu, aligned %zu\n", #type, sizeof(type), _Alignof(type));
#define NUMBER(name) printf("%s: %d\n", #name, (int)name);

int main(void)
{
	START(hipMemAllocationProp, location.type)
	START(hipMemAllocationProp, location.id)
	FIELD(HIP_ARRAY_DESCRIPTOR, Width)
	FIELD(HIP_ARRAY_DESCRIPTOR, Height)
	FIELD(HIP_ARRAY_DESCRIPTOR, Format)
	FIELD(HIP_ARRAY_DESCRIPTOR, NumChannels)
	FIELD(HIP_ARRAY3D_DESCRIPTOR, Depth)
	FIELD(HIP_ARRAY3D_DESCRIPTOR, Format)
	FIELD(HIP_ARRAY3D_DESCRIPTOR, Flags)
	START(hipExternalMemoryBufferDesc, size)
	FIELD(hipExtent, depth)
	FIELD(hipPitchedPtr, ptr)
	FIELD(hipPitchedPtr, pitch)
	FIELD(hipChannelFormatDesc, w)
	FIELD(hipChannelFormatDesc, f)
	WHOLE(hipUUID)
	WHOLE(hipIpcMemHandle_t)
	WHOLE(hipError_t)
	WHOLE(hipMemAllocationHandleType)
	NUMBER(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
	NUMBER(hipErrorOutOfMemory)
	NUMBER(hipErrorDeinitialized)
	NUMBER(hipErrorNoDevice)
	NUMBER(hipMemLocationTypeDevice)
	NUMBER(hipStreamCaptureStatusActive)
	NUMBER(HIP_AD_FORMAT_HALF)
	NUMBER(HIP_AD_FORMAT_FLOAT)
#if !defined(HIP_VERSION) || HIP_VERSION >= 50500000
	FIELD(hipMemAllocNodeParams, bytesize)
	FIELD(hipMemAllocNodeParams, dptr)
#endif
	return 0;
}
