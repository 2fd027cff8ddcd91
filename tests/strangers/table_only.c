// truth: grows insert 32.0M; a table that only fills, nothing else is made: nobody can tell whether it would end
// pauses: 0 0.0001
// short
#include <string.h>

#include "pause.h"

static void *table[20000];

static __attribute__((noinline)) void insert(int key)
{
	table[key] = memset(malloc(1600), key, 1600);
}

int main(void)
{
	for (int key = 0; key < 20000; key++) {
		insert(key);
		wait_a_turn();
	}
	return 0;
}
