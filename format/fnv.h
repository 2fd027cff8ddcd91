/* FNV-1a, of 64 bits: a hash of short texts that is the same everywhere. */
#ifndef MT_FNV_H
#define MT_FNV_H

#include <stddef.h>
#include <stdint.h>

#define MT_FNV_START 0xcbf29ce484222325ull

/* The hash of what `h` is of, with these bytes behind it. */
static inline uint64_t mt_fnv(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *at = (const uint8_t *)bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ at[i]) * 0x100000001b3ull;
	return h;
}

/* The same, of a text without its zero; NULL has no bytes. */
static inline uint64_t mt_fnv_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
	return h;
}

/* Of a table that takes the upper bits, or the lowest ones alone: each bit depends on more of the others. */
static inline uint64_t mt_fnv_stir(uint64_t h)
{
	return (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
}

#endif
