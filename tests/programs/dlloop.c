/* dlloop LOOPS A B: loads A, allocates in it, unloads it, then B, which most likely lands at the same address. */
#include "test.h"

#include <dlfcn.h>

static void use(const char *path)
{
	void *module = dlopen(path, RTLD_NOW);
	CHECK(module);
	void *(*alloc)(void) = (void *(*)(void))dlsym(module, "mod_alloc");
	CHECK(alloc && opaque(alloc()));
	dlclose(module);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++) {
		use(argv[2]);
		use(argv[3]);
	}
	say("done\n");
	return 0;
}
