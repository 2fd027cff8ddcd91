/* All keys of pthread_key_create: how many there are, and which come first. In a thread, too, whose destructors then run. */
#include "test.h"

#include <limits.h>
#include <pthread.h>

static int ended;

static void destructor(void *p)
{
	free(p);
	ended++;
}

static void *thread(void *key)
{
	CHECK(!pthread_setspecific(*(pthread_key_t *)key, opaque(malloc(30))));
	return NULL;
}

int main(void)
{
	pthread_key_t key[PTHREAD_KEYS_MAX + 1];
	pthread_t t;
	int n = 0, error;

	free(opaque(malloc(10)));
	while (!(error = pthread_key_create(&key[n], destructor)))
		n++;
	say("%d keys, the first is %u, the last %u, then %s\n", n, key[0], key[n - 1], strerror(error));
	CHECK(!pthread_create(&t, NULL, thread, &key[n - 1]));
	pthread_join(t, NULL);
	say("%d ended\n", ended);
	return 0;
}
