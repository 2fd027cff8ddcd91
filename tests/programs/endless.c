/* endless OPS FORKS CHUNKS: goes on allocating and freeing in three threads that take turns, and keeps its own account; it waits
 * while more than CHUNKS chunks wait for the recorder, so that no event is lost however small the limit. What it prints at the end is JSON: what each of its functions
 * allocated, how much of that lives, and what lived of it at the highest moment, which is after a third of the operations. Children are
 * forked on the way; each prints what lived then. The last call fails. */
#include "test.h"
#include "pacing.h"

#include <pthread.h>
#include <sys/wait.h>

enum { TEMPORARY, QUEUE, POOL, LARGE, WAVE, LEAK, SITES };
static const char *const names[SITES] = { "temporary", "queue", "pool", "large", "wave", "leak" };

enum { THREADS = 3, TURN = 500, QUEUED = 64, POOLED = 4096, LARGES = 16, WAVES = 20000 };

struct block { char *p; size_t size; int site; int thread; };

struct site { uint64_t count, bytes, temporary, live_bytes, live_blocks; };

static struct account {
	struct site site[SITES], peak[SITES];
	uint64_t live_bytes, live_blocks, peak_bytes, frees, failed;
} all;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed = 88172645463325252ull, done, wanted, forks, forked = 1;
static struct block queue[THREADS][QUEUED], pool[POOLED], larges[LARGES], *wave;
static unsigned queued[THREADS], waves, large;
static char *last[THREADS];

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* ---- the account ---- */

static void count(struct block b)
{
	struct site *s = &all.site[b.site];
	s->count++;
	s->bytes += b.size;
	s->live_bytes += b.size;
	s->live_blocks++;
	all.live_blocks++;
	all.live_bytes += b.size;
	last[b.thread] = b.p;
	if (all.live_bytes > all.peak_bytes) {
		all.peak_bytes = all.live_bytes;
		memcpy(all.peak, all.site, sizeof(all.peak));
	}
}

static void discount(struct block b)
{
	struct site *s = &all.site[b.site];
	s->temporary += last[b.thread] == b.p;
	s->live_bytes -= b.size;
	s->live_blocks--;
	all.live_blocks--;
	all.live_bytes -= b.size;
	all.frees++;
}

#define SITE(name, site) \
	__attribute__((noinline)) static struct block name(int thread, size_t size) \
	{ \
		struct block b = { opaque(malloc(size)), size, site, thread }; \
		count(b); \
		return b; \
	}
SITE(temporary_site, TEMPORARY)
SITE(queue_site, QUEUE)
SITE(pool_site, POOL)
SITE(large_site, LARGE)
SITE(wave_site, WAVE)
SITE(leak_site, LEAK)

static void drop(struct block *b)
{
	if (!b->p)
		return;
	discount(*b);
	free(b->p);
	b->p = NULL;
}

/* ---- operations ---- */

static void use_temporaries(int t)
{
	struct block a = temporary_site(t, rnd() % 200), b = { 0 };
	if (rnd() % 3 == 0)
		b = temporary_site(t, rnd() % 3000);
	drop(&a);
	drop(&b);
}

static void use_queue(int t)
{
	struct block *b = &queue[t][queued[t]++ % QUEUED];
	drop(b);
	*b = queue_site(t, rnd() % 512);
}

__attribute__((noinline)) static void grow_site(int t, struct block *b)
{
	struct block old = *b;
	size_t size = rnd() % 400 ? rnd() % 3000 + 1 : 1ull << 46;
	char *p = opaque(realloc(old.p, size));
	if (!p) {
		all.failed++;
		return; /* too much: it is as it was */
	}
	discount(old);
	*b = (struct block){ p, size, POOL, t };
	count(*b);
}

static void use_pool(int t)
{
	struct block *b = &pool[rnd() % POOLED];
	if (b->p && rnd() % 4 == 0) {
		grow_site(t, b);
		return;
	}
	drop(b);
	*b = pool_site(t, rnd() % 2048);
}

/* Up, down, and on a lower level for the rest. */
static void use_wave(int t)
{
	uint64_t third = wanted / 3, at = done < third ? done : done < 2 * third ? 2 * third - done : third / 4;
	unsigned level = (unsigned)(at * WAVES / (third + 1));
	for (int i = 0; i < 4 && waves < level && waves < WAVES; i++)
		wave[waves++] = wave_site(t, 1000 + rnd() % 2000);
	for (int i = 0; i < 4 && waves > level; i++)
		drop(&wave[--waves]);
}

static void use_large(int t)
{
	struct block *b = &larges[large++ % LARGES];
	drop(b);
	*b = large_site(t, 65536 + rnd() % 400000);
}

static void use_map(void)
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || munmap(p, 65536))
		_exit(92);
}

static void one(int t)
{
	uint64_t r = rnd() % 10000;
	if (r < 6000)
		use_temporaries(t);
	else if (r < 8500)
		use_queue(t);
	else if (r < 9400)
		use_pool(t);
	else if (r < 9970)
		use_wave(t);
	else if (r < 9985)
		use_large(t);
	else if (r < 9990)
		use_map();
	else if (r < 9992)
		leak_site(t, 100);
	done++;
}

static void fork_one(void)
{
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < 100; i++)
			drop(&pool[i]);
		_exit(0);
	}
	uint64_t bytes = 0, blocks = 0;
	for (int i = 0; i < 100; i++) {
		bytes += pool[i].p ? pool[i].size : 0;
		blocks += pool[i].p != NULL;
	}
	say("{\"child\": %d, \"bytes\": %llu, \"blocks\": %llu, \"freed_bytes\": %llu, \"freed_blocks\": %llu}\n", pid,
	    (unsigned long long)all.live_bytes, (unsigned long long)all.live_blocks, (unsigned long long)bytes,
	    (unsigned long long)blocks);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(93);
}

/* ---- all ---- */

static void *work(void *arg)
{
	int t = (int)(long)arg;
	for (int more = 1; more;) {
		pthread_mutex_lock(&turn);
		if (forks && done / (wanted / forks) >= forked) {
			forked++;
			fork_one();
		}
		for (int i = 0; i < TURN && done < wanted; i++)
			one(t);
		more = done < wanted;
		pthread_mutex_unlock(&turn);
		wait_for_recorder();
	}
	return NULL;
}

static void print_sites(const struct site *s, const char *what)
{
	say("\"%s\": {", what);
	for (int i = 0; i < SITES; i++)
		say("%s\"%s\": {\"count\": %llu, \"bytes\": %llu, \"temporary\": %llu, \"live_bytes\": %llu, \"live_blocks\": %llu}",
		    i ? ", " : "", names[i], (unsigned long long)s[i].count, (unsigned long long)s[i].bytes,
		    (unsigned long long)s[i].temporary, (unsigned long long)s[i].live_bytes, (unsigned long long)s[i].live_blocks);
	say("}");
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	if (argc < 4)
		return 2;
	wanted = strtoull(argv[1], NULL, 0);
	forks = strtoull(argv[2], NULL, 0);
	wave = raw_map(NULL, WAVES * sizeof(*wave));
	pace(atoi(argv[3]), THREADS);
	for (long i = 1; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 3;
	work(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!opaque(malloc(1ull << 46)));
	all.failed++;
	say("{");
	print_sites(all.site, "sites");
	say(", ");
	print_sites(all.peak, "peak");
	say(", \"live_bytes\": %llu, \"peak_bytes\": %llu, \"frees\": %llu, \"failed\": %llu}\n", (unsigned long long)all.live_bytes,
	    (unsigned long long)all.peak_bytes, (unsigned long long)all.frees,
	    (unsigned long long)all.failed);
	return 0;
}
