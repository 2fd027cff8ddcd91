/* The session's clock, read now on the machine that records. */
#ifndef MT_UTIL_TICKS_H
#define MT_UTIL_TICKS_H

#include <stdint.h>
#include <time.h>

#include "format/format.h"

static inline uint64_t ticks_mono_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ticks_now(uint32_t clock)
{
#if defined(__x86_64__)
	if (clock == MT_CLOCK_TSC)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (clock == MT_CLOCK_CNTVCT) {
		uint64_t ticks;
		__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	(void)clock;
	return ticks_mono_ns();
}

#endif
