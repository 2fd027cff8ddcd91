#include "analyzer/util/recorded_clock.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int clock_function(clockid_t clock, struct timespec *t);

/* Set by the thread that has the turn, read by any. */
static _Atomic uint64_t set_ns;
static clock_function *_Atomic libc_clock;

int clock_gettime(clockid_t clock, struct timespec *t);

/* The C library's doesn't enter the kernel. Before it is known, the kernel itself is asked: finding it may allocate. */
static int ask(clockid_t clock, struct timespec *t)
{
	clock_function *f = atomic_load_explicit(&libc_clock, memory_order_relaxed);
	return f ? f(clock, t) : (int)syscall(SYS_clock_gettime, clock, t);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	const uint64_t ns = atomic_load_explicit(&set_ns, memory_order_relaxed);
	const bool monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
			       clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
	if (!ns || !monotonic)
		return ask(clock, t);
	*t = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	return 0;
}

__attribute__((constructor)) static void find_clock(void)
{
	clock_function *f;
	*(void **)&f = dlsym(RTLD_NEXT, "clock_gettime");
	atomic_store_explicit(&libc_clock, f, memory_order_relaxed);
}

void recorded_clock_set(uint64_t ns)
{
	atomic_store_explicit(&set_ns, ns, memory_order_relaxed);
}

uint64_t recorded_clock_real_ns(void)
{
	struct timespec t;
	ask(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
