/*
 * mstx: ranges become phases, marks marks, and the regions that torch_npu and MindSpore register are the blocks of
 * their pools.
 *
 * mstx looks for a tool by dlsym(RTLD_DEFAULT, "InitInjectionMstx") (MSTX_INJECTION_PATH comes first), which fills the
 * slots of a table. The profiler's library may export that too, and is found after us: it is asked first, and what it
 * put into a slot is called after ours.
 *
 * The frameworks only tell of their pools if the real path of an entry of LD_PRELOAD, which they split at colons, ends
 * in libascend_kernel_hook.so. A copy of the shim is called libmemtrace_libascend_kernel_hook.so, and with
 * MEMTRACE_ASCEND_POOL=1 the variable says so. That is no default: it also turns torch_npu's markers for another
 * profiler off.
 *
 * Of what they pass only what is read here is initialised: no heap, no types, no place for handles.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "format/output_name.h"
#include "shim/base/config.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/base/tables.h"
#include "shim/device/acl.h"
#include "shim/device/device.h"
#include "shim/device/mstx.h"
#include "shim/device/pool.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/mark.h"

/* ---- the interface ---- */

typedef void (*mstx_function)(void);
typedef int (*mstx_tables)(int module, mstx_function ***table, unsigned *size);

struct mstx_range {
	uint32_t device;
	const void *start;
	int64_t bytes;
};
struct mstx_regions {
	void *heap;
	int type;
	size_t count;
	const struct mstx_range *ranges;
	void **handles;
};
struct mstx_reference {
	int type;
	const void *pointer;
};
struct mstx_references {
	size_t count;
	const struct mstx_reference *array;
};

enum { MSTX_CORE = 1, MSTX_DOMAIN = 2, MSTX_MEMORY = 3 };
enum { MSTX_BY_POINTER = 0 };

/* ---- the other tool ---- */

/* Functions that were in a slot before ours, NULL = none. */
static struct {
	void (*mark)(const char *, void *);
	uint64_t (*start)(const char *, void *);
	void (*end)(uint64_t);
	void *(*create)(const char *);
	void (*destroy)(void *);
	void (*mark_in)(void *, const char *, void *);
	uint64_t (*start_in)(void *, const char *, void *);
	void (*end_in)(void *, uint64_t);
	void *(*heap)(void *, const void *);
	void (*heap_gone)(void *, void *);
	void (*regions)(void *, const struct mstx_regions *);
	void (*regions_gone)(void *, const struct mstx_references *);
} theirs;

/* ---- domains ---- */

/* What our handles point to: one for each class, 0 = of no pool. */
static char own_domains[MT_CLASSES];

static int is_own(const void *domain)
{
	return (const char *)domain >= own_domains && (const char *)domain < own_domains + MT_CLASSES;
}

/* The pool whose blocks a domain's regions are; 0 = none we know. */
static enum mt_class class_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum mt_class class;
	} pools[] = {
		{ "ptaCaching", MT_CLASS_POOL },
		{ "msleaks", MT_CLASS_POOL },
		{ "mindsporeMemPool", MT_CLASS_POOL },
		{ "ptaWorkspace", MT_CLASS_WORKSPACE },
	};

	for (size_t i = 0; name && i < sizeof(pools) / sizeof(pools[0]); i++)
		if (!strcmp(name, pools[i].name))
			return pools[i].class;
	return 0;
}

static enum mt_class class_of(const void *domain)
{
	return is_own(domain) ? (enum mt_class)((const char *)domain - own_domains) : 0;
}

static int torch_npu; /* whose the pool is, not MindSpore's; set before its first block */

/* torch_npu asks on every event: the same handle for the same name, and never NULL. */
static void *create(const char *name)
{
	enum mt_class class = class_of_name(name);
	if (class == MT_CLASS_POOL && strcmp(name, "mindsporeMemPool") != 0)
		__atomic_store_n(&torch_npu, 1, __ATOMIC_RELAXED);
	void *domain = theirs.create && !class ? theirs.create(name) : NULL;

	return domain ? domain : &own_domains[class];
}

static void destroy(void *domain)
{
	if (theirs.destroy && !is_own(domain))
		theirs.destroy(domain);
}

/* ---- blocks ---- */

#define MAX_WORKSPACES 32

/* Of a workspace the bytes of all of the device's are told, its own among them. Each device's are told under a lock of
 * the framework's. */
static struct {
	const void *start;
	uint64_t bytes;
} (*workspaces)[MAX_WORKSPACES]; /* MT_ORDINALS */

void mt_mstx_tables(struct mt_tables *t)
{
	workspaces = mt_tables_take(t, MT_ORDINALS * sizeof(*workspaces));
}

/* Its own bytes, given those of all. `*there`: it has not been given back since it was last told. */
static uint64_t workspace_bytes(uint32_t ordinal, const void *start, uint64_t all, int *there)
{
	uint64_t others = 0;
	int place = -1;

	*there = 0;
	if (ordinal >= MT_ORDINALS || !workspaces)
		return all;
	for (int i = 0; i < MAX_WORKSPACES; i++) {
		const void *other = workspaces[ordinal][i].start;
		if (other == start)
			*there = 1;
		if (other == start || (!other && place < 0))
			place = i;
		else if (other)
			others += workspaces[ordinal][i].bytes;
	}
	if (others < all)
		all -= others;
	if (place >= 0) {
		workspaces[ordinal][place].start = start;
		workspaces[ordinal][place].bytes = all;
	}
	return all;
}

static void drop_workspace(const void *start)
{
	for (int d = 0; workspaces && d < MT_ORDINALS; d++)
		for (int i = 0; i < MAX_WORKSPACES; i++)
			if (workspaces[d][i].start == start)
				workspaces[d][i].start = NULL;
}

static void note_region(enum mt_class class, const struct mstx_range *range, const void *caller)
{
	struct mt_device_event event = { .hook = MT_HOOK_mstxMemRegionsRegister,
					 .class = class,
					 .addr = (uintptr_t)range->start,
					 .bytes = (uint64_t)range->bytes,
					 .caller = caller };
	int there = 0;

	if (!range->start || range->bytes <= 0)
		return;
	event.device = mt_acl_device((int)range->device);
	if (class == MT_CLASS_POOL && __atomic_load_n(&torch_npu, __ATOMIC_RELAXED)) {
		event.other = mt_pool_unasked(event.bytes);
		event.stream = mt_pool_npu_stream(range->device);
	}
	if (class == MT_CLASS_WORKSPACE)
		event.bytes = workspace_bytes(range->device, range->start, event.bytes, &there);
	if (there) {
		struct mt_device_event before = event;
		before.caller = NULL;
		mt_device_note(MT_DEVICE_FREE, &before);
	}
	mt_device_note(MT_DEVICE_ALLOC, &event);
}

static void regions(void *domain, const struct mstx_regions *batch)
{
	enum mt_class class = class_of(domain);

	for (size_t i = 0; class && batch && batch->ranges && i < batch->count; i++)
		note_region(class, &batch->ranges[i], MT_CALLER);
	if (theirs.regions && !is_own(domain))
		theirs.regions(domain, batch);
}

static void regions_gone(void *domain, const struct mstx_references *batch)
{
	struct mt_device_event event = { .hook = MT_HOOK_mstxMemRegionsUnregister, .class = class_of(domain) };

	for (size_t i = 0; event.class && batch && batch->array && i < batch->count; i++) {
		if (batch->array[i].type != MSTX_BY_POINTER || !batch->array[i].pointer)
			continue;
		event.addr = (uintptr_t)batch->array[i].pointer;
		if (event.class == MT_CLASS_WORKSPACE)
			drop_workspace(batch->array[i].pointer);
		mt_device_note(MT_DEVICE_FREE, &event);
	}
	if (theirs.regions_gone && !is_own(domain))
		theirs.regions_gone(domain, batch);
}

/* A heap is the pool's reserved bytes, which the driver's calls tell us better. */
static void *heap(void *domain, const void *description)
{
	void *handle = theirs.heap && !is_own(domain) ? theirs.heap(domain, description) : NULL;

	return handle ? handle : domain;
}

static void heap_gone(void *domain, void *handle)
{
	if (theirs.heap_gone && !is_own(domain))
		theirs.heap_gone(domain, handle);
}

/* ---- ranges and marks ---- */

#define OWN_RANGE (1ull << 62)

/* Ids are the other tool's where it has some. */
static uint64_t begin(const char *text, uint64_t id, const void *caller)
{
	static uint64_t last;

	if (!id)
		id = OWN_RANGE | __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	mt_mark_begin(text, id, MT_MARK_MSTX, caller);
	return id;
}

/* Ends the range; was the id the other tool's? */
static int is_theirs(uint64_t id)
{
	mt_mark_end(NULL, id, MT_MARK_MSTX);
	return !(id & OWN_RANGE);
}

static void mark(const char *text, void *stream)
{
	mt_mark_point(text, MT_MARK_MSTX, MT_CALLER);
	if (theirs.mark)
		theirs.mark(text, stream);
}

static uint64_t start(const char *text, void *stream)
{
	return begin(text, theirs.start ? theirs.start(text, stream) : 0, MT_CALLER);
}

static void end(uint64_t id)
{
	if (id && is_theirs(id) && theirs.end)
		theirs.end(id);
}

static void mark_in(void *domain, const char *text, void *stream)
{
	mt_mark_point(text, MT_MARK_MSTX, MT_CALLER);
	if (theirs.mark_in && !is_own(domain))
		theirs.mark_in(domain, text, stream);
}

static uint64_t start_in(void *domain, const char *text, void *stream)
{
	return begin(text, theirs.start_in && !is_own(domain) ? theirs.start_in(domain, text, stream) : 0, MT_CALLER);
}

static void end_in(void *domain, uint64_t id)
{
	if (id && is_theirs(id) && theirs.end_in && !is_own(domain))
		theirs.end_in(domain, id);
}

/* ---- being found ---- */

static const struct {
	int module;
	unsigned id;
	mstx_function ours;
	void *theirs;
} slots[] = {
	{ MSTX_CORE, 1, (mstx_function)mark, &theirs.mark },
	{ MSTX_CORE, 2, (mstx_function)start, &theirs.start },
	{ MSTX_CORE, 3, (mstx_function)end, &theirs.end },
	{ MSTX_DOMAIN, 1, (mstx_function)create, &theirs.create },
	{ MSTX_DOMAIN, 2, (mstx_function)destroy, &theirs.destroy },
	{ MSTX_DOMAIN, 3, (mstx_function)mark_in, &theirs.mark_in },
	{ MSTX_DOMAIN, 4, (mstx_function)start_in, &theirs.start_in },
	{ MSTX_DOMAIN, 5, (mstx_function)end_in, &theirs.end_in },
	{ MSTX_MEMORY, 1, (mstx_function)heap, &theirs.heap },
	{ MSTX_MEMORY, 2, (mstx_function)heap_gone, &theirs.heap_gone },
	{ MSTX_MEMORY, 3, (mstx_function)regions, &theirs.regions },
	{ MSTX_MEMORY, 4, (mstx_function)regions_gone, &theirs.regions_gone },
};

enum { SLOTS = sizeof(slots) / sizeof(slots[0]) };

static mstx_function *slot_of(mstx_tables tables, int i)
{
	mstx_function **table = NULL;
	unsigned size = 0;

	return tables(slots[i].module, &table, &size) == 0 && table && slots[i].id < size ? table[slots[i].id] : NULL;
}

MT_EXPORT int InitInjectionMstx(mstx_tables tables);

MT_EXPORT int InitInjectionMstx(mstx_tables tables)
{
	/* no file's name begins so: only the loader's order counts */
	static const struct mt_library next = { .prefix = "/" };
	int (*other)(mstx_tables) = (int (*)(mstx_tables))(uintptr_t)mt_library_symbol(&next, "InitInjectionMstx");
	mstx_function *slot, before[SLOTS] = { NULL };
	int found;

	if (!tables)
		return 1;
	for (int i = 0; i < SLOTS; i++)
		before[i] = (slot = slot_of(tables, i)) ? *slot : NULL;
	found = other && other(tables) == 0;
	for (int i = 0; i < SLOTS; i++) {
		if (!(slot = slot_of(tables, i)))
			continue;
		if (found && *slot != before[i] && *slot != slots[i].ours)
			memcpy(slots[i].theirs, slot, sizeof(*slot));
		*slot = slots[i].ours;
	}
	return 0;
}

/* ---- making the frameworks tell ---- */

#define POOL_LIBRARY "libmemtrace_libascend_kernel_hook.so"

static int ends_with(const char *s, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n >= m && !memcmp(s + n - m, end, m);
}

/* The library's own path with the other name, if that file is there. */
static int find_pool_library(char *path, size_t size)
{
	Dl_info info;
	const char *base;

	if (!mt_libc()->dladdr((const void *)(uintptr_t)mt_mstx_boot, &info) || !info.dli_fname ||
	    !(base = strrchr(info.dli_fname, '/')) || (size_t)(base - info.dli_fname) + sizeof("/" POOL_LIBRARY) > size)
		return 0;
	memcpy(path, info.dli_fname, (size_t)(base + 1 - info.dli_fname));
	strcpy(path + (base + 1 - info.dli_fname), POOL_LIBRARY);
	return mt_quiet_exists(path);
}

void mt_mstx_boot(void)
{
	const char *list = mt_environ_get("LD_PRELOAD");
	char library[1024], value[8192], *at = value, *limit = value + sizeof(value);

	if (!mt_config.ascend_pool || !list)
		return;
	if (!find_pool_library(library, sizeof(library)) || strlen(list) + sizeof(library) > sizeof(value) / 2) {
		mt_say("no pools of Ascend's frameworks: missing ", POOL_LIBRARY);
		return;
	}
	*at = 0;
	while (*(list += strspn(list, ": "))) {
		size_t n = strcspn(list, ": ");
		char entry[4096];
		if (n >= sizeof(entry))
			return;
		memcpy(entry, list, n);
		entry[n] = 0;
		if (at != value)
			at = mt_put(at, limit, ":");
		at = mt_put(at, limit, ends_with(entry, n, "libmemtrace.so") ? library : entry);
		list += n;
	}
	mt_environ_set("LD_PRELOAD", value);
}
