/*
 * Hooks, from one table each for the host and the device libraries (hooks_cuda.def has columns of its own). A row is
 * all it takes to trace one more function:
 *
 *   RET(name, parameters, arguments, bytes)  returns the block or NULL; the wrapper is generated
 *   HAND(type, name, parameters)             has its own body in a .c file
 *
 * The table gives the hook's id, its name in the trace, its wrapper and the pointer to the real function.
 */
#ifndef MT_HOOKS_HOOKS_H
#define MT_HOOKS_HOOKS_H

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#undef mmap64 /* musl has one function, and this name as a macro or not at all */

#define MT_EXPORT __attribute__((visibility("default")))

/* The return address of a hook: the innermost frame of its stack. */
#define MT_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

enum mt_hook {
	MT_HOOK_none,
#define RET(name, params, args, bytes) MT_HOOK_##name,
#define HAND(type, name, params)       MT_HOOK_##name,
#include "shim/hooks/hooks_host.def"
#undef RET
#undef HAND
#define NEW(symbol, version, name, params, args) MT_HOOK_##symbol,
#define DELETE                                   NEW
#include "shim/hooks/hooks_new.def"
#undef NEW
#undef DELETE
#define HAND(library, name, params, args) MT_HOOK_##name,
#include "shim/hooks/hooks_cuda.def"
#define HAND(since, name, params, args) MT_HOOK_##name,
#include "shim/hooks/hooks_hip.def"
#define HAND(name, params, args) MT_HOOK_##name,
#include "shim/hooks/hooks_ze.def"
#define HAND(name, symbol) MT_HOOK_##name,
#define ID(name)           MT_HOOK_##name,
#include "shim/hooks/hooks_pool.def"
#undef HAND
#define TAKE(name, symbol) MT_HOOK_##name,
#define GIVE               TAKE
#define ID(name)           MT_HOOK_##name,
#include "shim/hooks/hooks_bfc.def"
#undef TAKE
#undef GIVE
#undef ID
#define BORN(name) MT_HOOK_PJRT_##name,
#define DEAD       BORN
#define LOOK       BORN
#include "shim/hooks/hooks_pjrt.def"
#undef BORN
#undef DEAD
#undef LOOK
#define ACL(name, params, args, before, after) MT_HOOK_##name,
#define LOW                                    ACL
#include "shim/hooks/hooks_acl.def"
#undef ACL
#undef LOW
#define MSTX(name) MT_HOOK_##name,
#include "shim/hooks/hooks_mstx.def"
#undef MSTX
	MT_HOOKS
};

extern const char *const mt_hook_names[MT_HOOKS];

/* The next function of each name in the loader's order: another preloaded allocator, or libc. NULL where the
 * system has none. */
struct mt_real {
#define RET(name, params, args, bytes) void *(*name)params;
#define HAND(type, name, params)       type(*name) params;
#include "shim/hooks/hooks_host.def"
#include "shim/hooks/hooks_process.def"
#undef RET
#undef HAND
};

extern struct mt_real mt_real __attribute__((visibility("hidden")));

/* What the program's calls of these reach where it is not our hook: a malloc of its own, or of a library that comes
 * before us. NULL = it is our hook. Hooks that libc makes of another one have to go there, as libc's do. */
extern struct mt_first {
	void *(*realloc)(void *p, size_t n);
	void (*free)(void *p);
} mt_first;

/* Looks up the real functions on first use. Returns 0 while a look-up is under way in this thread. */
int mt_boot(void);

/* Whether there is a real function of that name to call. */
#define MT_READY(name) (__builtin_expect(mt_real.name != NULL, 1) || (mt_boot() && mt_real.name != NULL))

/* The modules that define the malloc family, if that is not libc: their code, [start, end). */
enum { MT_ALLOCATORS = 4 };
extern struct mt_allocator {
	uintptr_t start, end;
} mt_allocators[MT_ALLOCATORS];
extern unsigned mt_allocator_count;

static inline int mt_allocator_has(const void *code)
{
	int found = 0;

	for (unsigned i = 0; i < mt_allocator_count; i++)
		found |= (uintptr_t)code - mt_allocators[i].start < mt_allocators[i].end - mt_allocators[i].start;
	return found;
}

/* Finds these modules, once; after mt_boot(). */
void mt_boot_allocator(void);

/* The boot pool serves allocations while the real functions are being looked up. Blocks are zeroed and never freed.
 * NULL = it is used up. mt_boot_owns(): nonzero if `p` is such a block; mt_boot_size(): its bytes. */
void *mt_boot_alloc(size_t align, size_t bytes);
size_t mt_boot_size(const void *p);

enum { MT_BOOT_BYTES = 64 * 1024 };
extern char mt_boot_pool[MT_BOOT_BYTES] __attribute__((visibility("hidden")));

static inline int mt_boot_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)mt_boot_pool < MT_BOOT_BYTES;
}

#endif
