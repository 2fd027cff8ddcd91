/*
 * The recorded time, for allocators that give memory back by the clock (jemalloc, mimalloc). The program has a
 * clock_gettime() of its own, which stands before the C library's for every library in the process. It
 * passes on what it is asked until recorded_clock_set() is called, as only the child does that makes a heap's calls
 * again.
 */
#ifndef MT_UTIL_RECORDED_CLOCK_H
#define MT_UTIL_RECORDED_CLOCK_H

#include <stdint.h>

/* From now on this is what monotonic clocks read in this process, until the next call. */
void recorded_clock_set(uint64_t ns);

/* CLOCK_MONOTONIC as it is. */
uint64_t recorded_clock_real_ns(void);

#endif
