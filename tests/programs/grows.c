/* growing FORM: a C program that fills a table and ends (fill, map), fills it and works on, keeps more in a warm-up only, or keeps more with each
 * unit of work: in a list, a cache, or in one block that it makes larger. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNITS = 600, EACH = 100000, FILLS = 600000, PAUSE_NS = 8000000 };

static size_t kept, units;
static void **list;
static struct node { struct node *next; char text[80]; } *buckets[1 << 16];

static __attribute__((noinline)) void keep(size_t bytes)
{
	list = realloc(list, (units + 2) * sizeof(*list));
	list[units] = memset(malloc(bytes), 1, bytes);
	kept += bytes;
}

static __attribute__((noinline)) void insert(unsigned key)
{
	struct node *n = malloc(sizeof(*n));
	snprintf(n->text, sizeof(n->text), "%u", key);
	n->next = buckets[key % (1 << 16)];
	buckets[key % (1 << 16)] = n;
	kept += sizeof(*n);
}

/* What a request needs while it is answered. */
static void work(void)
{
	char *parts[10];
	for (int i = 0; i < 10; i++)
		parts[i] = memset(malloc(30000 + 8000 * (size_t)i), i, 30000);
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	for (int i = 0; i < 10; i++)
		free(parts[i]);
	units++;
}

static void fill(void)
{
	for (unsigned i = 0; i < FILLS; i++)
		insert(i * 7919);
}

static void grow(void)
{
	static char *text;
	text = realloc(text, kept + EACH);
	memset(text + kept, 'x', EACH);
	kept += EACH;
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "fill";
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!strcmp(form, "fill") || !strcmp(form, "works"))
		for (; units < 600; units++)
			keep(EACH);
	if (!strcmp(form, "map"))
		fill();
	units = 0;
	for (int i = 0; strcmp(form, "fill") && strcmp(form, "map") && i < UNITS; i++) {
		work();
		if (!strcmp(form, "keeps") || (!strcmp(form, "warmup") && i < UNITS / 4))
			keep(EACH);
		if (!strcmp(form, "cache"))
			for (unsigned k = 0; k < 1000; k++)
				insert((unsigned)i * 1000 + k);
		if (!strcmp(form, "block"))
			grow();
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("ACCOUNT {\"kept_bytes\": %zu, \"units\": %zu, \"seconds\": %.3f}\n", kept, units,
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}
