/* reaper: becomes one that adopts its descendants' orphans (a subreaper) when it has been recorded for a while, has a child that works for as
 * long as a recorder needs to be started, and waits until it has no child any more. */
#include "test.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	free(opaque(malloc(10)));
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid_t pid = fork();
	if (!pid) {
		for (double end = now() + 2; now() < end;)
			for (int i = 0; i < 1000; i++)
				free(opaque(malloc(10 + (size_t)i % 100)));
		_exit(3);
	}
	int children = 0, status;
	while (wait(&status) > 0)
		children++;
	say("%d child, errno %d\n", children, errno);
	return 0;
}
