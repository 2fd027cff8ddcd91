/* Growing arrays: vec_reserve() makes room for `need` elements of a plain pointer with a separate capacity; new
 * elements are zero. vec_reserve_raw() leaves them as they are, so that room that isn't used yet costs no memory.
 * vec_extend() has zeros up to a count. */
#ifndef MT_UTIL_VEC_H
#define MT_UTIL_VEC_H

#include "analyzer/util/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is large and looked at all over is kept in large pages: with a fault every 4 KiB those took a tenth of a
 * report's time. */
void vec_large(void *p, size_t bytes);

/* For hash tables, which are read first and written then, nearly all of them: as calloc's each page would cost two
 * faults. */
void *vec_calloc(size_t count, size_t size);

/* Returns 0 or -MT_EMEMORY. */
static inline int vec_reserve_bytes(void **base, size_t *room, size_t need, size_t size, int clear)
{
	if (need <= *room)
		return 0;
	size_t n = *room * 2 > need ? *room * 2 : need < 8 ? 8 : need;
	void *p = realloc(*base, n * size);
	if (!p)
		return error_memory();
	vec_large(p, n * size);
	if (clear)
		memset((char *)p + *room * size, 0, (n - *room) * size);
	*base = p;
	*room = n;
	return 0;
}

/* Room for `n` elements exactly. */
static inline int vec_reserve_exactly(void **base, size_t *room, size_t n, size_t size)
{
	void *p = realloc(*base, n * size);
	if (!p)
		return error_memory();
	vec_large(p, n * size);
	*base = p;
	*room = n;
	return 0;
}

/* As vec_reserve(), by a fifth at a time: for what a report's memory consists of. */
static inline int vec_grow_bytes(void **base, size_t *room, size_t need, size_t size)
{
	size_t had = *room;
	if (need <= had)
		return 0;
	int e = vec_reserve_exactly(base, room, need + need / 5 + 64, size);
	if (!e)
		memset((char *)*base + had * size, 0, (*room - had) * size);
	return e;
}

/* Makes it `count` elements long, new ones being zero; *had is how many there were. */
static inline int vec_extend_bytes(void **base, size_t *had, size_t *room, size_t count, size_t size)
{
	int e = vec_reserve_bytes(base, room, count, size, 0);
	if (e)
		return e;
	memset((char *)*base + *had * size, 0, (count - *had) * size);
	*had = count;
	return 0;
}

/* Room for `need` elements, new ones being zero, for what is looked at here and there only: what is not takes no
 * memory. */
int vec_sparse_bytes(void **base, size_t *room, size_t need, size_t size);

#define vec_resize(base, room, n)          vec_reserve_exactly((void **)&(base), &(room), (n), sizeof(*(base)))
#define vec_grow(base, room, need)         vec_grow_bytes((void **)&(base), &(room), (need), sizeof(*(base)))
#define vec_sparse(base, room, need)       vec_sparse_bytes((void **)&(base), &(room), need, sizeof(*(base)))
#define vec_extend(base, had, room, count) vec_extend_bytes((void **)&(base), &(had), &(room), count, sizeof(*(base)))
#define vec_reserve(base, room, need)      vec_reserve_bytes((void **)&(base), &(room), (need), sizeof(*(base)), 1)
#define vec_reserve_raw(base, room, need)  vec_reserve_bytes((void **)&(base), &(room), (need), sizeof(*(base)), 0)

#endif
