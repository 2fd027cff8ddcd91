/* A dlsym that allocates, as some versions of libc and some interposers do: the shim finds the real functions through it. */
#include <dlfcn.h>
#include <stdlib.h>

void *dlsym(void *restrict handle, const char *restrict name)
{
	static void *(*real)(void *, const char *);
	if (!real)
		real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!real)
		real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!real)
		real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	void *volatile p = calloc(3, 50);
	void *volatile q = malloc(70);
	p = realloc(p, 500);
	void *found = real(handle, name);
	free(p);
	free(q);
	return found;
}
