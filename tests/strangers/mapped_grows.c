// truth: leak extend 65.5M; one mapping of pages is made larger in place, or where it fits, by mremap
// pauses: 0 0.002
// short
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "pause.h"

enum { TURNS = 1000, PART = 16 * 4096 };
static char *table;
static size_t had;

static __attribute__((noinline)) void extend(void)
{
	table = had ? mremap(table, had, had + PART, MREMAP_MAYMOVE)
		    : mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(table + had, 1, PART);
	had += PART;
}

int main(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		extend();
		char *scratch = mmap(NULL, 200000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(scratch, 2, 200000);
		munmap(scratch, 200000);
		wait_a_turn();
	}
	return 0;
}
