/* Time goes a thousand times as fast for whoever has this preloaded. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long e = syscall(SYS_clock_gettime, clock, t);
	if (e == 0 && clock == CLOCK_MONOTONIC) {
		unsigned long long ns = ((unsigned long long)t->tv_sec % 1000000 * 1000000000 + (unsigned long long)t->tv_nsec) * 1000;
		t->tv_sec = (time_t)(ns / 1000000000);
		t->tv_nsec = (long)(ns % 1000000000);
	}
	return (int)e;
}
