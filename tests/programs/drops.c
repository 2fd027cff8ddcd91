/* drops COUNT [exec | fork]: gives up root's rights, then makes COUNT blocks and frees them in two threads, one of which begins then; at last it
 * may become another program, or make a child that works, too. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>

static int count;

static void *work(void *arg)
{
	for (int i = 0; i < count; i++)
		free(opaque(malloc(10 + i % 100)));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	count = atoi(argv[1]);
	free(opaque(malloc(1)));
	CHECK(!setresuid(65534, 65534, 65534));
	CHECK(!pthread_create(&t, NULL, work, NULL));
	work(NULL);
	CHECK(!pthread_join(t, NULL));
	if (argc > 2 && !strcmp(argv[2], "exec"))
		execv("/bin/true", (char *[]){ "true", NULL });
	if (argc > 2 && fork() == 0) {
		work(NULL);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	say("done\n");
	return 0;
}
