/* Destructors that run while a thread ends, after and before whatever the shim does then. */
#include "tally.h"

#include <pthread.h>

extern int __cxa_thread_atexit_impl(void (*f)(void *), void *arg, void *dso);
static void *__dso; /* a handle that stays */
static pthread_key_t keys[8];

static void key_end(void *p)
{
	uint64_t left = *(uint64_t *)p;
	free(p);
	tally_free(64);
	void *q = tally_alloc(malloc(32), 32);
	free(q);
	tally_free(32);
	if (left) {
		uint64_t *again = tally_alloc(malloc(64), 64);
		*again = left - 1;
		pthread_setspecific(keys[7], again);
	}
}

static int idle; /* only what the C library does for all this */

static void tls_end(void *p)
{
	if (idle)
		return;
	free(p);
	tally_free(200);
	tally_alloc(malloc(10), 10);
}

static void *thread(void *arg)
{
	if (idle)
		return __cxa_thread_atexit_impl(tls_end, arg, &__dso), arg;
	for (int i = 0; i < 8; i++) {
		uint64_t *p = tally_alloc(malloc(64), 64);
		*p = i == 7 ? 2 : 0;
		pthread_setspecific(keys[i], p);
	}
	__cxa_thread_atexit_impl(tls_end, tally_alloc(malloc(200), 200), &__dso);
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 50;
	idle = argc > 2;
	for (int i = 0; i < 8; i++)
		pthread_key_create(&keys[i], key_end);
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, NULL, thread, NULL);
		pthread_join(t, NULL);
	}
	tally_say();
	return 0;
}
