/*
 * What the hooks need of PJRT's C interface, in our own words: which function is where in a plugin's table, and the
 * arguments that are looked into. As of version 0.81 (xla-cpu-pjrt 0.0.1). Within major version 0 tables and arguments
 * only grow at their end, and each says how long it is.
 */
#ifndef MT_DEVICE_PJRT_ABI_H
#define MT_DEVICE_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each structure begins with. */
struct pjrt_head {
	size_t bytes;
	void *extensions;
};

/* A pointer to such arguments. */
#define PJRT_ARGS(args, ...) \
	&(args) \
	{ \
		.head = { sizeof(args), NULL }, __VA_ARGS__ \
	}

/* All functions take one structure and return NULL or an error, which whoever called has to destroy. (Error_Destroy and
 * Error_Message return nothing.) */
typedef void *pjrt_function(void *arguments);

struct pjrt_table {
	struct pjrt_head head;
	struct {
		struct pjrt_head head;
		int major, minor;
	} version;
	pjrt_function *function[]; /* by enum pjrt_place */
};

enum pjrt_place {
	PJRT_Error_Destroy = 0,
	PJRT_Error_Message = 1,
	PJRT_Error_GetCode = 2,
	PJRT_Event_Destroy = 5,
	PJRT_Event_IsReady = 6,
	PJRT_Event_Error = 7,
	PJRT_Event_OnReady = 9,
	PJRT_Client_Create = 10,
	PJRT_Client_PlatformName = 12,
	PJRT_Client_BufferFromHostBuffer = 22,
	PJRT_DeviceDescription_Kind = 26,
	PJRT_Device_GetDescription = 29,
	PJRT_Device_LocalHardwareId = 31,
	PJRT_Device_MemoryStats = 34,
	PJRT_Memory_Kind = 36,
	PJRT_Memory_AddressableByDevices = 39,
	PJRT_Executable_Destroy = 40,
	PJRT_Executable_NumOutputs = 44,
	PJRT_LoadedExecutable_Destroy = 50,
	PJRT_LoadedExecutable_GetExecutable = 51,
	PJRT_LoadedExecutable_Execute = 55,
	PJRT_Buffer_Destroy = 58,
	PJRT_Buffer_OnDeviceSizeInBytes = 64,
	PJRT_Buffer_Device = 65,
	PJRT_Buffer_Delete = 67,
	PJRT_Buffer_IsDeleted = 68,
	PJRT_Buffer_CopyToDevice = 69,
	PJRT_Buffer_IsOnCpu = 71,
	PJRT_Buffer_ReadyEvent = 72,
	PJRT_Buffer_UnsafePointer = 73,
	PJRT_Buffer_CopyToMemory = 92,
	PJRT_Client_CreateViewOfDeviceBuffer = 93,
	PJRT_Executable_GetCompiledMemoryStats = 96,
	PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer = 104,
	PJRT_Client_CreateUninitializedBuffer = 112
};

/* Arguments with a structure's name of their own are of the function whose place has that name. */

/* Of the functions that are asked about one thing, or end it. */
struct pjrt_one {
	struct pjrt_head head;
	void *thing; /* buffer, device, executable, event, error */
	union {
		void *pointer;
		size_t bytes;
		int number;
		bool flag;
	} out;
};

/* out.number of Error_GetCode */
enum { PJRT_RESOURCE_EXHAUSTED = 8 };

struct pjrt_Memory_AddressableByDevices {
	struct pjrt_head head;
	void *memory;
	void *const *devices;
	size_t count;
};

/* Client_PlatformName, DeviceDescription_Kind, Memory_Kind, Error_Message. */
struct pjrt_text {
	struct pjrt_head head;
	void *thing;
	const char *text;
	size_t bytes;
};

/* `call` has to destroy the error. */
struct pjrt_Event_OnReady {
	struct pjrt_head head;
	void *event;
	void (*call)(void *error, void *argument);
	void *argument;
};

struct pjrt_Client_Create {
	struct pjrt_head head;
	const void *options;
	size_t option_count;
	void *get, *get_argument, *put, *put_argument;
	void *client;
};

struct pjrt_Client_BufferFromHostBuffer {
	struct pjrt_head head;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t dim_count;
	const int64_t *strides;
	size_t stride_count;
	int semantics;
	void *device, *memory, *layout;
	void *done;
	void *buffer;
};

struct pjrt_Client_CreateUninitializedBuffer {
	struct pjrt_head head;
	void *client;
	const int64_t *dims;
	size_t dim_count;
	int type;
	void *layout, *device, *memory;
	void *buffer;
};

struct pjrt_Client_CreateViewOfDeviceBuffer {
	struct pjrt_head head;
	void *client;
	void *data;
	const int64_t *dims;
	size_t dim_count;
	int type;
	void *layout, *device;
	void (*deleted)(void *data, void *argument);
	void *argument;
	intptr_t stream;
	void *buffer;
	void *memory;
};

/* Buffer_CopyToDevice, Buffer_CopyToMemory. */
struct pjrt_copy {
	struct pjrt_head head;
	void *from, *to;
	void *buffer;
};

struct pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer {
	struct pjrt_head head;
	void *manager;
	int index;
	void *buffer;
};

struct pjrt_LoadedExecutable_Execute {
	struct pjrt_head head;
	void *executable;
	void *options;
	void *const *const *inputs; /* of each device */
	size_t device_count, input_count;
	void **const *outputs; /* of each device */
	void **complete;
	void *device;
};

/* Bytes: on the device, and of the host. */
struct pjrt_Executable_GetCompiledMemoryStats {
	struct pjrt_head head;
	void *executable;
	int64_t code, arguments, outputs, aliases, temporary;
	int64_t host[5];
	int64_t peak, total;
	int64_t more[2]; /* of a plugin that fills in what came later */
};

struct pjrt_Device_MemoryStats {
	struct pjrt_head head;
	void *device;
	int64_t in_use;
	int64_t peak;
	bool peak_known;
	int64_t allocations;
	bool allocations_known;
	int64_t largest;
	bool largest_known;
	int64_t limit;
	bool limit_known;
	int64_t reserved;
	bool reserved_known;
	int64_t peak_reserved;
	bool peak_reserved_known;
	int64_t reservable;
	bool reservable_known;
	int64_t largest_free;
	bool largest_free_known;
	int64_t pool;
	bool pool_known;
	int64_t more[2]; /* of a plugin that fills in what came later */
};

#endif
