/*
 * Start-up of the hooks. dlsym may call calloc, which is us, before we know the real calloc: a small static
 * pool serves those calls. Its blocks are recognised by address for ever after and are never handed to the
 * real allocator.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "shim/dlsym.h"
#include "shim/hooks.h"

#define POOL_BYTES (64 * 1024)

const char *const mt_hook_names[MT_HOOKS] = {
	"none",
#define RET(name, params, args, bytes) #name,
#define HAND(type, name, params) #name,
#define OPT HAND
#include "shim/hooks_host.def"
#undef RET
#undef HAND
#undef OPT
#define HAND(library, name, params, args) #name,
#include "shim/hooks_cuda.def"
#define HAND(name, symbol) #name,
#include "shim/hooks_pool.def"
#undef HAND
#define ACL(name, params, args, before, after) #name,
#define LOW ACL
#include "shim/hooks_acl.def"
#undef ACL
#undef LOW
#define MSTX(name) #name,
#include "shim/hooks_mstx.def"
#undef MSTX
};

_Static_assert(MT_HOOKS <= 1 << 10, "what an event has room for");

struct mt_real mt_real;

static char pool[POOL_BYTES] __attribute__((aligned(4096)));
static size_t pool_used;
/* volatile: dlsym is declared as a leaf that never calls back, but it does, through malloc */
static __thread volatile int resolving;

void *mt_boot_alloc(size_t align, size_t bytes)
{
	size_t at, next, used = __atomic_load_n(&pool_used, __ATOMIC_RELAXED);

	if (bytes > POOL_BYTES || align > 4096)
		return NULL;
	do {
		/* the block's size lies just below it */
		at = (used + sizeof(size_t) + (align < 16 ? 15 : align - 1)) & ~(align < 16 ? (size_t)15 : align - 1);
		next = at + bytes;
		if (next > POOL_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&pool_used, &used, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(pool + at - sizeof(size_t), &bytes, sizeof(bytes));
	return pool + at;
}

int mt_boot_owns(const void *p)
{
	return (const char *)p >= pool && (const char *)p < pool + POOL_BYTES;
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
#define RET(name, params, args, bytes) found.name = (void *(*) params)(uintptr_t)mt_dlsym(RTLD_NEXT, #name);
#define HAND(type, name, params) found.name = (type (*) params)(uintptr_t)mt_dlsym(RTLD_NEXT, #name);
#define OPT(type, name, params) found.name = NULL;
#include "shim/hooks_host.def"
#include "shim/hooks_process.def"
#undef RET
#undef HAND
#undef OPT
	/* two threads may both come here: they write the same */
	mt_real = found;
	resolving = 0;
	return found.malloc != NULL;
}

uintptr_t mt_allocator_start, mt_allocator_end;

static int find_allocator(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t target = (uintptr_t)mt_real.malloc;

	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type == PT_LOAD && target >= start && target < start + ph->p_memsz) {
			mt_allocator_start = start;
			mt_allocator_end = start + ph->p_memsz; /* its code: one segment */
			return 1;
		}
	}
	return 0;
}

void mt_boot_rest(void)
{
#define RET(name, params, args, bytes)
#define HAND(type, name, params)
#define OPT(type, name, params) mt_real.name = (type (*) params)(uintptr_t)mt_dlsym(RTLD_NEXT, #name);
#include "shim/hooks_host.def"
#undef RET
#undef HAND
#undef OPT
	/* glibc's own name for it; another libc is not known to re-enter either way */
	if ((void *)(uintptr_t)mt_real.malloc != mt_dlsym(RTLD_DEFAULT, "__libc_malloc"))
		dl_iterate_phdr(find_allocator, NULL);
}
