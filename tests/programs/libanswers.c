/* A library with a dlsym of its own that answers for functions of CUDA, as those do that share a GPU among programs. */
#include <dlfcn.h>
#include <string.h>

static int answer(void)
{
	return 4242;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	static void *(*real)(void *, const char *);

	for (int i = 0; i < 3 && !real; i++)
		real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	return !strcmp(name, "cuMemAlloc_v2") || !strcmp(name, "answers") ? (void *)answer : real(handle, name);
}
