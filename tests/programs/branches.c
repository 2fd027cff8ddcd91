/* branches DEPTH: an allocation in each of 2^DEPTH stacks, all different, some rest in between. */
#include "test.h"

static unsigned leaves;

static __attribute__((noinline)) void branch(int depth)
{
	if (depth == 0) {
		free(opaque(malloc(100)));
		if (++leaves % 4096 == 0)
			usleep(10000);
		return;
	}
	branch(depth - 1);
	__asm__ volatile("" ::: "memory");
	branch(depth - 1);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	branch(argc > 1 ? atoi(argv[1]) : 10);
	say("%u\n", leaves);
	return 0;
}
