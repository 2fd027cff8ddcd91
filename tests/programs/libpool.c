/* A pool of threads that knows nothing of Python, for tests/programs/poolarrays.py: pool_start(THREADS, NAME or NULL) makes it, and
 * pool_make(BLOCKS, BYTES) has it make blocks that stay, and waits until they are there. */
#include "test.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long wanted, made;
static size_t bytes;
static char name[16];

/* What a library has instead of malloc: no owner. */
__attribute__((noinline)) static void *xmalloc_array(size_t n)
{
	return opaque(malloc(n));
}

__attribute__((noinline)) static void make_array(size_t n)
{
	char *array = xmalloc_array(n);
	CHECK(array);
	*(char *volatile)array = 1;
	opaque(array);
}

static void *pool_worker(void *unused)
{
	(void)unused;
	if (*name)
		pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!wanted)
			pthread_cond_wait(&changed, &lock);
		size_t n = bytes;
		wanted--;
		pthread_mutex_unlock(&lock);
		make_array(n);
		pthread_mutex_lock(&lock);
		made++;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

void pool_start(int threads, const char *its_name)
{
	pthread_t t;
	strncpy(name, its_name ? its_name : "", sizeof(name) - 1);
	while (threads--)
		CHECK(!pthread_create(&t, NULL, pool_worker, NULL));
}

void pool_make(long blocks, size_t n)
{
	pthread_mutex_lock(&lock);
	made = 0;
	wanted = blocks;
	bytes = n;
	pthread_cond_broadcast(&changed);
	while (made < blocks)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
