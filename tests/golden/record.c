/*
 * What the golden traces are recorded from: a little of everything that the format can say.
 *
 * usage: record killed     two threads, every kind of heap call, then SIGKILL: raw chunks only
 *        record final      the same for long enough that a recorder comes, to the end: blocks only
 *        record tree       mappings of every kind, a fork, an exec, a child that ends by a signal
 *        record devices    calls of a (stand-in) CUDA driver and of PyTorch's pool, then SIGKILL: raw chunks only
 *        record gpu        the same to the end: blocks only
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static void *slots[64];

/* The compiler must not see through the calls. */
static void *volatile sink;

static void *use(void *p)
{
	sink = p;
	return p;
}

static void *thread(void *arg)
{
	uint64_t random = (uintptr_t)arg * 0x9E3779B97F4A7C15u;

	for (int i = 0; i < 120; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		void **slot = &slots[random % 32 + ((uintptr_t)arg & 1) * 32];
		if (random >> 60 == 0)
			*slot = realloc(*slot, random >> 40 & 0xfff);
		else {
			free(*slot);
			*slot = use(malloc((random >> 40 & 0xff) << (random >> 50 & 7)));
		}
	}
	return NULL;
}

static void heap(void)
{
	pthread_t threads[2];
	void *p = NULL;

	for (uintptr_t i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
		pthread_join(threads[i], NULL);
	}
	free(use(calloc(3, 100)));
	use(malloc(0));
	use(malloc((size_t)1 << 62));
	free(use(aligned_alloc(64, 640)));
	if (posix_memalign(&p, 4096, 5000) == 0)
		free(use(p));
	p = realloc(use(malloc(10)), 100000);
	p = realloc(use(p), 20);
	free(realloc(use(p), (size_t)1 << 61) ? NULL : p);
	use(memalign(32, 33));
}

static void mappings(void)
{
	char *a = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int exe = open("/proc/self/exe", O_RDONLY), mem = memfd_create("golden", 0);
	void *file = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, exe, PAGE);

	mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ftruncate(mem, 4 * PAGE) == 0)
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	munmap(a + 4 * PAGE, 2 * PAGE);
	mmap(a + 8 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mremap(a, 4 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
	munmap(file, 2 * PAGE);
	mmap(NULL, (size_t)1 << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void tree(const char *self)
{
	int status;
	void *before = use(malloc(1000));
	pid_t pid = fork();

	if (pid == 0) {
		free(before);
		use(malloc(2000));
		_exit(7);
	}
	waitpid(pid, &status, 0);
	pid = fork();
	if (pid == 0) {
		use(malloc(3000));
		execl(self, self, "leaf", "an argument", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	pid = fork();
	if (pid == 0)
		raise(SIGKILL);
	waitpid(pid, &status, 0);
	mappings();
}

/* ---- devices: as a program does it that knows neither driver nor PyTorch when it is built ---- */

struct prop { int type, handles, where, id; void *security; unsigned char flags[8]; }; /* CUmemAllocationProp */
struct device { int8_t type, index; };                                                  /* c10::Device */

static void *cuda;

/* c10::reportMemoryUsageToProfiler and reportOutOfMemoryToProfiler: the shim's, where there is one. */
__attribute__((weak)) void report_block(void *, int64_t, size_t, size_t, struct device)
	__asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
__attribute__((weak)) void report_oom(int64_t, size_t, size_t, struct device)
	__asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

#define CU(name, ...) ((int (*)(__VA_ARGS__))dlsym(cuda, #name))

static void *begin_device(void)
{
	void *context = NULL;
	int device = 0;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda || CU(cuInit, unsigned)(0) || CU(cuDeviceGet, int *, int)(&device, 0))
		return NULL;
	CU(cuDevicePrimaryCtxRetain, void **, int)(&context, device);
	CU(cuCtxSetCurrent, void *)(context);
	return context;
}

static void pool(char *segment)
{
	struct device first = { 1, 0 };

	for (int i = 0; report_block && i < 8; i++)
		report_block(segment + (i << 20), 1 << 20, (size_t)(i + 1) << 20, 20 << 20, first);
	for (int i = 0; report_block && i < 8; i += 3)
		report_block(segment + (i << 20), -(1 << 20), 5 << 20, 20 << 20, first);
	if (report_oom)
		report_oom(1ll << 40, 5 << 20, 20 << 20, first);
}

static void pages(void)
{
	struct prop prop = { .type = 1, .where = 1 };
	unsigned long long start = 0, handle[3] = { 0 };

	CU(cuMemAddressReserve, unsigned long long *, size_t, size_t, unsigned long long, unsigned long long)(&start, 64 << 20, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		CU(cuMemCreate, unsigned long long *, size_t, const struct prop *, unsigned long long)(&handle[i], 2 << 20, &prop, 0);
	for (unsigned i = 0; i < 2; i++)
		CU(cuMemMap, unsigned long long, size_t, size_t, unsigned long long, unsigned long long)(start + (i << 21), 2 << 20, 0,
													  handle[i], 0);
	CU(cuMemUnmap, unsigned long long, size_t)(start, 2 << 20);
	CU(cuMemRelease, unsigned long long)(handle[0]);
}

static int devices(void)
{
	static char page[8192];
	unsigned long long a = 0, b = 0;
	void *pinned = NULL;

	if (!begin_device())
		return 4;
	CU(cuMemAlloc_v2, unsigned long long *, size_t)(&a, 20 << 20);
	CU(cuMemAlloc_v2, unsigned long long *, size_t)(&b, 3000);
	pool((char *)(uintptr_t)a);
	CU(cuMemFree_v2, unsigned long long)(b);
	CU(cuMemFree_v2, unsigned long long)(12345 << 12);
	CU(cuMemHostAlloc, void **, size_t, unsigned)(&pinned, 1 << 16, 0);
	CU(cuMemHostRegister_v2, void *, size_t, unsigned)(page, sizeof(page), 0);
	CU(cuMemAlloc_v2, unsigned long long *, size_t)(&b, (size_t)1 << 45);
	pages();
	return 0;
}

/* Makes events until a recorder has had the time to come. */
static void linger(void)
{
	for (int i = 0; i < 16; i++) {
		free(use(malloc(1000 + (size_t)i)));
		usleep(100000);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "leaf"))
		return use(malloc(4000)) == NULL;
	heap();
	if ((!strcmp(how, "devices") || !strcmp(how, "gpu")) && devices())
		return 4;
	if (!strcmp(how, "killed") || !strcmp(how, "devices"))
		raise(SIGKILL);
	if (!strcmp(how, "tree"))
		tree(argv[0]);
	linger();
	return strcmp(how, "final") && strcmp(how, "gpu") ? 3 : 0;
}
