/* An allocator whose calloc, realloc and posix_memalign call the public malloc and free, which are the shim's: each must
 * be recorded once. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>


void *calloc(size_t k, size_t n)
{
	void *p = malloc(k * n + 1);
	return p ? memset(p, 0, k * n) : NULL;
}

void *realloc(void *old, size_t n)
{
	void *p = malloc(n + 1);
	if (p && old) {
		size_t had = malloc_usable_size(old);
		memcpy(p, old, had < n ? had : n);
		free(old);
	}
	return p;
}
