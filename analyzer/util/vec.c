#include "analyzer/util/vec.h"

#include <stdint.h>
#include <sys/mman.h>

#define LEAST_LARGE (8ul << 20)
#define PAGE        4096ul

/* The page that malloc's own words are on, too: a mapping that is of two kinds would not be moved as one. */
void vec_large(void *p, size_t bytes)
{
	size_t before = (uintptr_t)p % PAGE;
	if (p && bytes >= LEAST_LARGE)
		madvise((char *)p - before, before + bytes, MADV_HUGEPAGE);
}

void *vec_calloc(size_t count, size_t size)
{
	void *p = size && count > SIZE_MAX / size ? NULL : malloc(count * size);
	vec_large(p, count * size);
	return p ? memset(p, 0, count * size) : NULL;
}

int vec_sparse_bytes(void **base, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return 0;
	size_t n = need > *room * 2 ? need : *room * 2;
	void *p = calloc(n, size);
	if (!p)
		return error_memory();
	if (*room)
		memcpy(p, *base, *room * size);
	free(*base);
	*base = p;
	*room = n;
	return 0;
}
