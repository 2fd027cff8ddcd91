/* Looks for CUDA and CANN where there are none, in every way, and for other things. Prints what it is told. */
#include <dlfcn.h>
#include <stdio.h>

extern int cudaMalloc(void **p, unsigned long n) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));

static void ask(const char *how, void *handle, const char *name)
{
	char error[200] = "no error", *said;
	void *p;

	dlerror();
	p = dlsym(handle, name);
	if ((said = dlerror()))
		snprintf(error, sizeof(error), "%s", said);
	printf("%s %s: %s, %s, then %s\n", how, name, p ? "found" : "NULL", error, dlerror() ? "an error" : "none");
}

int main(void)
{
	static const char *const names[] = { "cudaMalloc", "cuMemAlloc_v2", "cuInit", "cudnnCreate", "cu", "c", "", "aclrtMalloc", "acos",
	                                     "a", "malloc", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", "no such thing" };
	void *self = dlopen(NULL, RTLD_LAZY), *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ask("default", RTLD_DEFAULT, names[i]);
		ask("next", RTLD_NEXT, names[i]);
		ask("program", self, names[i]);
		ask("libc", libc, names[i]);
	}
	printf("malloc is %s the program's\n", dlsym(self, "malloc") == dlsym(RTLD_DEFAULT, "malloc") ? "" : "not");
	printf("weak cudaMalloc %s, cudaFree %s\n", cudaMalloc ? "there" : "NULL", cudaFree ? "there" : "NULL");
	printf("versioned %s, %s\n", dlvsym(RTLD_DEFAULT, "realpath", "GLIBC_2.3") ? "found" : "NULL", dlvsym(libc, "realpath", "GLIBC_9") ? "found" : "NULL");
	printf("%s\n", dlerror() ? "an error" : "no error");
	return 0;
}
