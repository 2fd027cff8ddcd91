/*
 * Wrappers for functions of libraries that the program may or may not load (CUDA, CANN), however it gets at them.
 *
 * A hook has MT_INSTANCES instances. Each has an entry (the wrapper) and a slot, which holds the real function; they do
 * not differ otherwise. So each real function has a wrapper of its own, and two copies of a library in one process (two
 * majors of libcudart) are not mixed up.
 *
 *   instances below mt_library.linked   what a program that links the library is bound to. Each belongs to one version
 *                                       of it. The first call looks the real function up.
 *   the others                          returned by dlsym or cuGetProcAddress, for the real function found there
 *
 * The first kind is exported under *hidden* symbol versions (exports.map). A relocation for cudaMalloc@libcudart.so.13
 * is bound to the instance of libcudart.so.13; one without a version to the version MEMTRACE_HOOKS, the first in the
 * file. dlsym without a version finds neither: so if the library isn't loaded, dlsym(RTLD_DEFAULT, "cuInit") fails as
 * without us, and a weak reference to a function of libcudart stays NULL. Only a weak reference without a version does
 * get bound; weak.c undoes that if no library has the function.
 */
#ifndef MT_HOOKS_DLSYM_H
#define MT_HOOKS_DLSYM_H

#include <stddef.h>
#include <stdint.h>

#include "shim/base/set.h"
#include "shim/hooks/hooks.h"

#define MT_INSTANCES 6u
#define MT_LINKED    3u

struct mt_slot {
	void *real;
};

/* Where the real functions are: in the file whose name begins with `prefix`. */
struct mt_library {
	const char *prefix;
	unsigned linked;
	struct {
		const char *soname, *version;
	} link[MT_LINKED]; /* version NULL = its symbols have none */
};

/* One row of a hook table. */
struct mt_wrapped {
	const char *name;
	const struct mt_library *library;
	struct mt_slot *slots; /* MT_INSTANCES */
	void *const *entries;  /* MT_INSTANCES */
};

/* The tables that dlsym filters: each backend adds its own. */
struct mt_wrap_table {
	const struct mt_wrapped *rows;
	size_t count;
};

MT_SET(mt_wrap_table);

/* Is raised when real functions have gone with their library. */
extern uint32_t mt_wrap_generation;

/* While mt_dlsym_waits is nonzero, every dlsym does this first: libraries that came since must be met. dlsym.S reads
 * it. */
extern uint8_t mt_dlsym_waits;
struct mt_dlsym_look {
	void (*look)(void);
};
MT_SET(mt_dlsym_look);

/* The row of that name, or NULL. */
const struct mt_wrapped *mt_wrap_row(const char *name);

/* A wrapper whose real function is `real`. Returns `real` itself if it is a wrapper, or all instances are in use. */
void *mt_wrap(const struct mt_wrapped *row, void *real);

/* Slow part of mt_slot_real(). NULL = no loaded library has such a function. */
void *mt_slot_find(const struct mt_wrapped *row, struct mt_slot *slot, const void *caller);

/* The function that a slot's entry stands for; `caller` is who called the entry. */
static inline void *mt_slot_real(const struct mt_wrapped *row, struct mt_slot *slot, const void *caller)
{
	void *real = __atomic_load_n(&slot->real, __ATOMIC_RELAXED);

	return __builtin_expect(real != NULL, 1) ? real : mt_slot_find(row, slot, caller);
}

/* A function of the library, for the shim's own calls; NULL if the library isn't loaded. It is never loaded for this,
 * nor kept from being unloaded. */
void *mt_library_symbol(const struct mt_library *library, const char *name);

/* A library that the shim asks questions. Its functions are looked up when the first one is asked, and again when a
 * library was loaded since that has some of them. */
struct mt_asked {
	const struct mt_library *library;
	const char *name;      /* a function that every version has */
	void (*look_up)(void); /* all functions; threads that do so at once write the same */
	uint32_t when;         /* mt_wrap_generation + 1 of the last time */
	uint32_t missing;      /* look-ups in vain: a few are made until the library is there */
};

/* Slow part of mt_asked_there(). */
int mt_asked_find(struct mt_asked *a);

/* Whether the library is there. Then its functions have been looked up. */
static inline int mt_asked_there(struct mt_asked *a)
{
	uint32_t now = __atomic_load_n(&mt_wrap_generation, __ATOMIC_RELAXED) + 1;

	return __builtin_expect(__atomic_load_n(&a->when, __ATOMIC_ACQUIRE) == now, 1) || mt_asked_find(a);
}

/* The real function behind a wrapper's address, or NULL if it is no wrapper's. */
void *mt_wrap_real(const void *p);

/* Nonzero if `p` is code of the shim. */
int mt_is_own(const void *p);

/* After a dlclose: empties slots whose real function is no longer mapped. */
void mt_wrap_forget(void);

/* Nonzero if the loader has unloaded something since *seen, which is what it counted then and counts now. */
int mt_library_has_gone(unsigned long long *seen);

#define MT_LIST(...) __VA_ARGS__

/* Defines the slots and entries of a row. The entry calls body_NAME(slot, caller, arguments). */
#define MT_ENTRY(i, type, name, params, args) \
	MT_EXPORT type mt_entry_##i##_##name params \
	{ \
		return body_##name(&slots_##name[i], MT_CALLER, MT_LIST args); \
	}
#define MT_ENTRIES(type, name, params, args) \
	static struct mt_slot slots_##name[MT_INSTANCES]; \
	MT_ENTRY(0, type, name, params, args) \
	MT_ENTRY(1, type, name, params, args) \
	MT_ENTRY(2, type, name, params, args) \
	MT_ENTRY(3, type, name, params, args) \
	MT_ENTRY(4, type, name, params, args) \
	MT_ENTRY(5, type, name, params, args) \
	MT_ENTRY_LIST(name)
/* The same of a function without parameters: body_NAME(slot, caller). */
#define MT_ENTRY0(i, type, name) \
	MT_EXPORT type mt_entry_##i##_##name(void) \
	{ \
		return body_##name(&slots_##name[i], MT_CALLER); \
	}
#define MT_ENTRIES0(type, name) \
	static struct mt_slot slots_##name[MT_INSTANCES]; \
	MT_ENTRY0(0, type, name) \
	MT_ENTRY0(1, type, name) \
	MT_ENTRY0(2, type, name) \
	MT_ENTRY0(3, type, name) \
	MT_ENTRY0(4, type, name) \
	MT_ENTRY0(5, type, name) \
	MT_ENTRY_LIST(name)
#define MT_ENTRY_LIST(name) \
	static void *const entries_##name[MT_INSTANCES] = { \
		(void *)mt_entry_0_##name, (void *)mt_entry_1_##name, (void *)mt_entry_2_##name, \
		(void *)mt_entry_3_##name, (void *)mt_entry_4_##name, (void *)mt_entry_5_##name, \
	};

/* Exports instance i under the name and version by which a program's relocation asks for it. */
#define MT_LINK(i, name, version)            MT_LINK_AS(i, name, #name, version)
#define MT_LINK_AS(i, name, symbol, version) __asm__(".symver mt_entry_" #i "_" #name ", " symbol "@" version);

#endif
