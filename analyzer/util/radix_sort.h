/*
 * Sorts by a number, digit by digit; what has the same stays in its order. For hundreds of thousands of things, which
 * take several times as long to be compared two by two.
 *
 *   RADIX_SORT(sort_symbols, struct symbol, s->start)      of `s`, a pointer to one
 *   ... int e = sort_symbols(&list, count);                list was allocated, and is another one now
 *
 * The function returns 0 or -MT_EMEMORY; then the list is as it was.
 */
#ifndef MT_UTIL_RADIX_SORT_H
#define MT_UTIL_RADIX_SORT_H

#include "analyzer/util/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { RADIX_BITS = 11, RADIX_DIGITS = 1 << RADIX_BITS };

#define RADIX_SORT(name, type, key) \
	static inline size_t name##_digit(const type *s, unsigned shift) \
	{ \
		return (uint64_t)(key) >> shift & (RADIX_DIGITS - 1); \
	} \
	static inline void name##_pass(const type *from, type *to, size_t count, unsigned shift) \
	{ \
		size_t at[RADIX_DIGITS] = { 0 }, before = 0; \
		for (size_t i = 0; i < count; i++) \
			at[name##_digit(&from[i], shift)]++; \
		for (size_t d = 0; d < RADIX_DIGITS; d++) { \
			const size_t n = at[d]; \
			at[d] = before; \
			before += n; \
		} \
		for (size_t i = 0; i < count; i++) \
			to[at[name##_digit(&from[i], shift)]++] = from[i]; \
	} \
	static inline int name(type **list, size_t count) \
	{ \
		type *other = malloc((count + 1) * sizeof(*other)); \
		uint64_t bits = 0; \
		if (!other) \
			return error_memory(); \
		for (const type *s = *list; s < *list + count; s++) \
			bits |= (uint64_t)(key); \
		for (unsigned shift = 0; shift < 64 && bits >> shift; shift += RADIX_BITS) { \
			type *const from = *list; \
			name##_pass(from, other, count, shift); \
			*list = other; \
			other = from; \
		} \
		free(other); \
		return 0; \
	}

#endif
