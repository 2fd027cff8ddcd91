// truth(list): leak keep 1.28M; of each turn 64 bytes stay
// truth(rare): leak keep 128k; of each hundredth turn 640
// truth(bursts): leak keep 205k; of each 2,500th turn 400 times 64
// truth(among): leak made 400k; one of ten is lost, the others wait for 2,000 more and go
// truth(batches): passes made 400k; 2,000 are collected and go
// truth(large_batches): passes made 1.6M; 8,000 are collected and go: two and a half times
// truth(lag): backlog made 210k; they wait for 200 turns, in the second half for ever more
// pauses: 0 0.0001 0.0005
// short
#include <string.h>

#include "pause.h"

enum { TURNS = 20000 };
static void *kept[TURNS], *waiting[TURNS];
static int kept_count, first, last;

static __attribute__((noinline)) void keep(size_t bytes)
{
	kept[kept_count++] = malloc(bytes);
}

static __attribute__((noinline)) void *made(size_t bytes)
{
	return malloc(bytes);
}

static void work(void)
{
	void *parts[6];
	for (int i = 0; i < 6; i++)
		parts[i] = memset(malloc(100 + 40 * (size_t)i), 1, 100);
	for (int i = 0; i < 6; i++)
		free(parts[i]);
	wait_a_turn();
}

static void collect(int limit)
{
	waiting[last++] = made(200);
	if (last == limit)
		while (last)
			free(waiting[--last]);
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "list";
	for (int turn = 0; turn < TURNS; turn++) {
		work();
		if (!strcmp(form, "list"))
			keep(64);
		if (!strcmp(form, "rare") && turn % 100 == 0)
			keep(640);
		for (int i = 0; !strcmp(form, "bursts") && turn % 2500 == 0 && i < 400; i++)
			keep(64);
		if (!strcmp(form, "batches") || (!strcmp(form, "among") && turn % 10))
			collect(2000);
		else if (!strcmp(form, "among"))
			kept[kept_count++] = made(200);
		if (!strcmp(form, "large_batches"))
			collect(8000);
		if (!strcmp(form, "lag")) {
			const int lag = turn < TURNS / 2 ? 200 : 200 + (turn - TURNS / 2) / 20;
			waiting[last++] = made(300);
			while (last - first > lag)
				free(waiting[first++]);
		}
	}
	return 0;
}
