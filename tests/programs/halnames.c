/* Loads libhalnames.so (argument) for itself or for all, and runs it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *handle = argc > 2 ? dlopen(argv[1], RTLD_NOW | (argv[2][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL)) : NULL;
	void (*use)(void) = handle ? (void (*)(void))dlsym(handle, "use_own_names") : NULL;

	if (!use)
		return puts(dlerror()) < 0;
	use();
	return 0;
}
