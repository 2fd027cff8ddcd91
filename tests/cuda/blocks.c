/* Reports blocks as PyTorch's caching allocator does. Prints what reached libc10. Linked with the fake libc10.so, libc10_cuda.so and
 * libcuda.so.1. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct device { int8_t type, index; };
extern void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
extern void report_oom(int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
extern int64_t c10_sum(void);
extern void c10_set_stream(int64_t id);
extern void fake_set(int status, int device, int alive);

int main(void)
{
	struct device first = { 1, 0 }, second = { 1, 1 }, processor = { 0, -1 }, other = { 20, 0 };

	report((void *)0x1000, 512, 512, 1 << 21, first);
	report((void *)0x2000, 1024, 1024, 1 << 21, second);
	report((void *)0x3000, 99, 99, 0, processor);
	report((void *)0x4000, 98, 98, 0, other);
	report((void *)0x1000, -512, 0, 1 << 21, first);
	report_oom(1 << 20, 1000, 2000, first);
	fake_set(0, 1, 0);
	report_oom(1 << 21, 1001, 2001, second);
	report_oom(1 << 22, 1002, 2002, first); /* not the current device: what is free on it isn't known */
	report_oom(1 << 23, 1003, 2003, processor);
	report((void *)0x2000, -1024, 0, 1 << 21, second);
	c10_set_stream(0xca); /* which is being captured */
	report((void *)0x5000, 2048, 2048, 1 << 21, first);
	report_oom(1 << 24, 1004, 2004, first);
	c10_set_stream(0xcb);
	report((void *)0x6000, 4096, 4096, 1 << 21, first);
	printf("libc10 has %" PRId64 "\n", c10_sum());
	return 0;
}
