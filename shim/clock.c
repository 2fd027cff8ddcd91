#include <string.h>

#include "shim/clock.h"
#include "shim/sys.h"

uint32_t mt_clock_shared;
uint32_t mt_clock = MT_CLOCK_MONOTONIC;

void mt_clock_choose(void)
{
#if defined(__x86_64__)
	char name[32];

	if (mt_sys_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof(name)) > 0 &&
	    !strncmp(name, "tsc", 3))
		mt_clock = MT_CLOCK_TSC;
#elif defined(__aarch64__)
	mt_clock = MT_CLOCK_CNTVCT; /* architected: synchronised over all cores */
#endif
}
