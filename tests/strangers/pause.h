/* How long a turn waits: PAUSE in the environment, in seconds. What is shorter than a kernel's tick is waited together. */
#include <stdlib.h>
#include <time.h>

static inline void wait_a_turn(void)
{
	static double wait = -1, owed;
	if (wait < 0)
		wait = getenv("PAUSE") ? atof(getenv("PAUSE")) : 0;
	owed += wait;
	if (owed < 0.001)
		return;
	const struct timespec time = { .tv_sec = (time_t)owed, .tv_nsec = (long)((owed - (double)(time_t)owed) * 1e9) };
	nanosleep(&time, NULL);
	owed = 0;
}
