/* Six ways to use a heap, each by its own kind of fragmentation. Says how much anonymous memory it had at its most and at its end, as it
 * saw it itself: for what a replay says of another allocator.
 * usage: heapload arenas|spike|large|handed|vectors|mixed [TIMES [PAUSE_MS]] */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 6, MOST = 400000 };

static unsigned times = 1, pause_ms = 300;
static uint64_t most, bytes_since;

static uint64_t anonymous(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	unsigned long resident, shared;

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	sscanf(text, "%*u %lu %lu", &resident, &shared);
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void look(void)
{
	uint64_t now = anonymous();

	if (now > most)
		most = now;
}

/* Not by stdio, which would ask the heap for its buffer. */
static void tell(const char *what, uint64_t bytes)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %llu\n", what, (unsigned long long)bytes);

	if (write(1, line, (size_t)n) != n)
		_exit(3);
}

/* Long enough that the recorder sees it. */
static void rest(void)
{
	look();
	usleep(pause_ms * 1000);
}

struct random {
	uint64_t state;
};

static uint64_t next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

static size_t between(struct random *r, size_t low, size_t high)
{
	return low + next(r) % (high - low);
}

static char *take(size_t bytes)
{
	char *p = malloc(bytes);

	memset(p, 1, bytes);
	return p;
}

static void count(size_t bytes)
{
	bytes_since += bytes;
	if (bytes_since > 1 << 20) {
		bytes_since = 0;
		look();
	}
}

/* ---- arenas: each thread keeps some of what it made ---- */

static pthread_barrier_t barrier;

static void *fill_arena(void *arg)
{
	struct random r = { (uintptr_t)arg * 0x9E3779B97F4A7C15ull };
	unsigned blocks = 12000 * times;
	char **list = calloc(blocks, sizeof(*list));

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < blocks; i++)
			if (!list[i])
				list[i] = take(between(&r, 16, 1200));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (unsigned i = 0; i < blocks; i++)
			if (next(&r) % 100 < 90) {
				free(list[i]);
				list[i] = NULL;
			}
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void arenas(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, fill_arena, (void *)(i + 1));
	for (int round = 0; round < 4; round++) {
		pthread_barrier_wait(&barrier);
		if (round == 2)
			rest();
		look();
		if (round < 3)
			pthread_barrier_wait(&barrier);
	}
	rest();
	tell("end", anonymous());
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- spike: one block above all that was freed ---- */

static char *blocks[MOST];

static void spike(void)
{
	struct random r = { 4711 };
	unsigned n = 60000 * times;

	for (unsigned i = 0; i < n; i++)
		count((blocks[i] = take(between(&r, 24, 900)), 460));
	char *last = take(100);
	rest();
	for (unsigned i = 0; i < n; i++)
		if (i % 4000)
			free(blocks[i]);
	rest();
	*last = 2;
}

/* ---- large: around and above the size that gets pages of its own ---- */

static void large(void)
{
	struct random r = { 815 };

	for (unsigned i = 0; i < 300 * times; i++) {
		unsigned at = next(&r) % 100;
		free(blocks[at]);
		count((blocks[at] = take(between(&r, 40 << 10, 900 << 10)), 500 << 10));
	}
	rest();
	for (unsigned i = 0; i < 100; i += 2) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
	rest();
}

/* ---- handed: one thread makes what another one frees ---- */

static void *make_all(void *arg)
{
	struct random r = { (uintptr_t)arg };

	for (unsigned i = 0; i < 50000 * times; i++)
		blocks[i] = take(between(&r, 32, 700));
	return NULL;
}

static void *free_most(void *arg)
{
	for (unsigned i = 0; i < 50000 * times; i++)
		if ((i ^ (uintptr_t)arg) % 8) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
	return NULL;
}

static void in_thread(void *(*f)(void *), uintptr_t arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, f, (void *)arg);
	pthread_join(thread, NULL);
}

static void handed(void)
{
	in_thread(make_all, 99);
	rest();
	in_thread(free_most, 0);
	rest();
}

/* ---- vectors: they grow by realloc ---- */

static void vectors(void)
{
	struct random r = { 3 };
	static size_t filled[64];

	for (unsigned i = 0; i < 64 * 100 * times; i++) {
		unsigned at = next(&r) % 64;
		size_t more = between(&r, 500, 4000);
		blocks[at] = realloc(blocks[at], filled[at] + more);
		memset(blocks[at] + filled[at], 1, more);
		filled[at] += more;
		count(more);
	}
	rest();
	for (unsigned i = 0; i < 64; i += 3) {
		blocks[i] = realloc(blocks[i], filled[i] / 10);
		free(blocks[i + (i < 63)]);
	}
	rest();
}

/* ---- mixed: calloc and aligned blocks among others, in two threads that end ---- */

static void *mix(void *arg)
{
	struct random r = { (uintptr_t)arg };
	unsigned n = 20000 * times, from = (unsigned)(uintptr_t)arg % 2 * n;

	for (unsigned i = from; i < from + n; i++) {
		size_t bytes = between(&r, 16, i % 50 ? 800 : 60000);
		void *p = NULL;
		if (i % 3 == 0)
			p = calloc(1, bytes);
		else if (i % 3 == 1 && posix_memalign(&p, 64, bytes))
			p = NULL;
		blocks[i] = p ? p : malloc(bytes);
		memset(blocks[i], 1, bytes);
		if (i > from + 100 && next(&r) % 3 == 0) {
			unsigned old = i - (unsigned)(next(&r) % 100);
			free(blocks[old]);
			blocks[old] = NULL;
		}
	}
	return NULL;
}

static void mixed(void)
{
	in_thread(mix, 2);
	in_thread(mix, 3);
	rest();
	for (unsigned i = 0; i < 40000 * times; i++)
		if (i % 5) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
	rest();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "arenas", arenas }, { "spike", spike },	    { "large", large },
		      { "handed", handed }, { "vectors", vectors }, { "mixed", mixed } };

	times = argc > 2 ? (unsigned)atoi(argv[2]) : times;
	pause_ms = argc > 3 ? (unsigned)atoi(argv[3]) : pause_ms;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (argc < 2 || strcmp(argv[1], kinds[i].name))
			continue;
		kinds[i].run();
		look();
		if (kinds[i].run != arenas)
			tell("end", anonymous());
		tell("most", most);
		return 0;
	}
	return 2;
}
