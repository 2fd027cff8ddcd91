/*
 * A server: THREADS threads serve requests for SECONDS seconds. Each makes some blocks of 16 to 4,000 bytes, of which
 * the 2,000 latest stay, in a cache of the thread's. With LEAK each request keeps so many bytes for good; 0 is the
 * healthy twin. So many requests are served in a second, whatever the machine has time for: RATE.
 *
 * usage: server THREADS SECONDS RATE LEAK [KILLED]
 *
 * Prints what it did itself: blocks and bytes that it allocated, frees, what it leaked. With KILLED it ends by SIGKILL.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CACHE   2000
#define BLOCKS  20
#define THREADS 16

static int seconds, rate;
static size_t leak;
static void *kept;

struct worker {
	pthread_t id;
	uint64_t random, blocks, bytes, frees, leaked;
	void *cache[CACHE];
};

static uint32_t draw(struct worker *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->random >> 33);
}

static size_t count(struct worker *w, size_t bytes)
{
	w->blocks++;
	w->bytes += bytes;
	return bytes;
}

static __attribute__((noinline)) void remember(struct worker *w)
{
	void **p = malloc(count(w, leak));

	w->leaked += leak;
	do
		*p = __atomic_load_n(&kept, __ATOMIC_RELAXED);
	while (!__sync_bool_compare_and_swap(&kept, *p, p));
}

static __attribute__((noinline)) void serve(struct worker *w)
{
	for (int i = 0; i < BLOCKS; i++) {
		void **place = &w->cache[draw(w) % CACHE];
		w->frees += *place != NULL;
		free(*place);
		*place = malloc(count(w, 16 + draw(w) % 3985));
	}
	if (leak)
		remember(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct timespec pause = { 0, 1000000 }, now;
	uint64_t done = 0, start, due;

	clock_gettime(CLOCK_MONOTONIC, &now);
	start = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		due = ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 - start) * (uint64_t)rate / 1000;
		for (; done < due; done++)
			serve(w);
		nanosleep(&pause, NULL);
	} while (due < (uint64_t)seconds * (uint64_t)rate);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	struct worker sum = { 0 };

	seconds = argc > 2 ? atoi(argv[2]) : 1;
	rate = argc > 3 ? atoi(argv[3]) : 1000;
	leak = argc > 4 ? (size_t)atol(argv[4]) : 0;
	for (int i = 0; i < threads && i < THREADS; i++) {
		workers[i].random = (uint64_t)i + 1;
		pthread_create(&workers[i].id, NULL, work, &workers[i]);
	}
	for (int i = 0; i < threads && i < THREADS; i++) {
		pthread_join(workers[i].id, NULL);
		sum.blocks += workers[i].blocks;
		sum.bytes += workers[i].bytes;
		sum.frees += workers[i].frees;
		sum.leaked += workers[i].leaked;
	}
	printf("blocks %llu\nbytes %llu\nfrees %llu\nleaked %llu\n", (unsigned long long)sum.blocks,
	       (unsigned long long)sum.bytes, (unsigned long long)sum.frees, (unsigned long long)sum.leaked);
	if (argc > 5) {
		fflush(stdout);
		kill(getpid(), SIGKILL);
	}
	return 0;
}
