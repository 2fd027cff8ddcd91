// truth(keeps): leak refill 26.2M; a pool of its own cuts chunks of 256 KiB into blocks, and two of three are never given back
// truth(gives): passes refill 2.0M; the same pool, and all blocks come back
// pauses: 0 0.0005
#include <string.h>
#include <sys/mman.h>

#include "pause.h"

enum { CHUNK = 262144, BLOCK = 4096, TURNS = 9600 };
struct block {
	struct block *next;
	char text[BLOCK - sizeof(struct block *)];
};
static struct block *unused;

static __attribute__((noinline)) void refill(void)
{
	struct block *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < CHUNK / BLOCK; i++) {
		chunk[i].next = unused;
		unused = &chunk[i];
	}
}

static struct block *take(void)
{
	if (!unused)
		refill();
	struct block *given = unused;
	unused = given->next;
	memset(given->text, 1, sizeof(given->text));
	return given;
}

static void give(struct block *block)
{
	block->next = unused;
	unused = block;
}

int main(int argc, char **argv)
{
	const int keeps = argc < 2 || !strcmp(argv[1], "keeps");
	for (int turn = 0; turn < TURNS; turn++) {
		struct block *given = take();
		if (!keeps || turn % 3 == 0)
			give(given);
		void *scratch = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(scratch, 2, 65536);
		munmap(scratch, 65536);
		wait_a_turn();
	}
	return 0;
}
