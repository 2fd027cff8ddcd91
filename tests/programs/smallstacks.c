/* Threads with the smallest stack allowed, and a deep recursion in one that has more. */
#include "test.h"

#include <limits.h>
#include <pthread.h>

static void *small(void *arg)
{
	for (int i = 0; i < 1000; i++)
		free(opaque(malloc(10 + i)));
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 4096);
	return arg;
}

__attribute__((noinline)) static void *deep(int levels)
{
	void *p = levels ? deep(levels - 1) : malloc(10);
	return opaque(p);
}

static void *recurse(void *arg)
{
	for (int i = 0; i < 100; i++)
		free(deep(10000));
	return arg;
}

static void run(void *(*f)(void *), size_t stack)
{
	pthread_attr_t attr;
	pthread_t t;
	void *r = NULL;
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, stack));
	CHECK(!pthread_create(&t, &attr, f, run) && !pthread_join(t, &r) && r == run);
}

int main(void)
{
	for (int i = 0; i < 20; i++)
		run(small, PTHREAD_STACK_MIN);
	run(recurse, 4 << 20);
	say("done\n");
	return 0;
}
