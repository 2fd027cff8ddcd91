/* Many short-lived threads, a few at a time. Each leaves one block of 100 bytes. */
#include "test.h"

#include <pthread.h>

__attribute__((noinline)) static void *leave_one(void)
{
	return opaque(malloc(100));
}

static void *thread(void *arg)
{
	free(opaque(malloc(10)));
	free(opaque(malloc(20)));
	return leave_one() ? arg : NULL;
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 10000;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (left > 0) {
		pthread_t t[8];
		int n = 0;
		for (; n < 8 && left > 0; n++, left--)
			CHECK(!pthread_create(&t[n], &attr, thread, &left));
		while (n--) {
			void *r;
			pthread_join(t[n], &r);
			CHECK(r == &left);
		}
	}
	say("done\n");
	return 0;
}
