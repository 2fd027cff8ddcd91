/* Prints where things are in the structures that the hooks pass by value or look into, and the numbers that they know: once with our
 * declarations, once with Level Zero's (-DMT_ZE_VENDOR). */
#include <stdio.h>

#include "shim/device/ze_abi.h"

#ifndef MT_ZE_VENDOR
enum { ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES = 3, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES = 7,
       ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES = 0x17, ZE_MEMORY_TYPE_HOST = 1, ZE_MEMORY_TYPE_DEVICE = 2, ZE_MEMORY_TYPE_SHARED = 3,
       ZE_DEVICE_TYPE_GPU = 1, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY = 0x70000002,
       ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY = 0x70000003, ZE_RESULT_ERROR_UNINITIALIZED = 0x78000001 };
#endif

#define FIELD(type, field) \
	printf("%s.%s: %zu, %zu of %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field), sizeof(type));
#define WHOLE(type) printf("%s: %zu, aligned %zu\n", #type, sizeof(type), _Alignof(type));
#define NUMBER(name) printf("%s: %#x\n", #name, (unsigned)name);

int main(void)
{
	FIELD(ze_physical_mem_desc_t, flags)
	FIELD(ze_physical_mem_desc_t, size)
	FIELD(ze_memory_allocation_properties_t, stype)
	FIELD(ze_memory_allocation_properties_t, type)
	FIELD(ze_device_properties_t, stype)
	FIELD(ze_device_properties_t, type)
	FIELD(ze_device_properties_t, uuid)
	FIELD(ze_device_properties_t, name)
	FIELD(ze_device_memory_properties_t, stype)
	FIELD(ze_device_memory_properties_t, totalSize)
	WHOLE(ze_ipc_mem_handle_t)
	WHOLE(ze_result_t)
	WHOLE(ze_memory_access_attribute_t)
	WHOLE(ze_ipc_memory_flags_t)
	NUMBER(ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
	NUMBER(ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES)
	NUMBER(ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES)
	NUMBER(ZE_MEMORY_TYPE_HOST)
	NUMBER(ZE_MEMORY_TYPE_DEVICE)
	NUMBER(ZE_MEMORY_TYPE_SHARED)
	NUMBER(ZE_DEVICE_TYPE_GPU)
	NUMBER(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)
	NUMBER(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)
	NUMBER(ZE_RESULT_ERROR_UNINITIALIZED)
	return 0;
}
