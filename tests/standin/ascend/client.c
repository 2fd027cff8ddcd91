/* Calls every function that allocates or frees, in the way it was built for:
 *   LINKED    by symbol
 *   HANDLE    dlopen(RTLD_LOCAL) and dlsym of the handle
 *   DEFAULT   dlopen(RTLD_GLOBAL) and dlsym(RTLD_DEFAULT)
 * With TWIN the twins below libacl_rt.so. Usage: client MODE; what was done is in the stand-in's log. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl.h"

#ifdef TWIN
#define API(name) name##Impl
#else
#define API(name) name
#endif

/* The lower layers, where they are libraries of their own. */
#define LOW_FUNCTIONS                                                                                 \
	LOW(rtMalloc, (void **out, uint64_t bytes, uint32_t type, uint16_t module))                   \
	LOW(rtDvppMalloc, (void **out, uint64_t bytes, uint16_t module))                              \
	LOW(rtFree, (void *p)) LOW(rtFreeWithDevSync, (void *p)) LOW(rtDvppFree, (void *p))           \
	LOW(rtMallocHost, (void **out, uint64_t bytes, uint16_t module))                              \
	LOW(rtFreeHost, (void *p)) LOW(rtFreeHostWithDevSync, (void *p))                              \
	LOW(halMemAlloc, (void **out, unsigned long long bytes, unsigned long long flag))             \
	LOW(halMemFree, (void *p))

#ifdef LINKED
#define FN(name, params, args) int API(name) params;
#include "functions.def"
#undef FN
#define C(name) API(name)
#define L(name) name
#pragma weak rtMalloc
#pragma weak rtDvppMalloc
#pragma weak rtFree
#pragma weak rtFreeWithDevSync
#pragma weak rtDvppFree
#pragma weak rtMallocHost
#pragma weak rtFreeHost
#pragma weak rtFreeHostWithDevSync
#pragma weak halMemAlloc
#pragma weak halMemFree
static void set_up(void) {}
#else
static struct {
#define FN(name, params, args) int (*name) params;
#include "functions.def"
#undef FN
#define LOW(name, params) int (*name) params;
LOW_FUNCTIONS
#undef LOW
} api;
#define C(name) api.name
#define L(name) api.name

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

static void set_up(void)
{
#ifdef HANDLE
	void *handle = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL), *from = handle;
#else
	void *handle = dlopen("libascendcl.so", RTLD_NOW | RTLD_GLOBAL), *from = RTLD_DEFAULT;
#endif

	if (!handle) {
		puts(dlerror());
		exit(1);
	}
#define FN(name, params, args)                                                              \
	*(void **)&api.name = dlsym(from, TEXT(API(name)));                                 \
	if (!api.name)                                                                      \
		puts(#name " is missing");
#include "functions.def"
#undef FN
#define LOW(name, params) *(void **)&api.name = dlsym(from, #name);
	LOW_FUNCTIONS
#undef LOW
}
#endif

static int failures;

static void expect(int status, int want, const char *what)
{
	if (status != want) {
		printf("%s: %d, not %d\n", what, status, want);
		failures++;
	}
}

#define OK(name, args) expect(C(name) args, 0, #name)
#define GIVES(want, name, args) expect(C(name) args, want, #name)
#define MIB (1ul << 20)

static struct acl_attribute on_second = { 2, { .device = 1 } };
static struct acl_config config = { &on_second, 1 };

static void linear(void)
{
	void *p[8];

	OK(aclrtMalloc, (&p[0], 1000, 0));
	OK(aclrtMallocAlign32, (&p[1], 3 * MIB, 1));
	OK(aclrtMallocCached, (&p[2], 4097, 0));
	OK(aclrtMallocWithCfg, (&p[3], 5 * MIB, 0, &config));
	OK(aclrtMallocForTaskScheduler, (&p[4], 64, 0, NULL));
	OK(aclrtMemAllocManaged, (&p[5], 7 * MIB, 1));
	OK(acldvppMalloc, (&p[6], 8192));
	OK(aclrtMallocWithCfg, (&p[7], 96, 0, NULL));
	GIVES(ACL_INVALID, aclrtMalloc, (&p[0], 0, 0));
	GIVES(ACL_PARAM_INVALID, aclrtFree, ((void *)16));
	for (int i = 0; i < 4; i++)
		OK(aclrtFree, (p[i]));
	OK(aclrtFreeWithDevSync, (p[4]));
	OK(aclrtFree, (p[5]));
	OK(acldvppFree, (p[6]));
	/* p[7] stays */
}

static void asynchronous(void)
{
	void *pool, *p, *stream = (void *)0x77;

	OK(aclrtMemPoolCreate, (&pool, NULL));
	OK(aclrtMemPoolMallocAsync, (&p, 2 * MIB, pool, stream));
	OK(aclrtMemPoolFreeAsync, (p, stream));
	OK(aclrtMemPoolDestroy, (pool));
}

static void host(void)
{
	static char own[2][8192];
	void *p[2], *alias;

	OK(aclrtMallocHost, (&p[0], 12345));
	OK(aclrtMallocHostWithCfg, (&p[1], MIB, NULL));
	OK(aclrtFreeHost, (p[0]));
	OK(aclrtFreeHostWithDevSync, (p[1]));
	OK(aclrtHostRegister, (own[0], 4096, 0, &alias));
	OK(aclrtHostRegisterV2, (own[1], 8000, 2));
	GIVES(ACL_HOST_REGISTERED, aclrtHostRegisterV2, (own[1], 8000, 2));
	OK(aclrtHostUnregister, (own[0]));
	OK(aclrtHostUnregister, (own[1]));
	GIVES(ACL_HOST_UNREGISTERED, aclrtHostUnregister, (own[1]));
}

static void virtual(void)
{
	const struct acl_physical on_first = { .place = 1 }, second = { .place = 1, .place_id = 1 }, in_host = { .place = 0 };
	void *range, *other, *handle[3], *again;

	OK(aclrtReserveMemAddress, (&range, 64 * MIB, 0, NULL, 1));
	OK(aclrtReserveMemAddressNoUCMemory, (&other, 1ul << 30, 0, NULL, 1));
	OK(aclrtMallocPhysical, (&handle[0], 20 * MIB, &on_first, 0));
	OK(aclrtMallocPhysical, (&handle[1], 2 * MIB, &second, 0));
	OK(aclrtMallocPhysical, (&handle[2], 4 * MIB, &in_host, 0));
	OK(aclrtMapMem, (range, 20 * MIB, 0, handle[0], 0));
	OK(aclrtMemRetainAllocationHandle, (range, &again));
	OK(aclrtFreePhysical, (again)); /* the first reference is left */
	OK(aclrtUnmapMem, (range));
	GIVES(ACL_PARAM_INVALID, aclrtUnmapMem, (range));
	for (int i = 0; i < 3; i++)
		OK(aclrtFreePhysical, (handle[i]));
	GIVES(ACL_BAD_HANDLE, aclrtFreePhysical, (handle[0]));
	OK(aclrtReleaseMemAddress, (range));
	OK(aclrtReleaseMemAddress, (other));
}

static void shared(void)
{
	const struct acl_physical here = { .place = 1 };
	void *p, *opened, *handle, *imported;
	char key[65];
	uint64_t name;

	OK(aclrtMalloc, (&p, 3000, 0));
	OK(aclrtIpcMemGetExportKey, (p, 3000, key, sizeof key, 0));
	OK(aclrtIpcMemImportByKey, (&opened, key, 0));
	OK(aclrtIpcMemClose, (key));
	GIVES(ACL_PARAM_INVALID, aclrtIpcMemClose, (key));
	OK(aclrtFree, (p));
	OK(aclrtMallocPhysical, (&handle, MIB, &here, 0));
	OK(aclrtMemExportToShareableHandle, (handle, 0, 0, &name));
	OK(aclrtMemImportFromShareableHandle, (name, 0, &imported));
	OK(aclrtFreePhysical, (imported));
	OK(aclrtMemExportToShareableHandleV2, (handle, 0, 0, &name));
	OK(aclrtMemImportFromShareableHandleV2, (&name, 0, 0, &imported));
	OK(aclrtFreePhysical, (imported));
	OK(aclrtFreePhysical, (handle));
}

static void everything(void)
{
	linear();
	asynchronous();
	host();
	virtual();
	shared();
}

static void *in_thread(void *unused)
{
	OK(aclrtSetDevice, (1));
	linear();
	return unused;
}

/* A block is freed by a thread whose current device is another one. */
static void threads(void)
{
	pthread_t thread;
	void *p;

	OK(aclrtMalloc, (&p, MIB, 0));
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	OK(aclrtSetDevice, (1));
	OK(aclrtFree, (p));
}

static void out_of_memory(void)
{
	const struct acl_physical here = { .place = 1 };
	void *p, *handle;

	OK(aclrtMalloc, (&p, 40 * MIB, 0));
	GIVES(ACL_OUT_OF_MEMORY, aclrtMallocAlign32, (&handle, 3111649280ul, 1));
	GIVES(ACL_OUT_OF_MEMORY, aclrtMallocPhysical, (&handle, 90 * MIB, &here, 0));
	GIVES(ACL_OUT_OF_MEMORY, aclrtMallocWithCfg, (&handle, 900 * MIB, 0, &config));
	OK(aclrtFree, (p));
}

static void sizes(void)
{
	void *p, *q;

	OK(aclrtMallocWithCfg, (&p, 4 * MIB, 0, &config));
	OK(aclrtFree, (p));
	OK(aclrtSetDevice, (1));
	OK(aclrtMalloc, (&q, 5 * MIB, 0));
}

static const char *program;

static void crowded(void)
{
	void *p;

	OK(aclrtMalloc, (&p, 30 * MIB, 0));
	GIVES(ACL_OUT_OF_MEMORY, aclrtMalloc, (&p, 60 * MIB, 0));
}

static void neighbours(void)
{
	char command[4096];
	void *p;

	OK(aclrtMalloc, (&p, 40 * MIB, 0));
	snprintf(command, sizeof command, "%s crowded >&2", program);
	failures += system(command) != 0;
	OK(aclrtFree, (p));
}

static void huge_pages(void)
{
	void *p;

	OK(aclrtMalloc, (&p, 4 * MIB, 0));
	OK(aclrtFree, (p));
}

static void reset(void)
{
	void *p[3];

	OK(aclrtSetDevice, (0)); /* twice by now */
	OK(aclrtMalloc, (&p[0], MIB, 0));
	OK(aclrtSetDevice, (1));
	OK(aclrtMalloc, (&p[1], 2 * MIB, 0));
	OK(aclrtResetDevice, (0));
	OK(aclrtSetDevice, (0));
	OK(aclrtMalloc, (&p[2], 3 * MIB, 0)); /* beside p[0] */
	OK(aclrtResetDevice, (0));
	OK(aclrtResetDevice, (0)); /* as often as it was set */
	OK(aclrtSetDevice, (0));
	OK(aclrtMalloc, (&p[0], 4 * MIB, 0));
	OK(aclrtSetDevice, (1));
	OK(aclrtResetDeviceForce, (1));
}

static void *late;

static void at_exit(void)
{
	OK(aclrtFree, (late));
	OK(aclrtMalloc, (&late, 2 * MIB, 0));
	OK(aclFinalize, ());
	OK(aclrtMallocHost, (&late, 5 * MIB));
}

static void finalize(void)
{
	OK(aclrtMalloc, (&late, MIB, 0));
	atexit(at_exit);
}

static void forked(void)
{
	void *p, *q;
	pid_t child;

	OK(aclrtMalloc, (&p, MIB, 0));
	child = fork();
	if (child == 0) {
		OK(aclrtMalloc, (&q, 2 * MIB, 0));
		OK(aclrtFree, (p)); /* the parent's */
		_exit(failures);
	}
	int status;
	waitpid(child, &status, 0);
	failures += status != 0;
	OK(aclrtFree, (p));
}

static void low(void)
{
	void *p[5];

	if (!L(rtMalloc)) {
		puts("no lower layers");
		return;
	}
	expect(L(rtMalloc)(&p[0], 3 * MIB, 2, 0), 0, "rtMalloc");
	expect(L(rtDvppMalloc)(&p[1], 5000, 0), 0, "rtDvppMalloc");
	expect(L(rtMallocHost)(&p[2], 6000, 0), 0, "rtMallocHost");
	expect(L(rtMallocHost)(&p[3], 7000, 0), 0, "rtMallocHost");
	expect(L(halMemAlloc)(&p[4], 9 * MIB, 1), 0, "halMemAlloc");
	expect(L(rtFree)(p[0]), 0, "rtFree");
	expect(L(rtDvppFree)(p[1]), 0, "rtDvppFree");
	expect(L(rtFreeHost)(p[2]), 0, "rtFreeHost");
	expect(L(rtFreeHostWithDevSync)(p[3]), 0, "rtFreeHostWithDevSync");
	expect(L(halMemFree)(p[4]), 0, "halMemFree");
	expect(L(rtMalloc)(&p[0], 100, 2, 0), 0, "rtMalloc");
	expect(L(rtFreeWithDevSync)(p[0]), 0, "rtFreeWithDevSync");
	expect(L(halMemAlloc)(&p[4], 4000, HAL_HOST << HAL_SPACE_SHIFT), 0, "halMemAlloc");
	expect(L(halMemFree)(p[4]), 0, "halMemFree");
}

static const char *tail(const char *path)
{
	const char *folder = path ? strstr(path, "/cann/") : NULL, *base = path ? strrchr(path, '/') : NULL;

	return folder ? folder : base ? base : path ? path : "nowhere";
}

/* Where a function is said to be, as MindSpore asks; and other things that have addresses. */
static void where(void)
{
	static int here = 1;
	int unknown;
	const struct { void *address; const char *name; } asked[] = {
		{ (void *)C(aclrtMalloc), "aclrtMalloc" }, { (void *)C(aclrtFree), "aclrtFree" },
		{ (void *)C(aclrtGetDevice), "aclrtGetDevice" }, { (void *)where, "own" }, { &here, "data" }, { &unknown, "stack" },
		{ dlsym(dlopen("libc.so.6", RTLD_LAZY), "qsort"), "qsort" }, { NULL, "null" },
	};

	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		Dl_info info = { 0 }, more = { 0 };
		struct link_map *map = NULL;
		const ElfW(Sym) *symbol = NULL;
		int found = dladdr(asked[i].address, &info);
		int again = dladdr1(asked[i].address, &more, (void **)&map, RTLD_DL_LINKMAP);
		int sized = dladdr1(asked[i].address, &more, (void **)&symbol, RTLD_DL_SYMENT);
		printf("%s: %d %d %d %s %s %s %d %d\n", asked[i].name, found, again, sized, tail(info.dli_fname),
		       info.dli_sname ? info.dli_sname : "-", map ? tail(map->l_name) : "-", info.dli_saddr == asked[i].address,
		       symbol && symbol->st_size > 0);
	}
}

static const struct { const char *name; void (*run)(void); } modes[] = {
	{ "all", everything }, { "threads", threads }, { "oom", out_of_memory }, { "huge", huge_pages }, { "reset", reset },
	{ "finalize", finalize }, { "fork", forked }, { "low", low }, { "where", where }, { "sizes", sizes }, { "crowded", crowded },
	{ "neighbours", neighbours },
};

int main(int argc, char **argv)
{
	program = argv[0];
	set_up();
	OK(aclInit, (NULL));
	OK(aclrtSetDevice, (0));
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
		if (!strcmp(argv[1], modes[i].name))
			modes[i].run();
	printf("%d failures\n", failures);
	return failures != 0;
}
