/*
 * A binary heap: an array of pointers, of which the one that comes before all others stands first.
 *
 *   static bool before(const struct source *a, const struct source *b);
 *   HEAP(sources, struct source, before)
 *
 *   sources_heap_make(array, count);               any order becomes a heap
 *   array[0]->time = ...; sources_heap_moved(array, count);         the first one changed; it finds its place
 *   array[0] = array[--count]; sources_heap_moved(array, count);    the first one is taken out
 *
 * Of two neighbours neither of which comes before the other it is undefined, but always the same, which is first.
 */
#ifndef MT_UTIL_HEAP_H
#define MT_UTIL_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP(name, type, before) \
	static inline void name##_heap_down(type **heap, size_t count, size_t i) \
	{ \
		type *moved = heap[i]; \
		for (size_t child; (child = 2 * i + 1) < count; i = child) { \
			if (child + 1 < count && before(heap[child + 1], heap[child])) \
				child++; \
			if (!before(heap[child], moved)) \
				break; \
			heap[i] = heap[child]; \
		} \
		heap[i] = moved; \
	} \
	static inline void name##_heap_moved(type **heap, size_t count) \
	{ \
		if (count) \
			name##_heap_down(heap, count, 0); \
	} \
	static inline void name##_heap_make(type **heap, size_t count) \
	{ \
		for (size_t i = count / 2; i-- > 0;) \
			name##_heap_down(heap, count, i); \
	}

#endif
