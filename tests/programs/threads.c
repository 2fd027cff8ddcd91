/* threads COUNT [FRAMES [apart]]: COUNT threads that are all there at once, each of which allocates a little, FRAMES further in, and leaves one block of 100 bytes; or, apart,
 * one after the other. */
#include "test.h"

#include <pthread.h>

static pthread_barrier_t all;
static int frames, apart;

__attribute__((noinline)) static void *leave_one(void)
{
	return opaque(malloc(100));
}

__attribute__((noinline)) static void *further(int left)
{
	void *p = left > 0 ? further(left - 1) : NULL;
	if (!p) {
		for (int i = 0; i < 20; i++)
			free(opaque(malloc(10 + i)));
		p = leave_one();
	}
	return opaque(p);
}

static void *thread(void *arg)
{
	void *p = further(frames);
	if (!apart)
		pthread_barrier_wait(&all);
	return p ? arg : NULL;
}

int main(int argc, char **argv)
{
	int count = atoi(argv[1]);
	static pthread_t t[65536];
	void *r;
	pthread_attr_t attr;
	frames = argc > 2 ? atoi(argv[2]) : 0;
	apart = argc > 3;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_barrier_init(&all, NULL, count);
	for (int i = 0; i < count; i++) {
		CHECK(!pthread_create(&t[i], &attr, thread, t));
		if (apart)
			CHECK(!pthread_join(t[i], &r) && r == t);
	}
	for (int i = 0; i < count && !apart; i++)
		CHECK(!pthread_join(t[i], &r) && r == t);
	say("done\n");
	return 0;
}
