/*
 * Ascend's hooks. One macro makes the wrapper of each row of hooks_acl.def; the words its columns are written in
 * follow.
 *
 * CANN is layers of libraries (libascendcl.so, libacl_rt.so, libruntime.so, libascend_hal.so) that call each other
 * through symbols in some versions and not in others. A thread's outermost call is the event; the real functions that
 * we ask about devices are called within it, so they are none.
 *
 * Devices are called by their physical number, which is the same for every process of a machine: what a process calls
 * npu:0 depends on ASCEND_RT_VISIBLE_DEVICES and on what its container was given.
 *
 * aclFinalize is no row: the memory stays where it is until aclrtResetDevice has been called as often as
 * aclrtSetDevice, or until the process ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/fnv.h"
#include "format/output_name.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/lines.h"
#include "shim/base/tables.h"
#include "shim/device/acl.h"
#include "shim/device/device.h"
#include "shim/device/pool.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"

#define OUT_OF_MEMORY 207001
#define NOT_SUPPORTED 207000

/* What aclrtMallocWithCfg wants: `which` 2 = on this device. */
struct acl_attribute {
	int which;
	union {
		uint16_t module;
		uint32_t device;
		uint8_t bytes[8];
	} value;
};
struct acl_config {
	const struct acl_attribute *attributes;
	size_t count;
};

/* Where physical memory shall be: place 0 = the host, 1 = a device, 4 = a node of the host. */
struct acl_physical {
	int handle_type, allocation_type, memory;
	uint32_t place_id;
	int place;
	uint64_t reserved;
};

_Static_assert(sizeof(struct acl_attribute) == 12, "as the library has it");
_Static_assert(sizeof(struct acl_physical) == 32, "as the library has it");

/* Ordinals that are none. */
enum { HERE = -1, HOST = -2 };

/* A call under way. `gave`: what it gives back is recorded. */
struct call {
	struct mt_device_event event;
	int status, gave;
};

/* ---- what we ask the library ---- */

/* libascendcl.so needs all the others. */
static const struct mt_library acl_library = { "libacl_rt", 1, { { "libascendcl.so", NULL } } };
static const struct mt_library driver_library = { "libascend_hal.so", 1, { { "libascendcl.so", NULL } } };

enum question { GET_DEVICE, GET_MEM_INFO, GET_SOC_NAME, GET_LOGIC, GET_PHYSICAL, GET_RANGE, QUESTIONS };

static struct {
	void *real;
	uint32_t generation;
} answers[QUESTIONS];
static char absent;

static void *ask(enum question q)
{
#define NAMES(name) { name, name "Impl" }
	static const char *const names[][2] = { NAMES("aclrtGetDevice"),
						NAMES("aclrtGetMemInfo"),
						NAMES("aclrtGetSocName"),
						NAMES("aclrtGetLogicDevIdByUserDevId"),
						NAMES("aclrtGetPhyDevIdByLogicDevId"),
						NAMES("aclrtMemGetAddressRange") };
#undef NAMES
	uint32_t generation = __atomic_load_n(&mt_wrap_generation, __ATOMIC_RELAXED);
	void *f = __atomic_load_n(&answers[q].real, __ATOMIC_ACQUIRE);

	if (!f || __atomic_load_n(&answers[q].generation, __ATOMIC_RELAXED) != generation) {
		f = NULL;
		for (int i = 0; i < 2 && !f; i++)
			f = mt_library_symbol(&acl_library, names[q][i]);
		__atomic_store_n(&answers[q].generation, generation, __ATOMIC_RELAXED);
		__atomic_store_n(&answers[q].real, f ? f : &absent, __ATOMIC_RELEASE);
	}
	return f == &absent ? NULL : f;
}

static int current_device(void)
{
	int (*get)(int32_t *) = (int (*)(int32_t *))(uintptr_t)ask(GET_DEVICE);
	int32_t device = -1;

	return get && get(&device) == 0 ? device : HOST;
}

/* Of the current device. Chips without high-bandwidth memory have the other kind. */
static int memory_info(size_t *left, size_t *total)
{
	enum { DDR = 0, HBM = 1 };
	int (*get)(int, size_t *, size_t *) = (int (*)(int, size_t *, size_t *))(uintptr_t)ask(GET_MEM_INFO);

	*left = *total = 0;
	return get && ((get(HBM, left, total) == 0 && *total) || (get(DDR, left, total) == 0 && *total));
}

/* ---- devices ---- */

/* The Nth number of the list; N itself where there is none. */
static int visible_device(int n)
{
	const char *list = mt_environ_get("ASCEND_RT_VISIBLE_DEVICES");
	int left = n;

	while (list && *list >= '0' && *list <= '9') {
		int id = (int)mt_number(list, &list, 10);
		if (left-- == 0)
			return id;
		list += *list == ',';
	}
	return n;
}

static int physical_device(int ordinal)
{
	int (*logic)(int32_t, int32_t *) = (int (*)(int32_t, int32_t *))(uintptr_t)ask(GET_LOGIC);
	int (*physical)(int32_t, int32_t *) = (int (*)(int32_t, int32_t *))(uintptr_t)ask(GET_PHYSICAL);
	int32_t id, in_machine;

	if (!logic || logic(ordinal, &id) != 0 || id < 0)
		id = visible_device(ordinal);
	return physical && physical(id, &in_machine) == 0 && in_machine >= 0 ? in_machine : id;
}

static const char *model_name(void)
{
	const char *(*get)(void) = (const char *(*)(void))(uintptr_t)ask(GET_SOC_NAME);
	const char *name = get ? get() : NULL;

	return name ? name : "";
}

static uint64_t sized; /* a bit for each ordinal whose total is recorded */

static int is_sized(int ordinal)
{
	return ordinal < 0 || ordinal >= 64 || __atomic_load_n(&sized, __ATOMIC_RELAXED) >> ordinal & 1;
}

static void describe(unsigned ordinal, struct mt_device_facts *facts)
{
	char *end = facts->uuid + sizeof(facts->uuid);
	int kept = errno;
	size_t left;

	mt_put_number(mt_put(facts->uuid, end, "NPU-"), end, (unsigned)physical_device((int)ordinal));
	mt_put(facts->model, facts->model + sizeof(facts->model), model_name());
	if (current_device() == (int)ordinal && memory_info(&left, &facts->total) && ordinal < 64)
		__atomic_fetch_or(&sized, 1ull << ordinal, __ATOMIC_RELAXED);
	errno = kept;
}

static uint32_t device_id(int ordinal)
{
	return ordinal < 0 ? 0 : mt_device_id(MT_BACKEND_ASCEND, (unsigned)ordinal, describe);
}

uint32_t mt_acl_device(int ordinal)
{
	return device_id(ordinal);
}

/* ---- the words of the table ---- */

#define NOTHING                      ((void)0)
#define ON(stream_)                  (call->event.stream = (uintptr_t)(stream_))
#define NEW(class_, out, n, ordinal) made(call, MT_CLASS_##class_, (void *const *)(out), n, ordinal)
#define NEW_PHYSICAL(out, n, prop)   made(call, MT_CLASS_PHYSICAL, (void *const *)(out), n, physical_place(prop))
#define NEW_DRIVER(out, n, flag)     made_by_driver(call, (void *const *)(out), n, flag)
#define GIVE_TO_DRIVER(p) \
	give(call, MT_DEVICE_FREE, forget_pinned((uintptr_t)(p)) ? MT_CLASS_PINNED : MT_CLASS_DEVICE, (uintptr_t)(p))
#define GIVE(class_, p)           give(call, MT_DEVICE_FREE, MT_CLASS_##class_, (uintptr_t)(p))
#define UNMAP(p)                  give(call, MT_DEVICE_UNMAP, MT_CLASS_PHYSICAL, (uintptr_t)(p))
#define TAKE_BACK                 take_back(call)
#define GIVE_HANDLE(handle)       give_handle(call, (uintptr_t)(handle))
#define TAKE_BACK_HANDLE(handle)  take_back_handle(call, (uintptr_t)(handle))
#define RETAIN(handle)            retained(call, (void *const *)(handle))
#define MAP(p, n, offset, handle) mapped(call, (uintptr_t)(p), n, offset, (uintptr_t)(handle))
#define IMPORT(out, name)         imported(call, (void *const *)(out), name)
#define CLOSE(name)               close_import(call, name)
#define CLOSED(name)              import_closed(call, name)
#define SET(ordinal)              device_set(call, ordinal)
#define RESET(ordinal, force)     device_reset(call, ordinal, force)

/* A device that was first used without being the current one has no total in its record. */
static void size_device(struct call *c, int ordinal)
{
	struct mt_device_event event = { .hook = c->event.hook, .class = c->event.class, .device = c->event.device };
	int kept = errno;

	if (!event.device || !memory_info(&event.addr, &event.bytes))
		return;
	__atomic_fetch_or(&sized, 1ull << ordinal, __ATOMIC_RELAXED);
	mt_device_note(MT_DEVICE_INFO, &event);
	errno = kept;
}

/* What was free is only known of the current device. */
static void failed(struct call *c, int ordinal)
{
	size_t left = 0, total = 0;

	if (c->event.device && current_device() == ordinal && !memory_info(&left, &total))
		total = 0;
	c->event.stream = mt_pool_asked();
	mt_device_note_failure(&c->event, (uint32_t)c->status, left, total);
}

static void made(struct call *c, enum mt_class class, void *const *out, uint64_t bytes, int ordinal)
{
	if (c->status && c->status != OUT_OF_MEMORY)
		return; /* the request was wrong, or nothing that this device has */
	if (ordinal == HERE)
		ordinal = current_device();
	c->event.class = class;
	c->event.device = device_id(ordinal);
	c->event.bytes = bytes;
	if (c->status) {
		failed(c, ordinal);
	} else {
		c->event.addr = (uintptr_t)*out;
		mt_device_note(MT_DEVICE_ALLOC, &c->event);
		if (__builtin_expect(!is_sized(ordinal), 0) && current_device() == ordinal)
			size_device(c, ordinal);
	}
}

static int config_device(const struct acl_config *config)
{
	enum { DEVICE_ID = 2 };

	for (size_t i = 0; config && config->attributes && i < config->count; i++)
		if (config->attributes[i].which == DEVICE_ID)
			return (int)config->attributes[i].value.device;
	return HERE;
}

static int physical_place(const struct acl_physical *prop)
{
	return prop && prop->place == 1 ? (int)prop->place_id : HOST;
}

/* The driver has one function to free with, and memory of the host and of devices has different name spaces: what it
 * gave of the host is kept here. One that finds no place stays alive in the trace. */
#define PINNED_SLOTS 4096u
#define PINNED_REACH 32u

static uint64_t *pinned; /* PINNED_SLOTS */

void mt_acl_tables(struct mt_tables *t)
{
	pinned = mt_tables_take(t, PINNED_SLOTS * sizeof(*pinned));
}

static uint64_t *pinned_slot(uint64_t p, unsigned i)
{
	return &pinned[(((p >> 6) * 0x9e3779b97f4a7c15ull >> 52) + i) % PINNED_SLOTS];
}

static void remember_pinned(uint64_t p)
{
	for (unsigned i = 0; pinned && i < PINNED_REACH; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(pinned_slot(p, i), &none, p, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
}

static int forget_pinned(uint64_t p)
{
	for (unsigned i = 0; p && pinned && i < PINNED_REACH; i++) {
		uint64_t there = p;
		if (__atomic_compare_exchange_n(pinned_slot(p, i), &there, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

/* Flags: bits 0-9 device, 10-13 kind of memory. */
static void made_by_driver(struct call *c, void *const *out, uint64_t bytes, uint64_t flag)
{
	enum { SHARED_VIRTUAL = 0, ON_DEVICE = 1, DVPP = 3 };
	unsigned space = flag >> 10 & 15;

	if (c->status)
		return;
	if (space == SHARED_VIRTUAL || space == ON_DEVICE || space == DVPP) {
		made(c, MT_CLASS_DEVICE, out, bytes, (int)(flag & 1023));
	} else {
		remember_pinned((uintptr_t)*out);
		made(c, MT_CLASS_PINNED, out, bytes, HOST);
	}
}

/* Frees have no stack. */
static void give(struct call *c, enum mt_kind kind, enum mt_class class, uint64_t key)
{
	if (!key)
		return;
	c->gave = 1;
	c->event.caller = NULL;
	c->event.class = class;
	c->event.addr = key;
	c->event.device = class == MT_CLASS_PINNED || class == MT_CLASS_REGISTERED ? 0 : device_id(current_device());
	mt_device_note(kind, &c->event);
}

static void take_back(struct call *c)
{
	if (c->status && c->gave)
		mt_device_note(MT_DEVICE_UNDO, &c->event);
}

static void mapped(struct call *c, uint64_t p, uint64_t bytes, uint64_t offset, uint64_t handle)
{
	if (c->status)
		return;
	c->event.class = MT_CLASS_PHYSICAL;
	c->event.device = device_id(current_device());
	c->event.addr = p;
	c->event.bytes = bytes;
	c->event.stream = handle;
	c->event.other = offset;
	mt_device_note(MT_DEVICE_MAP, &c->event);
}

/* ---- handles that are held more than once: only the last release frees ---- */

#define MAX_RETAINED 256

static struct {
	uint64_t handle;
	uint32_t extra;
} retains[MAX_RETAINED];

/* References beyond the first, or NULL if there are none. */
static uint32_t *extra_of(uint64_t handle)
{
	for (int i = 0; i < MAX_RETAINED; i++)
		if (__atomic_load_n(&retains[i].handle, __ATOMIC_RELAXED) == handle)
			return &retains[i].extra;
	return NULL;
}

/* The same, in a place that no handle needs any more. NULL: all are held. */
static uint32_t *make_extra(uint64_t handle)
{
	uint32_t *extra = extra_of(handle);

	for (int i = 0; i < MAX_RETAINED && !extra; i++) {
		uint64_t there = __atomic_load_n(&retains[i].handle, __ATOMIC_RELAXED);
		if (!__atomic_load_n(&retains[i].extra, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&retains[i].handle, &there, handle, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			extra = &retains[i].extra;
	}
	return extra;
}

static void retained(struct call *c, void *const *handle)
{
	uint32_t *extra = c->status ? NULL : make_extra((uintptr_t)*handle);

	if (extra)
		__atomic_fetch_add(extra, 1, __ATOMIC_RELAXED);
}

static void give_handle(struct call *c, uint64_t handle)
{
	uint32_t *extra = extra_of(handle), n = extra ? __atomic_load_n(extra, __ATOMIC_RELAXED) : 0;

	while (n)
		if (__atomic_compare_exchange_n(extra, &n, n - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	give(c, MT_DEVICE_FREE, MT_CLASS_PHYSICAL, handle);
}

static void take_back_handle(struct call *c, uint64_t handle)
{
	uint32_t *extra = c->status && !c->gave ? extra_of(handle) : NULL;

	if (extra)
		__atomic_fetch_add(extra, 1, __ATOMIC_RELAXED);
	take_back(c);
}

/* ---- memory that is closed by the name it was opened by ---- */

#define MAX_IMPORTS 256

static struct {
	uint64_t name, start;
} imports[MAX_IMPORTS];

static uint64_t hash_name(const char *s)
{
	return mt_fnv_text(MT_FNV_START, s) | 1;
}

static uint64_t range_bytes(void *p)
{
	int (*get)(void *, void **, size_t *) = (int (*)(void *, void **, size_t *))(uintptr_t)ask(GET_RANGE);
	void *base;
	size_t bytes;

	return get && get(p, &base, &bytes) == 0 ? bytes : 0;
}

static void imported(struct call *c, void *const *out, const char *name)
{
	if (c->status)
		return;
	for (int i = 0; i < MAX_IMPORTS; i++) {
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&imports[i].name, &none, hash_name(name), 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_store_n(&imports[i].start, (uintptr_t)*out, __ATOMIC_RELEASE);
			break;
		}
	}
	made(c, MT_CLASS_ALIAS, out, range_bytes(*out), HERE);
}

static void close_import(struct call *c, const char *name)
{
	uint64_t hash = name ? hash_name(name) : 0;

	for (int i = 0; hash && i < MAX_IMPORTS; i++)
		if (__atomic_load_n(&imports[i].name, __ATOMIC_RELAXED) == hash) {
			give(c, MT_DEVICE_FREE, MT_CLASS_ALIAS, __atomic_load_n(&imports[i].start, __ATOMIC_ACQUIRE));
			return;
		}
}

static void import_closed(struct call *c, const char *name)
{
	take_back(c);
	for (int i = 0; !c->status && c->gave && i < MAX_IMPORTS; i++)
		if (__atomic_load_n(&imports[i].name, __ATOMIC_RELAXED) == hash_name(name)) {
			__atomic_store_n(&imports[i].name, 0, __ATOMIC_RELAXED);
			return;
		}
}

/* ---- devices are counted in and out ---- */

static int32_t uses[MT_ORDINALS];

/* The first time says what is in use before the program has anything: its context, and other processes. */
static void device_set(struct call *c, int ordinal)
{
	if (c->status || ordinal < 0 || ordinal >= MT_ORDINALS)
		return;
	__atomic_fetch_add(&uses[ordinal], 1, __ATOMIC_RELAXED);
	if (!is_sized(ordinal)) {
		c->event.device = device_id(ordinal);
		size_device(c, ordinal);
	}
}

static void device_reset(struct call *c, int ordinal, int force)
{
	if (c->status || ordinal < 0 || ordinal >= MT_ORDINALS)
		return;
	if (!force && __atomic_sub_fetch(&uses[ordinal], 1, __ATOMIC_RELAXED) > 0)
		return;
	__atomic_store_n(&uses[ordinal], 0, __ATOMIC_RELAXED);
	c->event.device = device_id(ordinal);
	c->event.caller = NULL;
	if (c->event.device)
		mt_device_note(MT_DEVICE_RESET, &c->event);
}

/* ---- the wrappers ---- */

enum {
#define ACL(name, params, args, before, after) ROW_##name, ROW_##name##Impl,
#define LOW(name, params, args, before, after) ROW_##name,
#include "shim/hooks/hooks_acl.def"
#undef ACL
#undef LOW
	ROWS
};

static const struct mt_wrapped rows[ROWS];

/* The driver's names might be another library's too, with other parameters. */
static int is_drivers(void *real)
{
	static void *yes, *no;
	Dl_info info;
	int found;

	if (__builtin_expect(__atomic_load_n(&yes, __ATOMIC_RELAXED) == real, 1))
		return 1;
	if (__atomic_load_n(&no, __ATOMIC_RELAXED) == real)
		return 0;
	found = mt_libc()->dladdr(real, &info) && info.dli_fname &&
		!strncmp(mt_base_name(info.dli_fname), "libascend", 9);
	__atomic_store_n(found ? &yes : &no, real, __ATOMIC_RELAXED);
	return found;
}

#define ALWAYS(real) 1

/* The driver's functions have a wider type, so that one of that name that returns a pointer still does. */
#define WRAP(type, is_known, name, label, params, args, before, after) \
	static type body_##name(struct mt_slot *slot, const void *caller, MT_LIST params) \
	{ \
		type(*real) params = (type(*) params)(uintptr_t)mt_slot_real(&rows[ROW_##name], slot, caller), ret; \
		struct call now = { .event = { .hook = MT_HOOK_##label, .caller = caller } }; \
		struct call *call = &now; \
		if (!real) \
			return NOT_SUPPORTED; \
		if (!is_known((void *)(uintptr_t)real) || !mt_call_begin()) \
			return real args; \
		before; \
		ret = real args; \
		call->status = (int)ret; \
		after; \
		mt_call_end(); \
		return ret; \
	} \
	MT_ENTRIES(type, name, params, args) \
	MT_LINK(0, name, "MEMTRACE_HOOKS")

#define ACL(name, params, args, before, after) \
	WRAP(int, ALWAYS, name, name, params, args, before, after) \
	WRAP(int, ALWAYS, name##Impl, name, params, args, before, after)
#define LOW(name, params, args, before, after) WRAP(long, is_drivers, name, name, params, args, before, after)
#include "shim/hooks/hooks_acl.def"
#undef ACL
#undef LOW

static const struct mt_wrapped rows[ROWS] = {
#define ROW(name, library)                     { #name, library, slots_##name, entries_##name },
#define ACL(name, params, args, before, after) ROW(name, &acl_library) ROW(name##Impl, &acl_library)
#define LOW(name, params, args, before, after) ROW(name, &driver_library)
#include "shim/hooks/hooks_acl.def"
#undef ACL
#undef LOW
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);
