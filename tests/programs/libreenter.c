/* An allocator whose calloc, realloc and memalign call the public malloc and free, which are the shim's: each must be
 * recorded once. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t n);
extern void __libc_free(void *p);

void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }

void *calloc(size_t k, size_t n)
{
	size_t bytes;
	if (__builtin_mul_overflow(k, n, &bytes) || bytes > PTRDIFF_MAX)
		return errno = ENOMEM, NULL;
	void *p = malloc(bytes + 1);
	return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *old, size_t n)
{
	void *p = n > PTRDIFF_MAX ? (errno = ENOMEM, NULL) : malloc(n + 1);
	if (p && old) {
		size_t had = malloc_usable_size(old);
		memcpy(p, old, had < n ? had : n);
		free(old);
	}
	return p;
}
