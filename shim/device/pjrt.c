/*
 * Buffers of PJRT plugins (JAX). A plugin gives out one table of functions, by GetPjrtApi, which is looked up by dlsym:
 * our wrapper returns a copy of the table with functions of ours in it. Whoever dispatches calls these on the thread
 * that runs the Python line.
 *
 *   on a device   a buffer is a block of that device: of CUDA's and ROCm's it is one of a pool, since the driver's
 *                 hooks see where the pool has its memory; of any other's nothing else is seen (pjrt_buffers.c). It
 *                 ends when it is deleted, destroyed or donated
 *   temporaries   what an executable takes on a device while it runs is a block for the moment of that call
 *   on the host   (a plugin for the CPU, pinned memory) the memory is malloc's or the driver's, and is recorded there
 *   a view        of memory that somebody else has: no block
 *
 * What is known only when a buffer is ready is told then (pjrt_ready.c): whose memory of the host it is, where on CUDA
 * it lies, that memory ran out.
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

static struct mt_pjrt apis[MT_INSTANCES];

/* Is the argument's field there, by what the caller says of its length? */
#define HAS(args, field) \
	((args) && (args)->head.bytes >= (size_t)((const char *)(&(args)->field + 1) - (const char *)(args)))

static struct mt_pjrt_map programs;

void mt_pjrt_reset(void)
{
	mt_lock_reset(&mt_pjrt_lock);
	programs = (struct mt_pjrt_map){ NULL, 0, 0 }; /* it may have been in the middle of a change */
	mt_pjrt_buffers_reset();
	mt_pjrt_ready_reset();
}

/* ---- buffers ---- */

/* What a call of the program's gives out. */
struct birth {
	struct mt_pjrt *api;
	unsigned hook;
	const void *caller;
	int later; /* the plugin may allocate it later, on another thread */
	int follows;
	uint64_t call;
};

static uint64_t new_call(void)
{
	static uint64_t calls;

	return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

static void born(const struct birth *b, void *buffer)
{
	struct mt_pjrt_buffer it = {
		.api = b->api, .buffer = buffer, .hook = b->hook, .call = b->call, .follows = b->follows != 0
	};
	int on_host;

	if (!buffer)
		return;
	mt_record_mute(1);
	on_host = mt_pjrt_flag(b->api, PJRT_Buffer_IsOnCpu, buffer);
	if (!on_host)
		it.place = mt_pjrt_place(b->api, buffer);
	if (on_host || it.place)
		it.bytes = mt_pjrt_bytes(b->api, buffer);
	mt_record_mute(0);
	if (it.place)
		mt_pjrt_begin(&it, b->caller);
	if (it.place || (on_host && b->later))
		mt_pjrt_watch(&it);
}

/* Where a call was to make a buffer: what it says itself, else what it is made of. NULL = it says nothing. */
struct wish {
	void *device, *memory;
	const void *from;
};

static uint64_t place_of(struct mt_pjrt *api, const struct wish *w)
{
	uint64_t place = 0;

	mt_record_mute(1);
	if (w->device)
		place = mt_pjrt_place_of_device(api, w->device);
	else if (w->memory)
		place = mt_pjrt_place_of_memory(api, w->memory);
	mt_record_mute(0);
	return place || w->device || w->memory ? place : mt_pjrt_known_place(w->from);
}

/* A call gave out an error. Where nothing says which device it is of, it is that of the latest buffer. */
static void refused(const struct birth *b, void *error, const struct wish *w)
{
	const uint64_t place = place_of(b->api, w);
	const struct mt_pjrt_buffer it = { .api = b->api,
					   .place = place || w->device || w->memory ? place : b->api->place,
					   .hook = b->hook,
					   .call = b->call,
					   .follows = b->follows != 0 };

	mt_pjrt_failed(&it, error, b->caller);
}

static void dead(unsigned hook, const void *buffer)
{
	const struct mt_pjrt_known known = mt_pjrt_take(buffer);

	mt_pjrt_unwatch(buffer);
	mt_pjrt_end(hook, &known);
}

/* NULL = there is none. */
static void *input(const struct pjrt_LoadedExecutable_Execute *a, size_t device, size_t number)
{
	const int is_there = HAS(a, input_count) && a->inputs && device < a->device_count && number < a->input_count;

	return is_there && a->inputs[device] ? a->inputs[device][number] : NULL;
}

/* For each input of a call. Returns how often f() did not return 0. */
static unsigned each_input(const struct mt_pjrt *api, const struct pjrt_LoadedExecutable_Execute *a,
			   int (*f)(const struct mt_pjrt *api, void *buffer))
{
	unsigned n = 0;

	for (size_t d = 0; HAS(a, input_count) && d < a->device_count; d++)
		for (size_t i = 0; i < a->input_count; i++) {
			void *buffer = input(a, d, i);
			n += buffer && f(api, buffer);
		}
	return n;
}

static int hold(const struct mt_pjrt *api, void *buffer)
{
	(void)api;
	return mt_pjrt_hold(buffer) || mt_pjrt_has_failed(buffer);
}

/* An input that was donated is deleted when the call returns, whether it went well or not. */
static int release(const struct mt_pjrt *api, void *buffer)
{
	int gone = 0;

	mt_pjrt_release(buffer);
	if (!mt_pjrt_known_place(buffer))
		return 0;
	mt_record_mute(1);
	gone = mt_pjrt_flag(api, PJRT_Buffer_IsDeleted, buffer);
	mt_record_mute(0);
	if (gone)
		dead(MT_HOOK_PJRT_LoadedExecutable_Execute, buffer);
	return gone;
}

/* What a program gives out, and takes meanwhile, is asked once. Of what is known of it the value is the number of its
 * outputs plus 1, and the address its temporary bytes. */
static struct mt_pjrt_known program_of(const struct mt_pjrt *api, void *executable)
{
	struct mt_pjrt_known known = mt_pjrt_look_up(&programs, executable, 0);

	if (!known.value) {
		mt_record_mute(1);
		known.handle = executable;
		known.value = mt_pjrt_outputs(api, executable, &known.addr) + 1;
		mt_record_mute(0);
		mt_pjrt_keep(&programs, &known);
	}
	return known;
}

/* What a call gives out on a device, then what it took there beside this while it ran: whatever the plugin frees first,
 * all of it was there at once. */
static void given_out(const struct birth *b, const struct pjrt_LoadedExecutable_Execute *a, size_t d,
		      const struct mt_pjrt_known *program)
{
	const size_t count = HAS(a, outputs) && a->outputs && a->outputs[d] ? (size_t)program->value - 1 : 0;
	uint64_t place;

	for (size_t i = 0; i < count; i++)
		born(b, a->outputs[d][i]);
	place = mt_pjrt_known_place(count ? a->outputs[d][0] : input(a, d, 0));
	if (program->addr && place)
		mt_pjrt_temporary(b->hook, place, program->addr, b->caller);
}

/* ---- the functions of our tables ---- */

/* Whether there is something to do beside the real call. */
static int is_off(void)
{
	return mt_process_state() == MT_STATE_OFF || !mt_record_enter();
}

#define REAL(api, name) (api)->real->function[PJRT_##name]

#define BUFFER_OUT(name, type, later, ...) \
	static void *body_##name(struct mt_pjrt *api, struct type *a, const void *caller) \
	{ \
		struct birth birth = { api, MT_HOOK_PJRT_##name, caller, later, 0, 0 }; \
		const struct wish wish = { __VA_ARGS__ }; \
		void *error; \
		int kept = errno; \
		birth.follows = mt_pjrt_is_pending(wish.from) || mt_pjrt_has_failed(wish.from); \
		errno = kept; \
		error = REAL(api, name)(a); \
		kept = errno; \
		if (!is_off()) { \
			birth.call = new_call(); \
			if (error) \
				refused(&birth, error, &wish); \
			else if (HAS(a, buffer)) \
				born(&birth, a->buffer); \
		} \
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

#define GIVEN(field) HAS(a, field) ? a->field : NULL

BUFFER_OUT(Client_BufferFromHostBuffer, pjrt_Client_BufferFromHostBuffer, 0, .device = GIVEN(device),
	   .memory = GIVEN(memory))
BUFFER_OUT(Client_CreateUninitializedBuffer, pjrt_Client_CreateUninitializedBuffer, 0, .device = GIVEN(device),
	   .memory = GIVEN(memory))
BUFFER_OUT(Buffer_CopyToDevice, pjrt_copy, 1, .device = GIVEN(to), .from = GIVEN(from))
BUFFER_OUT(Buffer_CopyToMemory, pjrt_copy, 1, .memory = GIVEN(to), .from = GIVEN(from))
BUFFER_OUT(AsyncHostToDeviceTransferManager_RetrieveBuffer, pjrt_AsyncHostToDeviceTransferManager_RetrieveBuffer, 0,
	   .from = NULL)
BUFFER_END(Buffer_Destroy)
BUFFER_END(Buffer_Delete)

static void *body_LoadedExecutable_Execute(struct mt_pjrt *api, struct pjrt_LoadedExecutable_Execute *a,
					   const void *caller)
{
	struct birth birth = { api, MT_HOOK_PJRT_LoadedExecutable_Execute, caller, 1, 0, 0 };
	void *error;
	int kept = errno;

	birth.follows = each_input(api, a, hold) != 0;
	errno = kept;
	error = REAL(api, LoadedExecutable_Execute)(a);
	kept = errno;
	each_input(api, a, release);
	if (!is_off()) {
		birth.call = new_call();
		if (error)
			refused(&birth, error, &(struct wish){ .device = GIVEN(device), .from = input(a, 0, 0) });
		if (!error && HAS(a, device_count)) {
			const struct mt_pjrt_known program = program_of(api, a->executable);
			for (size_t d = 0; d < a->device_count; d++)
				given_out(&birth, a, d, &program);
		}
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
			api->vendor = mt_pjrt_vendor_called(name->text, name->bytes);
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
		mt_pjrt_look_up(&programs, a->thing, 1);
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
