/* Stands for libc10.so: the two functions that PyTorch's caching allocator reports to. Counts, so that a test sees that each call was
 * handed on; with -DCUDA for libc10_cuda.so, which knows the current stream, and with -DHIP for libc10_hip.so before PyTorch 2.11. */
#include <stdint.h>
#include <stdio.h>

#ifdef HIP
#define CURRENT "_ZN3c103hip19getCurrentHIPStreamEa"
#define POINTER "_ZNK3c103hip9HIPStream6streamEv"
#elif defined(CUDA)
#define CURRENT "_ZN3c104cuda20getCurrentCUDAStreamEa"
#define POINTER "_ZNK3c104cuda10CUDAStream6streamEv"
#endif

#ifdef CURRENT

struct stream { int8_t type, index; int64_t id; };

struct stream current(int8_t index) __asm__(CURRENT);
void *pointer(const struct stream *s) __asm__(POINTER);

void c10_set_stream(int64_t id);

static int64_t first;

/* Of device 0; that of device 1 stays 7. */
void c10_set_stream(int64_t id)
{
	first = id;
}

struct stream current(int8_t index)
{
	return (struct stream){ 1, index, index ? 7 : first };
}

void *pointer(const struct stream *s)
{
	return (void *)(uintptr_t)(s->id << 8);
}

#else

struct device { int8_t type, index; };

void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void report_oom(int64_t size, size_t allocated, size_t reserved, struct device d)
	__asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
int64_t c10_sum(void);

static int64_t sum;

void report(void *p, int64_t size, size_t allocated, size_t reserved, struct device d)
{
	sum += (int64_t)(uintptr_t)p * 3 + size * 5 + (int64_t)allocated * 7 + (int64_t)reserved * 11 + d.type * 13 + d.index * 17;
}

void report_oom(int64_t size, size_t allocated, size_t reserved, struct device d)
{
	sum += size * 19 + (int64_t)allocated * 23 + (int64_t)reserved * 29 + d.type * 31 + d.index * 37;
}

int64_t c10_sum(void)
{
	return sum;
}

#endif
