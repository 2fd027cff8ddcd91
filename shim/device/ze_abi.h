/* What the hooks need of Level Zero's ABI, in our own words: only what is passed by value or looked into has its true
 * shape. With MT_ZE_VENDOR defined the header takes its place, so that the compiler compares the hook table with it. */
#ifndef MT_DEVICE_ZE_ABI_H
#define MT_DEVICE_ZE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MT_ZE_VENDOR
#include <level_zero/ze_api.h>
#else

typedef int ze_result_t;
typedef int ze_memory_access_attribute_t;
typedef uint32_t ze_ipc_memory_flags_t;
typedef struct _ze_context_handle_t *ze_context_handle_t;
typedef struct _ze_driver_handle_t *ze_driver_handle_t;
typedef struct _ze_device_handle_t *ze_device_handle_t;
typedef struct _ze_physical_mem_handle_t *ze_physical_mem_handle_t;
typedef struct _ze_device_mem_alloc_desc_t ze_device_mem_alloc_desc_t;
typedef struct _ze_host_mem_alloc_desc_t ze_host_mem_alloc_desc_t;
typedef struct _ze_memory_free_ext_desc_t ze_memory_free_ext_desc_t;
typedef struct {
	char data[64];
} ze_ipc_mem_handle_t;
typedef struct {
	int stype;
	const void *pNext;
	uint32_t flags; /* bit 1: of the host */
	size_t size;
} ze_physical_mem_desc_t;
typedef struct {
	int stype; /* 0x17 */
	void *pNext;
	int type; /* 1 host, 2 device, 3 shared */
	uint64_t id, pageSize;
} ze_memory_allocation_properties_t;
typedef struct {
	uint8_t id[16];
} ze_device_uuid_t;
typedef struct {
	int stype; /* 3 */
	void *pNext;
	int type; /* 1 GPU */
	uint32_t vendorId, deviceId, flags, subdeviceId, coreClockRate;
	uint64_t maxMemAllocSize;
	uint32_t maxHardwareContexts, maxCommandQueuePriority, numThreadsPerEU, physicalEUSimdWidth, numEUsPerSubslice;
	uint32_t numSubslicesPerSlice, numSlices;
	uint64_t timerResolution;
	uint32_t timestampValidBits, kernelTimestampValidBits;
	ze_device_uuid_t uuid;
	char name[256];
} ze_device_properties_t;
typedef struct {
	int stype; /* 7 */
	void *pNext;
	uint32_t flags, maxClockRate, maxBusWidth;
	uint64_t totalSize;
	char name[256];
} ze_device_memory_properties_t;

#endif
#endif
