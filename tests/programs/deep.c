/* deep FRAMES COUNT [wander]: COUNT times malloc and free below FRAMES frames of recursion; with `wander` the recursion goes up and down in between,
 * through two functions that call each other. */
#include "test.h"

static int count, wander;
static unsigned seed = 1;

__attribute__((noinline)) static void leaf(void)
{
	free(opaque(malloc(64)));
}

static int odd(int left);

__attribute__((noinline)) static int even(int left)
{
	if (left <= 0)
		for (int i = wander ? 10 : count; i > 0 && count > 0; i--, count--)
			leaf();
	else
		odd(left - 1);
	if (!wander || count <= 0)
		return left + 1;
	seed = seed * 1103515245 + 12345;
	leaf();
	count--;
	return seed >> 16 & 1 ? odd(seed >> 17 & 15) + 1 : left + 1;
}

__attribute__((noinline)) static int odd(int left)
{
	int more = left > 0 ? even(left - 1) : even(0);
	if (wander && count > 0) {
		leaf();
		count--;
	}
	return more + 1;
}

int main(int argc, char **argv)
{
	int frames = atoi(argv[1]), loops = 0;
	count = atoi(argv[2]);
	wander = argc > 3;
	for (; count > 0; loops++)
		even(frames);
	say("%d times down\n", loops);
	return 0;
}
