/* Memory that was freed and stays resident, or seems to.
 *
 *   keepers workers N INHERITED SHORT SECONDS   the parent has INHERITED MiB; N forked workers allocate SHORT MiB each in one block, touch and
 *                                               free it, which gives it back to the kernel, and wait
 *   keepers arenas N MIB SECONDS                N threads, all alive, allocate MIB each in small blocks, one after the other, and free all but
 *                                               the last; then a wait
 *   keepers given N MIB SECONDS                 the same, and malloc_trim() before the wait
 *   keepers both MIB SECONDS                    that much by system calls that no hook sees, 100 MiB of malloc, of which another 100 were
 *                                               freed, in a block each
 *
 * Before the wait it says "resident BYTES live BYTES" of this process. */
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "test.h"

#define MIB (1ul << 20)
#define SMALL (64ul << 10)

static size_t live;

static void touch(volatile char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
}

static void wait_for(const char *seconds)
{
	double s = strtod(seconds, NULL);
	struct timespec t = { (long)s, (long)((s - (double)(long)s) * 1e9) };

	nanosleep(&t, NULL);
}

static void tell(void)
{
	char text[128] = "";
	long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY);

	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	CHECK(sscanf(text, "%*d %ld", &pages) == 1);
	say("resident %ld live %ld\n", pages * 4096, (long)live);
}

static void work(size_t bytes, const char *seconds)
{
	char *p = malloc(bytes);

	touch(p, bytes);
	free(opaque(p));
	wait_for(seconds);
	_exit(0);
}

static void workers(int n, size_t inherited, size_t bytes, const char *seconds)
{
	size_t blocks = inherited / SMALL;
	char **all = malloc(blocks * sizeof(*all));

	for (size_t i = 0; i < blocks; i++)
		touch(all[i] = malloc(SMALL), SMALL);
	live = inherited;
	for (int i = 0; i < n; i++)
		if (fork() == 0)
			work(bytes, seconds);
	tell();
	while (wait(NULL) > 0)
		;
	for (size_t i = 0; i < blocks; i++)
		free(all[i]);
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_there, all_done;

static void *spike(void *arg)
{
	size_t n = *(size_t *)arg / SMALL;
	char **blocks = opaque(malloc(n * sizeof(*blocks)));

	pthread_barrier_wait(&all_there);
	pthread_mutex_lock(&turn);
	for (size_t i = 0; i < n; i++)
		touch(blocks[i] = malloc(SMALL), SMALL);
	for (size_t i = 0; i + 1 < n; i++)
		free(blocks[i]);
	live += SMALL;
	pthread_mutex_unlock(&turn);
	pthread_barrier_wait(&all_done);
	return NULL;
}

static void arenas(int n, size_t bytes, const char *seconds, int give)
{
	pthread_t threads[64];

	CHECK(n > 0 && n <= 64);
	pthread_barrier_init(&all_there, NULL, (unsigned)n);
	pthread_barrier_init(&all_done, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, spike, &bytes) == 0);
	pthread_barrier_wait(&all_done);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (give)
		malloc_trim(0);
	tell();
	wait_for(seconds);
}

static void both(size_t bytes, const char *seconds)
{
	char *kept = malloc(100 * MIB), *freed = malloc(100 * MIB);

	touch(kept, 100 * MIB);
	touch(freed, 100 * MIB);
	free(opaque(freed));
	touch(raw_map(NULL, bytes), bytes); /* last, so that it has most while it waits, whenever somebody looks */
	live = 100 * MIB;
	tell();
	wait_for(seconds);
	free(opaque(kept));
}

int main(int argc, char **argv)
{
	CHECK(argc >= 4);
	if (!strcmp(argv[1], "workers"))
		workers(atoi(argv[2]), strtoul(argv[3], NULL, 10) * MIB, strtoul(argv[4], NULL, 10) * MIB, argv[5]);
	else if (!strcmp(argv[1], "both"))
		both(strtoul(argv[2], NULL, 10) * MIB, argv[3]);
	else
		arenas(atoi(argv[2]), strtoul(argv[3], NULL, 10) * MIB, argv[4], !strcmp(argv[1], "given"));
	return 0;
}
