/* What main finds before it has done anything. */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>

int main(void)
{
	int first = errno;
	const char *error = dlerror(), *empty = getenv("");

	printf("errno %d, error %s, nameless %s\n", first, error ? error : "none", empty ? empty : "none");
	return 0;
}
