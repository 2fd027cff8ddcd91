/* A thread for each request, one after the other.
 *   requests N [leave|name]    leave: each leaves a block of 16 bytes. name: each has a name of its own
 * All allocate two blocks and free them. The last one leaves 1000 bytes. */
#include "test.h"

#include <pthread.h>
#include <sys/prctl.h>

static int leaves, names;

__attribute__((noinline)) static void *leave(size_t n)
{
	return opaque(malloc(n));
}

static void *serve(void *last)
{
	static int number;
	void *p = opaque(malloc(100)), *q = opaque(calloc(2, 50));

	if (names) {
		char name[16];
		snprintf(name, sizeof(name), "request %d", ++number % 10000000);
		prctl(PR_SET_NAME, name);
		free(opaque(malloc(10)));
	}
	free(p);
	free(q);
	if (last)
		leave(1000);
	else if (leaves)
		leave(16);
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	pthread_attr_t attr;
	pthread_t t;

	leaves = argc > 2 && !strcmp(argv[2], "leave");
	names = argc > 2 && !strcmp(argv[2], "name");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (n-- > 0) {
		CHECK(!pthread_create(&t, &attr, serve, n ? NULL : &n));
		CHECK(!pthread_join(t, NULL));
	}
	say("done\n");
	return 0;
}
