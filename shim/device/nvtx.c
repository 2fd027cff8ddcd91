/*
 * NVTX: the program's ranges become phases, its marks become marks.
 *
 * NVTX is a header: each library has its own copy, which on its first call asks getenv("NVTX_INJECTION64_PATH") for a
 * tool's library, loads it and calls its InitializeInjectionNvtx2; without that variable it does nothing from then on.
 * The shim is such a library and answers the question with its own path where the environment doesn't: another tool's
 * path is left alone, and no variable is added that a child without the shim would follow. (A copy linked with
 * -DNVTX_STATIC_INJECTION finds the pointer.)
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/environ.h"
#include "shim/base/libc.h"
#include "shim/base/state.h"
#include "shim/device/nvtx.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/mark.h"
#include "shim/trace/settings.h"

/* ---- NVTX's ABI ---- */

typedef void (*nvtx_function)(void);
typedef const void *(*nvtx_export_table)(uint32_t id);

struct nvtx_callbacks {
	size_t bytes;
	int (*module_functions)(int module, nvtx_function ***table, unsigned *count);
};

struct nvtx_event {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};

enum { NVTX_CALLBACKS = 1, NVTX_CORE = 1, NVTX_CORE2 = 5 };
enum { NVTX_ASCII = 1, NVTX_UNICODE = 2, NVTX_REGISTERED = 3 };

/* ---- texts ---- */

/* Wide characters as UTF-8, cut to the buffer. */
static const char *narrow(const wchar_t *from, char *buffer, size_t bytes)
{
	char *at = buffer, *end = buffer + bytes - 5;

	for (; from && *from && at < end; from++) {
		uint32_t c = (uint32_t)*from;
		if (c < 0x80) {
			*at++ = (char)c;
		} else if (c < 0x800) {
			*at++ = (char)(0xc0 | c >> 6);
			*at++ = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			*at++ = (char)(0xe0 | c >> 12);
			*at++ = (char)(0x80 | (c >> 6 & 63));
			*at++ = (char)(0x80 | (c & 63));
		} else {
			*at++ = (char)(0xf0 | (c >> 18 & 7));
			*at++ = (char)(0x80 | (c >> 12 & 63));
			*at++ = (char)(0x80 | (c >> 6 & 63));
			*at++ = (char)(0x80 | (c & 63));
		}
	}
	*at = 0;
	return buffer;
}

#define TEXTS_BYTES (1u << 20)

static char *texts; /* of registered strings and domains, which are handles: never given back */
static uint32_t texts_used;

/* A copy that lasts; NULL when the pool is full, which NVTX takes for "no handle". */
static const void *keep(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *pool = __atomic_load_n(&texts, __ATOMIC_ACQUIRE), *mine;
	uint32_t at;

	if (!pool) {
		if (!(mine = mt_sys_pages(TEXTS_BYTES)))
			return NULL;
		if (__atomic_compare_exchange_n(&texts, &pool, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			pool = mine;
		else
			mt_sys_unmap(mine, TEXTS_BYTES);
	}
	if (bytes > TEXTS_BYTES ||
	    (at = __atomic_fetch_add(&texts_used, (uint32_t)bytes, __ATOMIC_RELAXED)) > TEXTS_BYTES - bytes) {
		__atomic_store_n(&texts_used, TEXTS_BYTES, __ATOMIC_RELAXED);
		return NULL;
	}
	memcpy(pool + at, text, bytes);
	return pool + at;
}

static const char *text_of(const struct nvtx_event *e, char *buffer, size_t bytes)
{
	if (!e)
		return "";
	switch (e->message_type) {
	case NVTX_ASCII:
		return e->message.ascii ? e->message.ascii : "";
	case NVTX_UNICODE:
		return narrow(e->message.wide, buffer, bytes);
	case NVTX_REGISTERED:
		return e->message.registered ? e->message.registered : "";
	default:
		return "";
	}
}

/* ---- what is called instead of NVTX's stubs ---- */

static __thread int nested; /* pushed ranges of this thread, of all domains */
static uint64_t last_range; /* ids of ranges that start and end */

static void mark(const char *text)
{
	mt_mark_point(text, MT_MARK_NVTX, NULL);
}

static int push(const char *text)
{
	mt_mark_begin(text, 0, MT_MARK_NVTX, NULL);
	return nested++;
}

static int pop(void)
{
	if (nested <= 0)
		return -1;
	mt_mark_end(NULL, 0, MT_MARK_NVTX);
	return --nested;
}

static uint64_t start(const char *text)
{
	uint64_t id = __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED);

	mt_mark_begin(text, id, MT_MARK_NVTX, NULL);
	return id;
}

static void end(uint64_t id)
{
	if (id)
		mt_mark_end(NULL, id, MT_MARK_NVTX);
}

#define WIDE(call) \
	char buffer[MT_MARK_MAX_TEXT + 1]; \
	return call(narrow(text, buffer, sizeof(buffer)))
#define EVENT(call) \
	char buffer[MT_MARK_MAX_TEXT + 1]; \
	return call(text_of(e, buffer, sizeof(buffer)))

static void mark_wide(const wchar_t *text)
{
	WIDE(mark);
}
static void mark_event(const struct nvtx_event *e)
{
	EVENT(mark);
}
static uint64_t start_wide(const wchar_t *text)
{
	WIDE(start);
}
static uint64_t start_event(const struct nvtx_event *e)
{
	EVENT(start);
}
static int push_wide(const wchar_t *text)
{
	WIDE(push);
}
static int push_event(const struct nvtx_event *e)
{
	EVENT(push);
}

/* Libraries have a domain each and a range for every call they make: no phases of the program's. They share one handle.
 * */
static const char *const libraries[] = { "CCCL",  "NCCL",  "NVSHMEM",  "cuBLAS",   "cuBLASLt",
					 "cuDNN", "cuFFT", "cuSOLVER", "cuSPARSE", "cuTENSOR" };

static int is_library(const void *domain)
{
	return domain == libraries;
}

static const void *make_domain(const char *name)
{
	for (size_t i = 0; name && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!strcmp(name, libraries[i]))
			return libraries;
	return keep(name ? name : "");
}

static void mark_in(void *domain, const struct nvtx_event *e)
{
	if (!is_library(domain))
		mark_event(e);
}

static uint64_t start_in(void *domain, const struct nvtx_event *e)
{
	return is_library(domain) ? 0 : start_event(e);
}
static void end_in(void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}
static int push_in(void *domain, const struct nvtx_event *e)
{
	return is_library(domain) ? 0 : push_event(e);
}
static int pop_in(void *domain)
{
	return is_library(domain) ? 0 : pop();
}
static const void *keep_wide(const wchar_t *text)
{
	WIDE(keep);
}
static const void *register_in(void *domain, const char *text)
{
	(void)domain;
	return text ? keep(text) : NULL;
}
static const void *register_wide_in(void *domain, const wchar_t *text)
{
	(void)domain;
	return text ? keep_wide(text) : NULL;
}
static const void *make_domain_wide(const wchar_t *text)
{
	WIDE(make_domain);
}

/* ---- injection ---- */

struct replacement {
	unsigned id;
	nvtx_function function;
};

#define IS(id, name) { id, (nvtx_function)name }
static const struct replacement core[] = {
	IS(1, mark_event), IS(2, mark),       IS(3, mark_wide), IS(4, start_event), IS(5, start), IS(6, start_wide),
	IS(7, end),        IS(8, push_event), IS(9, push),      IS(10, push_wide),  IS(11, pop),
};
static const struct replacement core2[] = {
	IS(1, mark_in),      IS(2, start_in),          IS(3, end_in),       IS(4, push_in),           IS(5, pop_in),
	IS(10, register_in), IS(11, register_wide_in), IS(12, make_domain), IS(13, make_domain_wide),
};

static void replace(const struct nvtx_callbacks *nvtx, int module, const struct replacement *with, size_t count)
{
	nvtx_function **table;
	unsigned size;

	if (!nvtx->module_functions(module, &table, &size))
		return;
	for (size_t i = 0; i < count; i++)
		if (with[i].id < size && table[with[i].id])
			*table[with[i].id] = with[i].function;
}

MT_EXPORT int InitializeInjectionNvtx2(nvtx_export_table get);

/* Returns 0, which makes NVTX do nothing, in a process that is not recorded. */
int InitializeInjectionNvtx2(nvtx_export_table get)
{
	const struct nvtx_callbacks *nvtx = get ? get(NVTX_CALLBACKS) : NULL;

	if (!nvtx || nvtx->bytes < sizeof(*nvtx) || mt_process_state() == MT_STATE_OFF)
		return 0;
	replace(nvtx, NVTX_CORE, core, sizeof(core) / sizeof(core[0]));
	replace(nvtx, NVTX_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}

/* What a copy of NVTX that allows for static injection looks at last. */
MT_EXPORT int (*InitializeInjectionNvtx2_fnptr)(nvtx_export_table) = InitializeInjectionNvtx2;

static const char *own_path(void)
{
	static const char name[] = "NVTX_INJECTION64_PATH";
	Dl_info info;

	return mt_process_state() != MT_STATE_OFF && mt_libc()->dladdr(name, &info) ? info.dli_fname : NULL;
}

static char *(*next)(const char *name);

/* The loader calls resolvers of other libraries before it has relocated us, and they may ask: this is then still
 * NULL. */
static const char *volatile relocated = "";

void mt_nvtx_boot(void)
{
	next = (char *(*)(const char *))(uintptr_t)mt_symbols_search(MT_NEXT, NULL, "getenv", NULL);
}

/* Until the constructor has run it walks the environment itself: an allocator that is just starting up may ask, when
 * nothing can be looked up yet. */
MT_EXPORT char *getenv(const char *name)
{
	char *value = next ? next(name) : mt_environ_get(name);

	if (!value && relocated && name[0] == 'N' && !strcmp(name, "NVTX_INJECTION64_PATH"))
		value = (char *)(uintptr_t)own_path();
	if (relocated && name[0] == 'P')
		mt_settings_asked(name);
	return value;
}
