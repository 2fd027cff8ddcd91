/* plugnews LIBRARY...: a C program whose plug-ins are C++. Each gets blocks from its own operators, also after it was loaded anew. */
#include "test.h"

#include <dlfcn.h>

static void use(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *p[10];
	if (!handle) {
		say("%s\n", dlerror());
		return;
	}
	void *(*make)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(handle, "make");
	void (*drop)(void *) = (void (*)(void *))(uintptr_t)dlsym(handle, "drop");
	int (*served)(void) = (int (*)(void))(uintptr_t)dlsym(handle, "served");
	for (int i = 0; i < 10; i++)
		p[i] = make(1000);
	for (int i = 0; i < 10; i++)
		drop(p[i]);
	say("%d\n", served());
	dlclose(handle);
}

int main(int argc, char **argv)
{
	for (int round = 0; round < 3; round++)
		for (int i = 1; i < argc; i++)
			use(argv[i]);
	return 0;
}
