/* A segment of Level Zero's, and two blocks in it as PyTorch's allocator for XPU reports them. */
#include <stdint.h>
#include <stdio.h>

#include "shim/device/ze_abi.h"

struct device { int8_t type, index; };
extern void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
extern ze_result_t zeMemAllocDevice(ze_context_handle_t, const void *, size_t, size_t, ze_device_handle_t, void **);

int main(void)
{
	struct device xpu = { 12, 1 };
	char *p = NULL;

	zeMemAllocDevice(NULL, NULL, 1 << 21, 0, (ze_device_handle_t)0x200, (void **)&p);
	report(p, 512, 512, 1 << 21, xpu);
	report(p + 512, 1024, 1536, 1 << 21, xpu);
	report(p, -512, 1024, 1 << 21, xpu);
	puts("done");
	return 0;
}
