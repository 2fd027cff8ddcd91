// truth(grows): leak open_more 52.4M; room is reserved at once, and made usable page by page, as the heaps of runtimes are
// truth(stops): stopped open_more 6.6M; only in the first eighth of the run
// pauses: 0 0.002
// short
#include <string.h>
#include <sys/mman.h>

#include "pause.h"

enum { TURNS = 800, PART = 16 * 4096 };
static char *room;
static size_t opened;

static __attribute__((noinline)) void open_more(void)
{
	mprotect(room + opened, PART, PROT_READ | PROT_WRITE);
	memset(room + opened, 1, PART);
	opened += PART;
}

int main(int argc, char **argv)
{
	const int stops = argc > 1 && !strcmp(argv[1], "stops");
	room = mmap(NULL, (size_t)TURNS * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (int turn = 0; turn < TURNS; turn++) {
		if (!stops || turn < TURNS / 8)
			open_more();
		char *scratch = mmap(NULL, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(scratch, 2, 262144);
		munmap(scratch, 262144);
		wait_a_turn();
	}
	return 0;
}
