/* An allocator that may be interrupted anywhere: memory comes from one atomic counter and is never returned. Preloaded
 * behind the shim it lets signal handlers allocate while the shim itself is being interrupted. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Alignas(64) char arena[2048ul << 20];
static size_t used;

static void *take(size_t align, size_t size)
{
	if (size > sizeof(arena) / 2 || align > 4096)
		return errno = ENOMEM, NULL;
	align = align < 16 ? 16 : align;
	size_t bytes = (size + 16 + align + 15) & ~15ul;
	size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
	if (at + bytes > sizeof(arena))
		return errno = ENOMEM, NULL;
	uintptr_t p = ((uintptr_t)arena + at + 16 + align - 1) & ~(align - 1);
	((size_t *)p)[-1] = size;
	return (void *)p;
}

void *malloc(size_t n) { return take(16, n); }
void *calloc(size_t k, size_t n) { return take(16, k * n); }
void free(void *p) { (void)p; }
void *memalign(size_t a, size_t n) { return take(a, n); }
void *aligned_alloc(size_t a, size_t n) { return take(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return (*p = take(a, n)) ? 0 : ENOMEM; }

void *realloc(void *old, size_t n)
{
	void *p = take(16, n);
	if (p && old) {
		size_t had = ((size_t *)old)[-1];
		memcpy(p, old, had < n ? had : n);
	}
	return p;
}
