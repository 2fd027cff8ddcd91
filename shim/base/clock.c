#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/sys.h"

uint32_t mt_clock_shared;
uint32_t mt_clock = MT_CLOCK_MONOTONIC;

bool mt_clock_kernel_uses(const char *wanted)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char name[32];

	return mt_sys_read_file(path, name, sizeof(name)) > 0 && !strncmp(name, wanted, strlen(wanted));
}

void mt_clock_choose(void)
{
	if (mt_arch_clock_is_good())
		mt_clock = MT_ARCH_CLOCK;
}
