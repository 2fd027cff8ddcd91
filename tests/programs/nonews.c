/* No C++: whether somebody has operator new, asked in both ways. */
#include "test.h"

#include <dlfcn.h>

extern void *_Znwm(size_t n) __attribute__((weak));

int main(void)
{
	void *(*volatile weak)(size_t) = _Znwm;
	say("%d %d\n", weak != NULL, dlsym(RTLD_DEFAULT, "_ZdlPvm") != NULL);
	return 0;
}
