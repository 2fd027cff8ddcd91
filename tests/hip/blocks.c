/* Reports blocks as PyTorch's caching allocators for ROCm and XPU do. Prints what reached libc10, and HIP's last error. Linked with the
 * stand-ins of libc10.so and libc10_hip.so, and the fake libamdhip64.so. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct device { int8_t type, index; };
extern void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
extern void report_oom(int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
extern int64_t c10_sum(void);
extern void c10_set_stream(int64_t id);
extern void fake_set(int status, int device);
extern int hipMalloc(void **p, size_t n), hipPeekAtLastError(void);

int main(void)
{
	struct device first = { 1, 0 }, second = { 6, 1 }, xpu = { 12, 0 }, processor = { 0, -1 }, other = { 20, 0 };
	void *p;

	errno = 77; /* stays: the first report looks for libraries */
	report((void *)0x1000, 512, 512, 1 << 21, first);
	report((void *)0x4800, 100, 100, 0, other);
	report((void *)0x4800, -100, 0, 0, other);
	printf("errno %d\n", errno);
	report((void *)0x2000, 1024, 1024, 1 << 21, second);
	report((void *)0x3000, 99, 99, 0, processor);
	report((void *)0x4000, 2048, 2048, 1 << 21, xpu);
	c10_set_stream(0xca); /* which is being captured */
	report((void *)0x5000, 4096, 4096, 1 << 21, first);
	report((void *)0x1000, -512, 0, 1 << 21, first);
	report((void *)0x4000, -2048, 0, 1 << 21, xpu);
	fake_set(2, 0);
	hipMalloc(&p, 1 << 20);
	report((void *)0x6000, 8192, 8192, 1 << 21, first);
	report_oom(1 << 20, 1000, 2000, first);
	report_oom(1 << 21, 1001, 2001, xpu);
	printf("libc10 has %" PRId64 ", last %d\n", c10_sum(), hipPeekAtLastError());
	return 0;
}
