/* A program whose other threads wait for any child at all while a recorder is started; it makes none. Prints how often they
 * met one: meets WAY. */
#include "test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile int done;
static unsigned met[8];

static int any(int how)
{
	siginfo_t info = { 0 };
	int status;

	switch (how) {
	case 0:
		return waitpid(-1, &status, __WALL);
	case 1:
		return waitpid(-1, &status, __WALL | WNOHANG);
	case 2:
		return wait4(-1, &status, __WCLONE, NULL);
	case 3:
		return wait3(&status, __WALL, NULL);
	case 4:
		return waitid(P_ALL, 0, &info, WEXITED | __WALL);
	case 5:
		return waitid(P_ALL, 0, NULL, WEXITED | WNOWAIT | __WALL);
	case 6:
		return (int)syscall(SYS_wait4, -1, &status, __WALL, NULL);
	default:
		return (int)syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | __WALL, NULL);
	}
}

static void *wait_for_any(void *how)
{
	while (!done)
		if (any((int)(intptr_t)how) != -1 || errno != ECHILD)
			met[(intptr_t)how]++;
	return NULL;
}

int main(int argc, char **argv)
{
	int how = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, wait_for_any, (void *)(intptr_t)how) == 0);
	usleep(10000);
	free(opaque(malloc((size_t)100 << 20))); /* asks for so much that one is started at once */
	usleep(30000);
	done = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	say("met %u\n", met[how]);
	return 0;
}
