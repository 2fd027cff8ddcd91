/* See shim/arch/arch.h. What C and the C library can do on any machine. */
#ifndef MT_ARCH_GENERIC_ARCH_H
#define MT_ARCH_GENERIC_ARCH_H

#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define MT_ADDRESS_BITS 63 /* below the sign: who asks tries what it is told through the kernel */
#define MT_FRAME        ((const struct mt_frame *)0)

#define MT_ARCH_CLOCK MT_CLOCK_MONOTONIC

static inline bool mt_arch_clock_is_good(void)
{
	return true;
}

static inline uint64_t mt_arch_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t mt_arch_ticks_ordered(bool shared)
{
	if (shared)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return mt_arch_ticks();
}

static inline uint64_t mt_arch_second(void)
{
	return 1000000000;
}

/* syscall() is libc's own here: only where there is assembly is it wrapped. */
static inline long mt_arch_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	int kept = errno;
	long ret = syscall(n, a, b, c, d, e, f);

	if (ret == -1)
		ret = -errno;
	errno = kept;
	return ret;
}

static inline bool mt_arch_under_valgrind(void)
{
	return false;
}

/* Nobody knows: weak references without version (weak.c) stay what the loader has made them. */
static inline bool mt_arch_is_address(uint32_t type)
{
	(void)type;
	return false;
}

#endif
