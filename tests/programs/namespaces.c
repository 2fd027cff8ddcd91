/* A process whose children are in another namespace of pids than itself: the next one is PID 1 there, and once that has
 * ended there can be no other.
 *   namespaces MILLISECONDS    how long it allocates before the child */
#include "test.h"

#include <sched.h>
#include <sys/wait.h>
#include <time.h>

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long end = now_ms() + (argc > 1 ? atol(argv[1]) : 1500);
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID)) {
		say("no namespaces\n");
		return 3;
	}
	while (now_ms() < end) {
		for (int i = 0; i < 2000; i++)
			free(opaque(malloc(100)));
		usleep(10000);
	}
	pid = fork();
	if (pid < 0) {
		say("fork: %s\n", strerror(errno));
		return 1;
	}
	if (pid == 0) {
		say("child %d\n", (int)getpid());
		_exit(4);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	say("status %d\n", WEXITSTATUS(status));
	return 0;
}
