/*
 * Start-up of the hooks. What is allocated before the real functions are known comes from a small static pool. Its
 * blocks are recognised by address for ever after and are never handed to the real allocator.
 */
#include <string.h>

#include "shim/base/elfsearch.h"
#include "shim/base/elfsym.h"
#include "shim/base/libc.h"
#include "shim/hooks/hooks.h"

const char *const mt_hook_names[MT_HOOKS] = {
	"none",
#define RET(name, params, args, bytes) #name,
#define HAND(type, name, params)       #name,
#include "shim/hooks/hooks_host.def"
#undef RET
#undef HAND
#define NEW(symbol, version, name, params, args) name,
#define DELETE                                   NEW
#include "shim/hooks/hooks_new.def"
#undef NEW
#undef DELETE
#define HAND(library, name, params, args) #name,
#include "shim/hooks/hooks_cuda.def"
#define HAND(since, name, params, args) #name,
#include "shim/hooks/hooks_hip.def"
#define HAND(name, params, args) #name,
#include "shim/hooks/hooks_ze.def"
#define HAND(name, symbol) #name,
#define ID(name)           #name,
#include "shim/hooks/hooks_pool.def"
#undef HAND
#define TAKE(name, symbol) #name,
#define GIVE               TAKE
#define ID(name)           #name,
#include "shim/hooks/hooks_bfc.def"
#undef TAKE
#undef GIVE
#undef ID
#define BORN(name) "PJRT_" #name,
#define DEAD       BORN
#define LOOK       BORN
#include "shim/hooks/hooks_pjrt.def"
#undef BORN
#undef DEAD
#undef LOOK
#define ACL(name, params, args, before, after) #name,
#define LOW                                    ACL
#include "shim/hooks/hooks_acl.def"
#undef ACL
#undef LOW
#define MSTX(name) #name,
#include "shim/hooks/hooks_mstx.def"
#undef MSTX
};

_Static_assert(MT_HOOKS <= 1 << 10, "what an event has room for");

struct mt_real mt_real;
struct mt_first mt_first;

char mt_boot_pool[MT_BOOT_BYTES] __attribute__((aligned(4096)));
static size_t pool_used;
static __thread volatile int resolving;

void *mt_boot_alloc(size_t align, size_t bytes)
{
	size_t at, next, used = __atomic_load_n(&pool_used, __ATOMIC_RELAXED);

	if (bytes > MT_BOOT_BYTES || align > 4096)
		return NULL;
	do {
		/* the block's size lies just below it */
		at = (used + sizeof(size_t) + (align < 16 ? 15 : align - 1)) & ~(align < 16 ? (size_t)15 : align - 1);
		next = at + bytes;
		if (next > MT_BOOT_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&pool_used, &used, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(mt_boot_pool + at - sizeof(size_t), &bytes, sizeof(bytes));
	return mt_boot_pool + at;
}

size_t mt_boot_size(const void *p)
{
	size_t bytes;

	memcpy(&bytes, (const char *)p - sizeof(size_t), sizeof(bytes));
	return bytes;
}

int mt_boot(void)
{
	struct mt_real found;

	if (resolving)
		return 0;
	resolving = 1;
#define RET(name, params, args, bytes) \
	found.name = (void *(*)params)(uintptr_t)mt_symbols_search(MT_NEXT, NULL, #name, NULL);
#define HAND(type, name, params) found.name = (type(*) params)(uintptr_t)mt_symbols_search(MT_NEXT, NULL, #name, NULL);
#include "shim/hooks/hooks_host.def"
#include "shim/hooks/hooks_process.def"
#undef RET
#undef HAND
	/* two threads may both come here: they write the same */
	mt_first.realloc = (void *(*)(void *, size_t))(uintptr_t)mt_symbols_search(MT_BEFORE, NULL, "realloc", NULL);
	mt_first.free = (void (*)(void *))(uintptr_t)mt_symbols_search(MT_BEFORE, NULL, "free", NULL);
	mt_real = found;
	resolving = 0;
	return found.malloc != NULL;
}

struct mt_allocator mt_allocators[MT_ALLOCATORS];
unsigned mt_allocator_count;

/* Under the loader's lock on its list, so one thread at a time. */
static int add_allocator(struct dl_phdr_info *info, size_t size, void *function)
{
	const ElfW(Phdr) *code = mt_symbols_segment(info, function);
	uintptr_t start = code ? info->dlpi_addr + code->p_vaddr : 0;

	(void)size;
	if (!code || mt_allocator_has(function) || mt_allocator_count == MT_ALLOCATORS)
		return code != NULL;
	mt_allocators[mt_allocator_count] = (struct mt_allocator){ start, start + code->p_memsz };
	__atomic_store_n(&mt_allocator_count, mt_allocator_count + 1, __ATOMIC_RELEASE);
	return 1;
}

/* Another libc is not known to re-enter either way. */
#define ADD(name) \
	if ((void *)(uintptr_t)mt_real.name != mt_symbols_search(MT_NEXT, NULL, #name, MT_GLIBC)) \
		mt_libc()->dl_iterate_phdr(add_allocator, (void *)(uintptr_t)mt_real.name);

void mt_boot_allocator(void)
{
	static uint8_t done;

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return;
#define RET(name, params, args, bytes) ADD(name)
#define HAND(type, name, params)
#include "shim/hooks/hooks_host.def"
#undef RET
#undef HAND
	ADD(realloc) /* and of those with a body what each allocator has */
	ADD(free)
	ADD(posix_memalign)
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}
