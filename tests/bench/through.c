/*
 * malloc and free through exactly 16 frames, from one place: what one pair costs, without what a program does between.
 *
 * usage: through THREADS PAIRS [random]   THREADS 0: in the main thread; random: through 1 to 16 frames, so that a stack
 * differs from the one before by five frames on average
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") /* no tail call: the frame must be there */
#define THREADS_MAX 64

static long pairs;
static int is_random;
static pthread_barrier_t barrier;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static NOINLINE void one_pair(size_t size)
{
	char *p = malloc(size);

	p[0] = 1;
	KEEP_FRAME();
	free(p);
	KEEP_FRAME();
}

static NOINLINE void descend(int frames, size_t size)
{
	if (frames > 1)
		descend(frames - 1, size);
	else
		one_pair(size);
	KEEP_FRAME();
}

/* `outer`: frames of libc and ours around this one. */
static NOINLINE uint64_t churn(int outer)
{
	uint64_t cpu, random = 1;

	for (long i = 0; i < 10000; i++)
		descend(14 - outer, 64);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < pairs; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		descend(is_random ? 1 + (int)((random >> 33) % 16) : 14 - outer, 16 + (size_t)(i & 1023));
	}
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

static void *work(void *cpu)
{
	pthread_barrier_wait(&barrier);
	*(uint64_t *)cpu = churn(3); /* work, start_thread, clone */
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	uint64_t start, cpu[THREADS_MAX] = { 0 }, sum = 0;
	pthread_t id[THREADS_MAX];

	pairs = argc > 2 ? atol(argv[2]) : 1000000;
	is_random = argc > 3;
	if (threads < 0 || threads > THREADS_MAX || pairs < 1)
		return 2;
	if (threads)
		pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	start = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < threads; i++)
		pthread_create(&id[i], NULL, work, &cpu[i]);
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	if (!threads)
		sum = churn(4); /* main, two of libc, _start */
	for (int i = 0; i < threads; i++)
		sum += cpu[i];
	printf("bench seconds %.6f\nbench cpu_seconds %.6f\nbench pairs %ld\n", (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9,
	       (double)sum / 1e9, pairs * (threads ? threads : 1));
	return 0;
}
