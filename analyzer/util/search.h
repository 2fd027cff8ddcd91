/*
 * Binary search in what is in order, whatever it is ordered by.
 *
 *   size_t at = SEARCH_FIRST(i, count, list[i].addr >= addr);
 */
#ifndef MT_UTIL_SEARCH_H
#define MT_UTIL_SEARCH_H

#include <stddef.h>

/* The first i below `count` for which `holds` is true; `count` if there is none. It must be true of all behind it. */
#define SEARCH_FIRST(i, count, holds) \
	({ \
		size_t search_low = 0, search_high = (count); \
		while (search_low < search_high) { \
			const size_t i = search_low + (search_high - search_low) / 2; \
			if (holds) \
				search_high = i; \
			else \
				search_low = i + 1; \
		} \
		search_low; \
	})

#endif
