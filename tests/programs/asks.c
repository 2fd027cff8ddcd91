/* Asks dlsym for what only libanswers.so knows. */
#include "test.h"

#include <dlfcn.h>

int main(void)
{
	static const char *const names[] = { "answers", "cuMemAlloc_v2", "cuMemFree_v2" };
	void *self = dlopen(NULL, RTLD_NOW);

	for (int i = 0; i < 3; i++) {
		int (*f)(void *, unsigned long) = (int (*)(void *, unsigned long))dlsym(self, names[i]);
		void *p = NULL;
		printf("%s %d\n", names[i], f ? f(&p, 8) : -1);
	}
	return 0;
}
