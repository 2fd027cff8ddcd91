/* Of bytes and times, which never go below 0. */
#ifndef MT_UTIL_MINMAX_H
#define MT_UTIL_MINMAX_H

#include <stdint.h>

static inline uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t higher(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

#endif
