/*
 * Blocks that live for a moment, from many stacks: each stack is another way down a tree of calls.
 *
 * usage: bushy STACKS ROUNDS   each round makes a block from each of the stacks
 */
#include <stdio.h>
#include <stdlib.h>

#define DEPTH 20 /* STACKS <= 2^DEPTH */
#define ALIVE 64 /* a block goes when so many more were made: none is freed at once */

#define NOINLINE __attribute__((noinline))

static NOINLINE void *left(unsigned long way, int depth);

static NOINLINE void *right(unsigned long way, int depth)
{
	void *p = depth == 0 ? malloc(32) : way >> (depth - 1) & 1 ? right(way, depth - 1) : left(way, depth - 1);
	__asm__ volatile("" ::: "memory");
	return p;
}

static NOINLINE void *left(unsigned long way, int depth)
{
	void *p = depth == 0 ? malloc(48) : way >> (depth - 1) & 1 ? right(way, depth - 1) : left(way, depth - 1);
	__asm__ volatile("" ::: "memory");
	return p;
}

int main(int argc, char **argv)
{
	unsigned long stacks = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	void *alive[ALIVE] = { 0 };
	for (unsigned long i = 0; i < stacks * rounds; i++) {
		void **p = &alive[i % ALIVE];
		free(*p);
		*p = left(i % stacks, DEPTH);
	}
	for (int i = 0; i < ALIVE; i++)
		free(alive[i]);
	printf("allocations %lu\n", stacks * rounds);
	return 0;
}
