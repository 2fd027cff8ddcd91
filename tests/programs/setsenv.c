/* Changes its environment in every way, as numpy does when it is imported. Prints how many entries there are, and one. */
#include "test.h"

int main(void)
{
	int n = 0;
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "SET_%d", i);
		CHECK(!setenv(name, "value", 1));
	}
	CHECK(!setenv("MEMTRACE_SESSION", "elsewhere", 1) && !unsetenv("MEMTRACE_SESSION"));
	CHECK(!putenv((char *)"PUT=here") && !unsetenv("SET_3"));
	for (char **e = environ; *e; e++)
		n += !strncmp(*e, "SET_", 4);
	say("%d %s %d\n", n, getenv("PUT"), getenv("SET_3") == NULL);
	CHECK(!clearenv() && !setenv("LAST", "one", 1));
	return 0;
}
