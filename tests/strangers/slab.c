// truth(grows): leak chunk_new 62.9M; a slab allocator over mmap has a list of free slots that is never looked at: it maps a new chunk when one is full
// truth(reuses): stopped chunk_new 2.1M; free slots are taken first
// pauses: 0 0.0001
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pause.h"

enum { CHUNK = 1 << 20, SLOT = 1024, LIVE = 1500 };
struct slot {
	struct slot *next;
};
static struct slot *free_slots;
static char *at, *end;
static int reuse;
__attribute__((noinline)) static void chunk_new(void)
{
	at = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end = at + CHUNK;
}
static void *take(void)
{
	if (reuse && free_slots) {
		void *s = free_slots;
		free_slots = free_slots->next;
		return s;
	}
	if (at == end)
		chunk_new();
	at += SLOT;
	return memset(at - SLOT, 1, SLOT);
}
static void give(void *p)
{
	struct slot *s = p;
	s->next = free_slots;
	free_slots = s;
}
int main(int argc, char **argv)
{
	static void *live[LIVE];
	reuse = argc > 1 && !strcmp(argv[1], "reuses");
	for (int i = 0; i < 60000; i++) {
		if (live[i % LIVE])
			give(live[i % LIVE]);
		live[i % LIVE] = take();
		char *text = malloc(300);
		memset(text, i, 300);
		free(text);
		wait_a_turn();
	}
	return 0;
}
