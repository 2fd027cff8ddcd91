/*
 * The hooks of Level Zero, from hooks_ze.def. The loader's functions call those of Intel's driver, which have the same
 * names: the outermost call is the event.
 *
 * A call names its device by a handle. Its number is its place among the GPUs that Level Zero lists. A part of a device
 * counts as the device. No call leaves anything behind that the program could ask for, so what must be known is asked
 * when it is needed; what a free ends is asked before it.
 */
#include <errno.h>
#include <string.h>

#include "format/output_name.h"
#include "shim/base/sys.h"
#include "shim/device/device.h"
#include "shim/device/ze.h"
#include "shim/device/ze_abi.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"

enum {
	OUT_OF_HOST_MEMORY = 0x70000002,
	OUT_OF_DEVICE_MEMORY = 0x70000003,
	UNINITIALIZED = 0x78000001, /* what a call is answered that no library is there for */
};

enum { HOST = 1, DEVICE = 2, SHARED = 3 }; /* ze_memory_type_t */

/* ---- questions ---- */

static const struct mt_library library = { .prefix = "libze_loader.so",
					   .linked = 1,
					   .link = { { "libze_loader.so.1", NULL } } };

/* clang-format off */
#define QUESTIONS(Q)                                                                     \
	Q(zeDriverGet, (uint32_t *, ze_driver_handle_t *))                               \
	Q(zeDeviceGet, (ze_driver_handle_t, uint32_t *, ze_device_handle_t *))           \
	Q(zeDeviceGetMemoryProperties, (ze_device_handle_t, uint32_t *, ze_device_memory_properties_t *)) \
	Q(zeDeviceGetProperties, (ze_device_handle_t, ze_device_properties_t *))         \
	Q(zeDeviceGetRootDevice, (ze_device_handle_t, ze_device_handle_t *))             \
	Q(zeMemGetAddressRange, (ze_context_handle_t, const void *, void **, size_t *))  \
	Q(zeMemGetAllocProperties,                                                       \
	  (ze_context_handle_t, const void *, ze_memory_allocation_properties_t *, ze_device_handle_t *))
/* clang-format on */

static struct {
#define Q(name, params) ze_result_t(*name) params;
	QUESTIONS(Q)
#undef Q
} ask;

static void look_up(void)
{
#define Q(name, params) ask.name = (ze_result_t(*) params)(uintptr_t)mt_library_symbol(&library, #name);
	QUESTIONS(Q)
#undef Q
}

static struct mt_asked asked = { .library = &library, .name = "zeDeviceGet", .look_up = look_up };

int mt_ze_is_there(void)
{
	return mt_asked_there(&asked);
}

#define CAN(name) (mt_asked_there(&asked) && ask.name)

static uint64_t range(ze_context_handle_t c, const void *p)
{
	void *base;
	size_t bytes;

	return CAN(zeMemGetAddressRange) && ask.zeMemGetAddressRange(c, p, &base, &bytes) == 0 ? bytes : 0;
}

/* p is evaluated after success alone. */
#define range_of(status, c, p) ((status) ? 0 : range(c, p))

/* ---- devices ---- */

#define DRIVERS 8u

static ze_device_handle_t devices[MT_ORDINALS]; /* GPUs; written once */
static uint32_t device_count;
static uint8_t listed;

static int is_gpu(ze_device_handle_t device)
{
	ze_device_properties_t p = { .stype = 3 };

	return ask.zeDeviceGetProperties(device, &p) == 0 && p.type == 1;
}

/* Threads that come here at once write the same. */
static void list_devices(void)
{
	ze_driver_handle_t drivers[DRIVERS];
	ze_device_handle_t found[MT_ORDINALS];
	uint32_t count = DRIVERS, n = 0, here;

	if (!CAN(zeDriverGet) || !ask.zeDeviceGet || !ask.zeDeviceGetProperties ||
	    ask.zeDriverGet(&count, drivers) != 0)
		return;
	for (uint32_t i = 0; i < count && i < DRIVERS; i++) {
		here = MT_ORDINALS;
		if (ask.zeDeviceGet(drivers[i], &here, found) != 0)
			continue;
		for (uint32_t k = 0; k < here && k < MT_ORDINALS && n < MT_ORDINALS; k++)
			if (is_gpu(found[k]))
				devices[n++] = found[k];
	}
	device_count = n;
	__atomic_store_n(&listed, 1, __ATOMIC_RELEASE);
}

static int place_in_list(ze_device_handle_t device)
{
	for (uint32_t i = 0; i < device_count; i++)
		if (devices[i] == device)
			return (int)i;
	return -1;
}

static int ordinal_of(ze_device_handle_t device)
{
	ze_device_handle_t root = NULL;
	int ordinal;

	if (!device)
		return -1;
	if (!__atomic_load_n(&listed, __ATOMIC_ACQUIRE))
		list_devices();
	ordinal = place_in_list(device);
	if (ordinal < 0 && CAN(zeDeviceGetRootDevice) && ask.zeDeviceGetRootDevice(device, &root) == 0 && root)
		ordinal = place_in_list(root);
	return ordinal;
}

static void write_uuid(char *to, char *end, const ze_device_uuid_t *uuid)
{
	static const char digits[] = "0123456789abcdef";

	to = mt_put(to, end, "GPU-");
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[uuid->id[i] >> 4];
		*to++ = digits[uuid->id[i] & 15];
	}
	*to = 0;
}

static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	ze_device_properties_t p = { .stype = 3 };
	ze_device_memory_properties_t memory[4];
	uint32_t count = sizeof(memory) / sizeof(memory[0]);

	if (ordinal >= device_count || ask.zeDeviceGetProperties(devices[ordinal], &p) != 0)
		return;
	write_uuid(facts->uuid, facts->uuid + sizeof(facts->uuid), &p.uuid);
	mt_put(facts->model, facts->model + sizeof(facts->model), p.name);
	memset(memory, 0, sizeof(memory));
	for (uint32_t i = 0; i < count; i++)
		memory[i].stype = 7;
	if (CAN(zeDeviceGetMemoryProperties) && ask.zeDeviceGetMemoryProperties(devices[ordinal], &count, memory) == 0)
		for (uint32_t i = 0; i < count && i < sizeof(memory) / sizeof(memory[0]); i++)
			facts->total += memory[i].totalSize;
}

uint32_t mt_ze_id(int ordinal)
{
	if (ordinal >= 0 && !__atomic_load_n(&listed, __ATOMIC_ACQUIRE))
		list_devices();
	return ordinal < 0 ? 0 : mt_device_id(MT_BACKEND_XPU, (unsigned)ordinal, describe);
}

static uint32_t id_of(ze_device_handle_t device)
{
	return mt_ze_id(ordinal_of(device));
}

/* ---- what a call leaves in the trace ---- */

static ze_device_handle_t place_of(ze_device_handle_t device, const ze_physical_mem_desc_t *how)
{
	return how && how->flags & 2 ? NULL : device;
}

static __attribute__((noinline)) void note_allocation(struct mt_device_event *event, ze_device_handle_t device,
						      int status)
{
	int kept = errno;

	event->device = id_of(device);
	if (status == OUT_OF_DEVICE_MEMORY || status == OUT_OF_HOST_MEMORY)
		mt_device_note_failure(event, (uint32_t)status, 0, 0);
	else if (!status && event->addr)
		mt_device_note(MT_DEVICE_ALLOC, event);
	errno = kept;
}

/* One function frees all: what it is must be asked while it is there. */
static void look(struct mt_device_event *event, ze_context_handle_t context)
{
	ze_memory_allocation_properties_t p = { .stype = 0x17 };
	ze_device_handle_t device = NULL;
	int kept = errno;

	event->class = MT_CLASS_DEVICE;
	if (CAN(zeMemGetAllocProperties) &&
	    ask.zeMemGetAllocProperties(context, (const void *)(uintptr_t)event->addr, &p, &device) == 0) {
		event->class = p.type == HOST ? MT_CLASS_PINNED : p.type == SHARED ? MT_CLASS_MANAGED : MT_CLASS_DEVICE;
		event->device = id_of(device);
	}
	errno = kept;
}

/* ---- bodies ---- */

enum {
#define HAND(name, params, args) ROW_##name,
#include "shim/hooks/hooks_ze.def"
	ROWS
};

static const struct mt_wrapped rows[ROWS];

#define WITH_SLOT(...) (struct mt_slot * slot, const void *caller, __VA_ARGS__)

/* Begins a body: `real` is the function, called at once if this call is no event. */
#define BODY(name, params, args) \
	ze_result_t(*real) params = (ze_result_t(*) params)(uintptr_t)mt_slot_real(&rows[ROW_##name], slot, caller); \
	ze_result_t status; \
	if (!real) \
		return (ze_result_t)UNINITIALIZED; \
	if (!mt_call_begin()) \
	return real args

#define OUT(class_, name, params, args, address, bytes_, device_) \
	static ze_result_t body_##name WITH_SLOT params \
	{ \
		BODY(name, params, args); \
		status = real args; \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .caller = caller, \
						 .addr = status ? 0 : (uintptr_t)(address), \
						 .bytes = bytes_ }; \
		note_allocation(&event, device_, (int)status); \
		mt_call_end(); \
		return status; \
	}
#define MT_CLASS_ASK 0
#define DROP(class_, name, params, args, address) \
	static ze_result_t body_##name WITH_SLOT params \
	{ \
		BODY(name, params, args); \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .addr = (uintptr_t)(address) }; \
		if (event.addr) { \
			if (MT_CLASS_##class_ == MT_CLASS_ASK) \
				look(&event, c); \
			mt_device_note(MT_DEVICE_FREE, &event); \
		} \
		status = real args; \
		if (status && event.addr) \
			mt_device_note(MT_DEVICE_UNDO, &event); \
		mt_call_end(); \
		return status; \
	}
#include "shim/hooks/hooks_ze.def"

static ze_result_t body_zeVirtualMemMap(struct mt_slot *slot, const void *caller, ze_context_handle_t c, const void *p,
					size_t n, ze_physical_mem_handle_t h, size_t offset,
					ze_memory_access_attribute_t access)
{
	BODY(zeVirtualMemMap,
	     (ze_context_handle_t, const void *, size_t, ze_physical_mem_handle_t, size_t,
	      ze_memory_access_attribute_t),
	     (c, p, n, h, offset, access));
	struct mt_device_event event = { .hook = MT_HOOK_zeVirtualMemMap,
					 .class = MT_CLASS_PHYSICAL,
					 .addr = (uintptr_t)p,
					 .bytes = n,
					 .stream = (uintptr_t)h,
					 .other = offset,
					 .caller = caller };

	status = real(c, p, n, h, offset, access);
	if (!status)
		mt_device_note(MT_DEVICE_MAP, &event);
	mt_call_end();
	return status;
}

static ze_result_t body_zeVirtualMemUnmap(struct mt_slot *slot, const void *caller, ze_context_handle_t c,
					  const void *p, size_t n)
{
	BODY(zeVirtualMemUnmap, (ze_context_handle_t, const void *, size_t), (c, p, n));
	struct mt_device_event event = {
		.hook = MT_HOOK_zeVirtualMemUnmap, .class = MT_CLASS_PHYSICAL, .addr = (uintptr_t)p, .bytes = n
	};

	mt_device_note(MT_DEVICE_UNMAP, &event);
	status = real(c, p, n);
	if (status)
		mt_device_note(MT_DEVICE_UNDO, &event);
	mt_call_end();
	return status;
}

/* ---- entries, exports and the table ---- */

#define HAND(name, params, args) MT_ENTRIES(ze_result_t, name, params, args) MT_LINK(0, name, "MEMTRACE_HOOKS")
#include "shim/hooks/hooks_ze.def"

static const struct mt_wrapped rows[ROWS] = {
#define HAND(name, params, args) { #name, &library, slots_##name, entries_##name },
#include "shim/hooks/hooks_ze.def"
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);
