/* A program, and with -DLIBRARY a library that it is linked with, which asks by weak references whether CUDA's driver and CANN are there. */
#include <stddef.h>
#include <stdio.h>

int cuMemAlloc_v2(unsigned long long *p, size_t n) __attribute__((weak));
int cuMemFree_v2(unsigned long long p) __attribute__((weak));
int cuMemGetInfo_v2(size_t *left, size_t *total) __attribute__((weak));
int aclrtMalloc(void **p, size_t n, int how) __attribute__((weak));
int halMemFree(void *p) __attribute__((weak));
int free_sized(void *p, size_t n) __attribute__((weak));

#ifdef LIBRARY
#define ASK ask_in_library
#else
#define ASK ask
void ask_in_library(void);
#endif

static void *const table[] = { cuMemAlloc_v2, aclrtMalloc, puts };

void ASK(void)
{
	static const char *const word[] = { "NULL", "there" };
	unsigned long long p = 0;

	printf("%s %s %s %s %s\n", word[cuMemAlloc_v2 != NULL], word[cuMemFree_v2 != NULL], word[cuMemGetInfo_v2 != NULL],
	       word[aclrtMalloc != NULL], word[halMemFree != NULL]);
	printf("%s %s %s\n", word[table[0] != NULL], word[table[1] != NULL], word[table[2] == puts]);
	if (cuMemAlloc_v2) {
		int got = cuMemAlloc_v2(&p, 500);
		printf("%d %d\n", got, cuMemFree_v2(p));
	}
}

#ifndef LIBRARY
int main(void)
{
	ask();
	ask_in_library();
	return 0;
}
#endif
