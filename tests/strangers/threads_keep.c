// truth: leak remember 24.0M; four threads, each of which keeps 6,000 bytes of each request
// pauses: 0 0.002
// short
#include <pthread.h>
#include <string.h>

#include "pause.h"

enum { REQUESTS = 1000, THREADS = 4 };

static __attribute__((noinline)) void *remember(void *before)
{
	void **made = memset(malloc(6000), 1, 6000);
	*made = before;
	return made;
}

static void *serve(void *last)
{
	for (int request = 0; request < REQUESTS; request++) {
		last = remember(last);
		for (int i = 0; i < 10; i++)
			free(memset(malloc(5000 + 100 * (size_t)i), 2, 5000));
		const struct timespec pause = { .tv_nsec = getenv("PAUSE") ? (long)(1e9 * atof(getenv("PAUSE"))) : 0 };
		nanosleep(&pause, NULL);
	}
	return last;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *last[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, serve, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], &last[i]);
	return last[0] == NULL;
}
