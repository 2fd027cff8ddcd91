/*
 * Allocation-heavy: THREADS threads each keep 4,096 blocks alive and replace a random one at a time, through 1 to
 * DEPTH frames. Every event is on a stack of another depth than the one before, so a recorder can't guess.
 *
 * usage: churn THREADS COUNT[s] DEPTH [LEAK]   COUNT pairs of free and malloc a thread, or for so many seconds
 *
 * With LEAK main keeps so many bytes meanwhile, a hundredth of them at a time; for seconds only.
 * Prints what the loop alone took (`bench NAME VALUE` lines), not what starting and stopping did.
 * Also built as a shared object whose main() a Python program calls, for tracers that trace nothing else.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALIVE 4096
#define STALL_NS 1000000
#define THREADS_MAX 64

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") /* no tail call: the frame must be there */

struct worker {
	pthread_t id;
	uint64_t random;
	uint64_t events, blocks, bytes; /* blocks, bytes: allocated in all */
	uint64_t stalls; /* groups of 64 pairs, a few microseconds each, that took over STALL_NS */
	uint64_t worst_ns;
	uint64_t cpu_ns; /* unlike the time, the same on a machine with other work to do */
};

static long pairs;
static double seconds;
static int depth;
static pthread_barrier_t barrier;
static atomic_int stop;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 16);
}

static NOINLINE void *allocate(size_t size)
{
	char *p = malloc(size);

	p[0] = 1;
	KEEP_FRAME();
	return p;
}

static NOINLINE void *descend(int frames, size_t size)
{
	void *p = frames > 0 ? descend(frames - 1, size) : allocate(size);

	KEEP_FRAME();
	return p;
}

static void replace_one(struct worker *w, void **alive)
{
	uint32_t which = next_random(w) % ALIVE, how = next_random(w);

	const size_t size = 16 + (how >> 8) % 1000;

	w->events += alive[which] ? 2 : 1;
	w->blocks++;
	w->bytes += size;
	free(alive[which]);
	alive[which] = descend((int)(how % (unsigned)depth), size);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	void **alive = calloc(ALIVE, sizeof(*alive));
	uint64_t before, after, cpu;

	pthread_barrier_wait(&barrier);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	before = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; pairs ? i < pairs : !atomic_load_explicit(&stop, memory_order_relaxed); i += 64) {
		for (int k = 0; k < 64; k++)
			replace_one(w, alive);
		after = clock_ns(CLOCK_MONOTONIC);
		w->stalls += after - before > STALL_NS;
		w->worst_ns = after - before > w->worst_ns ? after - before : w->worst_ns;
		before = after;
	}
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ALIVE; i++)
		free(alive[i]);
	free(alive);
	return NULL;
}

static void print_status(const char *key, const char *name)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			printf("bench %s %ld\n", name, atol(line + strlen(key)));
	if (f)
		fclose(f);
}

enum { PAUSES = 100 };

void *kept[PAUSES];

static NOINLINE void keep_a_little(int number, size_t size)
{
	kept[number] = allocate(size);
}

/* So many seconds. */
static void wait_and_leak(size_t leak)
{
	const double each = seconds / PAUSES;
	const struct timespec pause = { (time_t)each, (long)((each - (double)(time_t)each) * 1e9) };

	for (int i = 0; i < PAUSES; i++) {
		nanosleep(&pause, NULL);
		if (leak)
			keep_a_little(i, leak / PAUSES);
	}
}

static void run(struct worker *workers, int threads, size_t leak)
{
	uint64_t start, end, events = 0, blocks = 0, bytes = 0, stalls = 0, worst = 0, cpu = 0;

	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		workers[i].random = (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
		pthread_create(&workers[i].id, NULL, work, &workers[i]);
	}
	pthread_barrier_wait(&barrier);
	start = clock_ns(CLOCK_MONOTONIC);
	if (!pairs) {
		wait_and_leak(leak);
		atomic_store(&stop, 1);
	}
	pthread_barrier_wait(&barrier);
	end = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].id, NULL);
		events += workers[i].events;
		blocks += workers[i].blocks;
		bytes += workers[i].bytes;
		stalls += workers[i].stalls;
		cpu += workers[i].cpu_ns;
		worst = workers[i].worst_ns > worst ? workers[i].worst_ns : worst;
	}
	printf("bench blocks %llu\nbench bytes %llu\n", (unsigned long long)blocks, (unsigned long long)bytes);
	printf("bench seconds %.6f\nbench cpu_seconds %.6f\nbench events %llu\nbench stalls %llu\nbench worst_ms %.3f\n",
	       (double)(end - start) / 1e9, (double)cpu / 1e9, (unsigned long long)events, (unsigned long long)stalls,
	       (double)worst / 1e6);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	const char *count = argc > 2 ? argv[2] : "1000000";

	depth = argc > 3 ? atoi(argv[3]) : 16;
	if (threads < 1 || threads > THREADS_MAX || depth < 1 || atof(count) <= 0) {
		fprintf(stderr, "usage: churn THREADS COUNT[s] DEPTH [LEAK]\n");
		return 2;
	}
	if (strchr(count, 's'))
		seconds = atof(count);
	else
		pairs = atol(count);
	run(workers, threads, argc > 4 ? (size_t)atol(argv[4]) : 0);
	print_status("VmHWM:", "peak_rss_kib");
	fflush(stdout);
	return 0;
}
