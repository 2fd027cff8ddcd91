/*
 * Buffers of PJRT plugins (JAX). A plugin gives out one table of functions, by GetPjrtApi, which is looked up by dlsym:
 * our wrapper returns a copy of the table with functions of ours in it. Whoever dispatches calls these on the thread
 * that runs the Python line.
 *
 *   on a device   a buffer is a block of that device: of CUDA's it is one of a pool, since the driver's hooks see where
 *                 the pool has its memory; of any other's nothing else is seen. Where it lies is not asked for, as a
 *                 plugin may wait until it has the memory; so its address is made up. It ends when it is deleted,
 *                 destroyed or donated.
 *   on the host   (a plugin for the CPU, pinned memory) the memory is malloc's or the driver's, and is recorded there;
 *                 pjrt_host.c tells whose it is
 *   a view        of memory that somebody else has: no block
 *
 * A plugin's answers are asked for inside the program's own calls, before these return: nobody else knows the new
 * buffers yet. What the plugin allocates meanwhile is not the program's.
 */
#include <errno.h>
#include <string.h>

#include "shim/base/sys.h"
#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/device/pjrt.h"
#include "shim/device/pjrt_internal.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/record.h"

enum { DEVICES = 64 };

static struct mt_pjrt apis[MT_INSTANCES];

/* Is the argument's field there, by what the caller says of its length? */
#define HAS(args, field) \
	((args) && (args)->head.bytes >= (size_t)((const char *)(&(args)->field + 1) - (const char *)(args)))

/* ---- devices ---- */

/* Devices that are not CUDA's, by ordinal: the number that the plugin gives it, or the next that is free, as another
 * plugin may have one of that number. */
static struct {
	const struct mt_pjrt *api;
	void *device;
} others[DEVICES];

/* Called by mt_device_id(). */
static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	const struct mt_pjrt *api = others[ordinal].api;
	struct pjrt_Device_MemoryStats *stats =
		PJRT_ARGS(struct pjrt_Device_MemoryStats, .device = others[ordinal].device);
	struct pjrt_text *kind = PJRT_ARGS(struct pjrt_text, .thing = NULL);

	mt_record_mute(1);
	kind->thing = mt_pjrt_thing(api, PJRT_Device_GetDescription, others[ordinal].device);
	if (kind->thing && mt_pjrt_ask(api, PJRT_DeviceDescription_Kind, kind) && kind->text)
		memcpy(facts->model, kind->text,
		       kind->bytes < sizeof(facts->model) ? kind->bytes : sizeof(facts->model) - 1);
	if (mt_pjrt_ask(api, PJRT_Device_MemoryStats, stats) && stats->limit_known && stats->limit > 0)
		facts->total = (uint64_t)stats->limit;
	mt_record_mute(0);
}

/* Where a buffer lies: what the map keeps of it. 0 = unknown. */
enum { IS_CUDA = 1 << 8, IS_OTHER = 1 << 9, ORDINAL = 0xff };

static uint64_t other_of(const struct mt_pjrt *api, void *device, unsigned number)
{
	for (unsigned i = number < DEVICES ? number : 0; i < DEVICES; i++) {
		if (!others[i].device) {
			others[i].api = api;
			others[i].device = device;
		}
		if (others[i].device == device)
			return IS_OTHER | i;
	}
	return 0;
}

static uint64_t place_of(const struct mt_pjrt *api, void *buffer)
{
	void *device = mt_pjrt_thing(api, PJRT_Buffer_Device, buffer);
	struct pjrt_one *q = PJRT_ARGS(struct pjrt_one, .thing = device);
	uint64_t place = 0;

	if (!device || !mt_pjrt_ask(api, PJRT_Device_LocalHardwareId, q) || q->out.number < 0)
		return 0;
	if (api->is_cuda)
		return q->out.number < DEVICES ? (uint64_t)(IS_CUDA | q->out.number) : 0;
	if (mt_lock_take(&mt_pjrt_lock)) {
		place = other_of(api, device, (unsigned)q->out.number);
		mt_lock_drop(&mt_pjrt_lock);
	}
	return place;
}

/* ---- buffers ---- */

static struct mt_pjrt_map buffers, programs;

/* Nonzero: it is kept. */
static int keep(struct mt_pjrt_map *map, const struct mt_pjrt_known *known)
{
	int kept = 0;

	if (mt_lock_take(&mt_pjrt_lock)) {
		kept = mt_pjrt_put(map, known);
		mt_lock_drop(&mt_pjrt_lock);
	}
	return kept;
}

/* Its value is 0 if there is none. */
static struct mt_pjrt_known look_up(struct mt_pjrt_map *map, const void *handle, int takes)
{
	struct mt_pjrt_known result = { NULL, 0, 0 }, *at;

	if (mt_pjrt_is_empty(map) || !mt_lock_take(&mt_pjrt_lock))
		return result;
	at = mt_pjrt_find(map, handle);
	if (at)
		result = *at;
	if (at && takes)
		mt_pjrt_cut(map, at);
	mt_lock_drop(&mt_pjrt_lock);
	return result;
}

void mt_pjrt_reset(void)
{
	mt_lock_reset(&mt_pjrt_lock);
	buffers = programs = (struct mt_pjrt_map){ NULL, 0, 0 }; /* it may have been in the middle of a change */
	mt_pjrt_host_reset();
}

struct birth {
	const struct mt_pjrt *api;
	unsigned hook;
	const void *caller;
	int later; /* the plugin may allocate it later, on another thread */
};

/* Addresses that no memory has, each for one buffer. */
static uint64_t address_for(uint64_t bytes)
{
	static uint64_t next = (uint64_t)1 << 62;

	return __atomic_fetch_add(&next, (bytes | 255) + 1, __ATOMIC_RELAXED);
}

static struct mt_device_event event_of(unsigned hook, const struct mt_pjrt_known *known)
{
	const uint64_t place = known->value;

	return (struct mt_device_event){
		.hook = hook,
		.class = place & IS_CUDA ? MT_CLASS_POOL : MT_CLASS_DEVICE,
		.addr = known->addr,
		.device = place & IS_CUDA ? mt_cuda_id((int)(place & ORDINAL))
					  : mt_device_id(MT_BACKEND_OTHER, (unsigned)(place & ORDINAL), describe)
	};
}

static void born(const struct birth *b, void *buffer)
{
	struct mt_pjrt_known known = { .handle = buffer };
	struct mt_device_event event;
	uint64_t bytes = 0;
	int on_host;

	if (!buffer)
		return;
	mt_record_mute(1);
	on_host = mt_pjrt_flag(b->api, PJRT_Buffer_IsOnCpu, buffer);
	if (!on_host && (known.value = place_of(b->api, buffer)) != 0)
		bytes = mt_pjrt_bytes(b->api, buffer);
	mt_record_mute(0);
	if (on_host && b->later)
		mt_pjrt_host_born(b->api, buffer);
	if (!known.value)
		return;
	known.addr = address_for(bytes);
	event = event_of(b->hook, &known);
	event.bytes = bytes;
	event.caller = b->caller;
	if (keep(&buffers, &known))
		mt_device_note(MT_DEVICE_ALLOC, &event);
	else
		mt_process_lost(1);
}

static void dead(unsigned hook, const void *buffer)
{
	const struct mt_pjrt_known known = look_up(&buffers, buffer, 1);
	struct mt_device_event event;

	mt_pjrt_host_dead(buffer);
	if (!known.value)
		return;
	event = event_of(hook, &known);
	mt_device_note(MT_DEVICE_FREE, &event);
}

/* For each input of a call. */
static void each_input(const struct mt_pjrt *api, const struct pjrt_LoadedExecutable_Execute *a,
		       void (*f)(const struct mt_pjrt *api, void *buffer))
{
	for (size_t d = 0; HAS(a, input_count) && a->inputs && d < a->device_count; d++)
		for (size_t i = 0; a->inputs[d] && i < a->input_count; i++)
			if (a->inputs[d][i])
				f(api, a->inputs[d][i]);
}

static void hold(const struct mt_pjrt *api, void *buffer)
{
	(void)api;
	mt_pjrt_host_hold(buffer);
}

/* An input that was donated is deleted when the call returns, whether it went well or not. */
static void release(const struct mt_pjrt *api, void *buffer)
{
	int gone = 0;

	mt_pjrt_host_release(buffer);
	if (!look_up(&buffers, buffer, 0).value)
		return;
	mt_record_mute(1);
	gone = mt_pjrt_flag(api, PJRT_Buffer_IsDeleted, buffer);
	mt_record_mute(0);
	if (gone)
		dead(MT_HOOK_PJRT_LoadedExecutable_Execute, buffer);
}

/* How many outputs a program has is asked once. */
static size_t output_count(const struct mt_pjrt *api, void *executable)
{
	struct mt_pjrt_known known = look_up(&programs, executable, 0);

	if (!known.value) {
		mt_record_mute(1);
		known = (struct mt_pjrt_known){ .handle = executable, .value = mt_pjrt_outputs(api, executable) + 1 };
		mt_record_mute(0);
		keep(&programs, &known);
	}
	return (size_t)known.value - 1;
}

/* ---- the functions of our tables ---- */

/* Whether there is something to do beside the real call. */
static int is_off(void)
{
	return mt_process_state() == MT_STATE_OFF || !mt_record_enter();
}

#define REAL(api, name) (api)->real->function[PJRT_##name]

#define BUFFER_OUT(name, type, later) \
	static void *body_##name(struct mt_pjrt *api, struct type *a, const void *caller) \
	{ \
		void *error = REAL(api, name)(a); \
		int kept = errno; \
		if (!error && HAS(a, buffer) && !is_off()) \
			born(&(struct birth){ api, MT_HOOK_PJRT_##name, caller, later }, a->buffer); \
		errno = kept; \
		return error; \
	}
#define BUFFER_END(name) \
	static void *body_##name(struct mt_pjrt *api, struct pjrt_one *a, const void *caller) \
	{ \
		int kept = errno; \
		(void)caller; \
		if (HAS(a, thing)) \
			dead(MT_HOOK_PJRT_##name, a->thing); \
		errno = kept; \
		return REAL(api, name)(a); \
	}

BUFFER_OUT(Client_BufferFromHostBuffer, pjrt_Client_BufferFromHostBuffer, 0)
BUFFER_OUT(Client_CreateUninitializedBuffer, pjrt_Client_CreateUninitializedBuffer, 0)
BUFFER_OUT(Buffer_CopyToDevice, pjrt_copy, 1)
BUFFER_OUT(Buffer_CopyToMemory, pjrt_copy, 1)
BUFFER_OUT(AsyncHostToDeviceTransferManager_RetrieveBuffer, pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer, 0)
BUFFER_END(Buffer_Destroy)
BUFFER_END(Buffer_Delete)

static void *body_LoadedExecutable_Execute(struct mt_pjrt *api, struct pjrt_LoadedExecutable_Execute *a,
					   const void *caller)
{
	const struct birth birth = { api, MT_HOOK_PJRT_LoadedExecutable_Execute, caller, 1 };
	void *error;
	int kept = errno;

	each_input(api, a, hold);
	errno = kept;
	error = REAL(api, LoadedExecutable_Execute)(a);
	kept = errno;
	each_input(api, a, release);
	if (!is_off()) {
		size_t count;
		count = !error && HAS(a, outputs) && a->outputs ? output_count(api, a->executable) : 0;
		for (size_t d = 0; count && d < a->device_count; d++)
			for (size_t i = 0; a->outputs[d] && i < count; i++)
				born(&birth, a->outputs[d][i]);
	}
	errno = kept;
	return error;
}

static void *body_Client_Create(struct mt_pjrt *api, struct pjrt_Client_Create *a, const void *caller)
{
	void *error = REAL(api, Client_Create)(a);
	int kept = errno;

	(void)caller;
	if (!error && HAS(a, client) && a->client) {
		struct pjrt_text *name = PJRT_ARGS(struct pjrt_text, .thing = a->client);
		mt_record_mute(1);
		if (mt_pjrt_ask(api, PJRT_Client_PlatformName, name) && name->text)
			api->is_cuda = name->bytes == 4 && !memcmp(name->text, "cuda", 4);
		mt_record_mute(0);
	}
	errno = kept;
	return error;
}

static void *body_LoadedExecutable_Destroy(struct mt_pjrt *api, struct pjrt_one *a, const void *caller)
{
	int kept = errno;

	(void)caller;
	if (HAS(a, thing))
		look_up(&programs, a->thing, 1);
	errno = kept;
	return REAL(api, LoadedExecutable_Destroy)(a);
}

/* ---- tables ---- */

#define BORN(name) \
	static void *in_0_##name(void *a) \
	{ \
		return body_##name(&apis[0], a, MT_CALLER); \
	} \
	static void *in_1_##name(void *a) \
	{ \
		return body_##name(&apis[1], a, MT_CALLER); \
	} \
	static void *in_2_##name(void *a) \
	{ \
		return body_##name(&apis[2], a, MT_CALLER); \
	} \
	static void *in_3_##name(void *a) \
	{ \
		return body_##name(&apis[3], a, MT_CALLER); \
	} \
	static void *in_4_##name(void *a) \
	{ \
		return body_##name(&apis[4], a, MT_CALLER); \
	} \
	static void *in_5_##name(void *a) \
	{ \
		return body_##name(&apis[5], a, MT_CALLER); \
	}
#define DEAD BORN
#define LOOK BORN
#include "shim/hooks/hooks_pjrt.def"
#undef BORN
#undef DEAD
#undef LOOK

static const struct {
	enum pjrt_place place;
	pjrt_function *ours[MT_INSTANCES];
} replaced[] = {
#define BORN(name) { PJRT_##name, { in_0_##name, in_1_##name, in_2_##name, in_3_##name, in_4_##name, in_5_##name } },
#define DEAD       BORN
#define LOOK       BORN
#include "shim/hooks/hooks_pjrt.def"
#undef BORN
#undef DEAD
#undef LOOK
};

/* What we must be able to ask for. */
static int is_usual(const struct pjrt_table *real)
{
	static const uint8_t needed[] = { PJRT_Error_Destroy, PJRT_Buffer_Destroy, PJRT_Buffer_OnDeviceSizeInBytes,
					  PJRT_Buffer_Device, PJRT_Buffer_IsOnCpu };
	size_t count;

	if (real->head.bytes < sizeof(*real) || real->head.bytes > PJRT_TABLE_BYTES || real->version.major != 0)
		return 0;
	count = (real->head.bytes - sizeof(*real)) / sizeof(real->function[0]);
	for (size_t i = 0; i < sizeof(needed); i++)
		if (needed[i] >= count || !real->function[needed[i]])
			return 0;
	return 1;
}

static int fill(unsigned n, const struct pjrt_table *real)
{
	struct mt_pjrt *api = &apis[n];

	if (!api->copy && !(api->copy = mt_sys_pages(PJRT_TABLE_BYTES)))
		return 0;
	memcpy(api->copy, real, real->head.bytes);
	api->count = (real->head.bytes - sizeof(*real)) / sizeof(real->function[0]);
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		if (replaced[i].place < api->count && real->function[replaced[i].place])
			api->copy->function[replaced[i].place] = replaced[i].ours[n];
	/* release: who finds it finds all of it */
	__atomic_store_n(&api->real, real, __ATOMIC_RELEASE);
	return 1;
}

/* The copy of a table, the same each time; the table itself if there can be none. */
static const struct pjrt_table *copy_of(const struct pjrt_table *real)
{
	const struct pjrt_table *result = real;

	if (!real || mt_is_own(real) || !is_usual(real) || !mt_lock_take(&mt_pjrt_lock))
		return real;
	for (unsigned i = 0; i < MT_INSTANCES; i++) {
		if (apis[i].real && apis[i].real != real)
			continue;
		/* again: another plugin may have come to lie where one was unloaded */
		result = fill(i, real) ? apis[i].copy : real;
		break;
	}
	mt_lock_drop(&mt_pjrt_lock);
	if (result == real)
		mt_process_lost(1); /* more plugins than anybody has, or no memory: this one's buffers go unseen */
	return result;
}

/* ---- GetPjrtApi ---- */

static const struct mt_library plugin = { .prefix = "", .linked = 0 };

static const struct pjrt_table *body_GetPjrtApi(struct mt_slot *slot, const void *caller);

MT_ENTRIES0(const struct pjrt_table *, GetPjrtApi)

static const struct mt_wrapped rows[] = { { "GetPjrtApi", &plugin, slots_GetPjrtApi, entries_GetPjrtApi } };
static const struct mt_wrap_table table = { rows, 1 };
MT_SET_ADD(mt_wrap_table, table);

static const struct pjrt_table *body_GetPjrtApi(struct mt_slot *slot, const void *caller)
{
	const struct pjrt_table *(*real)(void) =
		(const struct pjrt_table *(*)(void))(uintptr_t)mt_slot_real(&rows[0], slot, caller);
	const struct pjrt_table *given = real ? real() : NULL;
	int kept = errno;

	if (mt_process_state() != MT_STATE_OFF)
		given = copy_of(given);
	errno = kept;
	return given;
}
