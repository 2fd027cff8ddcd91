/* growing FORM [UNITS]: a C program that fills a table and ends (fill, map), fills it and works on, keeps more in a warm-up only, or keeps more with each
 * unit of work: in a list, a cache, in one block that it makes larger, in shared memory, in private copies of a file; or maps more of a file that it
 * only reads. forks: four processes keep more. stages: each of four stages keeps more; renews: each has its own instead of the one before. turns: ten long
 * turns, each of which keeps 4 MiB; loads: ten that read as much and need nothing else. waits: keeps more with each unit, and after every tenth waits, so that
 * most of them are done in no time; pairs: two lines keep more with each unit; cleans: frees block by block what its
 * units kept, for as long again; dozes: keeps more for 22 s and waits for half as long; computes: does so for 5 s and needs no memory for as long.
 * moves: keeps more of what it maps, half-way mapped anew by another caller, while far more comes and goes.
 * epochs: the first three of twelve keep more; starts: four processes do so in a warm-up only.
 * drops: fills a table, frees all of it, and goes on for 3 s. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EACH = 100000, FILLS = 600000, PAUSE_NS = 8000000, WAIT_NS = 60000000, READ_NS = 300000, STAGE = 380, TURNS = 10, PIECE = 25 * 4096 };

static size_t kept, units, units_all = 600, pause_every = 1;
static long pause_ns = PAUSE_NS;
static bool paced = true; /* at the same pace however busy the machine is */
static struct timespec begin;
static void **list;
static struct node { struct node *next; char text[80]; } *buckets[1 << 16];

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
}

static void account(void)
{
	printf("ACCOUNT {\"kept_bytes\": %zu, \"units\": %zu, \"seconds\": %.3f}\n", kept, units, seconds());
}

/* Where a limit refuses, that is the end. */
static void *got(void *block)
{
	if (block)
		return block;
	account();
	exit(1);
}

static __attribute__((noinline)) void keep(size_t bytes)
{
	list = got(realloc(list, (units + 2) * sizeof(*list)));
	list[units] = memset(got(malloc(bytes)), 1, bytes);
	kept += bytes;
}

/* By another line, as much. */
static __attribute__((noinline)) void keep_twin(size_t bytes)
{
	static void *newest;
	void **block = memset(got(malloc(bytes)), 3, bytes);
	*block = newest;
	newest = block;
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

static void wait_for_next(void)
{
	static struct timespec due;
	if (!paced) {
		nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
		return;
	}
	if (!units)
		clock_gettime(CLOCK_MONOTONIC, &due);
	due.tv_nsec += pause_ns;
	due.tv_sec += due.tv_nsec / 1000000000;
	due.tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/* What a request needs while it is answered. */
static void work(void)
{
	char *parts[10];
	for (int i = 0; i < 10; i++)
		parts[i] = memset(got(malloc(30000 + 8000 * (size_t)i)), i, 30000);
	if (units % pause_every == pause_every - 1)
		wait_for_next();
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

/* Of this program's file, as often as there are units. */
static void map(int protection)
{
	static int file = -1;
	if (file < 0)
		file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t bytes = 4 * 4096;
	for (int i = 0; i < 6; i++) {
		volatile char *p = mmap(NULL, bytes, protection, MAP_PRIVATE, file, 0);
		for (size_t k = 0; p != MAP_FAILED && k < bytes; k += 4096)
			if (protection & PROT_WRITE)
				p[k] = 1;
			else
				(void)p[k];
		kept += bytes;
	}
}

static void share(void)
{
	int file = memfd_create("queue", MFD_CLOEXEC);
	char *p = ftruncate(file, EACH) ? MAP_FAILED : mmap(NULL, EACH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (p != MAP_FAILED)
		memset(p, 1, EACH);
	close(file);
	kept += EACH;
}

static __attribute__((noinline)) void map_one(void)
{
	void **p = got(mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	list[kept / PIECE] = memset(p, 1, PIECE);
	kept += PIECE;
}

/* Address space that is given back now and then, far more of it than what stays. */
static void reserve(size_t i)
{
	enum { TURNS_KEPT = 23, BYTES = 26 << 20 };
	static void *space[TURNS_KEPT];
	for (size_t k = 0; i && i % TURNS_KEPT == 0 && k < TURNS_KEPT; k++)
		munmap(space[k], BYTES);
	space[i % TURNS_KEPT] =
		got(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

/* Half-way all that is there moves, and what comes is mapped by another line. */
static void move(size_t i)
{
	list = got(realloc(list, (units_all + 1) * sizeof(*list)));
	if (i < units_all / 2) {
		map_one();
		return;
	}
	const size_t before = i == units_all / 2 ? kept / PIECE : 0;
	for (size_t k = 0; k < before; k++)
		munmap(list[k], PIECE);
	kept -= before * PIECE;
	for (size_t k = 0; k < before + 1; k++)
		map_one();
}

/* The parent waits for four children, which go on as if they were it. */
static void fork_four(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			return;
	while (wait(NULL) > 0)
		;
	exit(0);
}

/* As much for each of four stages of work, in blocks of its own, and at once: touching them takes a busy machine long. */
static void begin_stage(int renew)
{
	for (size_t i = 0; renew && i < kept / EACH; i++)
		free(list[i]);
	size_t before = renew ? 0 : kept / EACH;
	kept = before * EACH;
	list = realloc(list, (before + STAGE) * sizeof(*list));
	for (size_t i = 0; i < STAGE; i++, kept += EACH)
		list[before + i] = memset(malloc(EACH), 2, 1);
}

/* What the first ones leave. */
static __attribute__((noinline)) void begin_epoch(void)
{
	static void *newest;
	for (int i = 0; i < 100; i++) {
		void **block = memset(got(malloc(EACH)), 3, EACH);
		*block = newest;
		newest = block;
		kept += EACH;
	}
}

/* Takes as long as it took to get them. */
static void clean_up(void)
{
	for (size_t i = 1; i <= units; i++) {
		free(list[i]);
		nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
	}
}

/* Needs no memory for so long. */
static void compute(double seconds)
{
	for (double s = 0; s < seconds; s += 0.1)
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	free(strdup("result"));
}

/* A long turn: its results stay, what it needed meanwhile does not. */
static void turn(int needs)
{
	void *parts[200];
	for (int i = 0; i < 64; i++, units++)
		keep(65536);
	for (int i = 0; i < 200 && needs; i++)
		parts[i] = memset(malloc(70000 + 100 * (size_t)i), i, 70000);
	nanosleep(&(struct timespec){ .tv_nsec = 700000000 }, NULL);
	for (int i = 0; i < 200 && needs; i++)
		free(parts[i]);
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "fill";
	units_all = argc > 2 ? strtoul(argv[2], NULL, 10) : units_all;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!strcmp(form, "dozes"))
		units_all = 2700;
	const int drops = !strcmp(form, "drops");
	if (!strcmp(form, "fill") || !strcmp(form, "works") || drops)
		for (; units < 600; units++) {
			keep(EACH);
			nanosleep(&(struct timespec){ .tv_nsec = READ_NS }, NULL);
		}
	if (!strcmp(form, "map"))
		fill();
	for (size_t i = 0; i < units && drops; i++)
		free(list[i]);
	if (drops)
		compute(3);
	units = 0;
	if (!strcmp(form, "forks") || !strcmp(form, "starts"))
		fork_four();
	if (!strcmp(form, "waits")) {
		pause_every = 10;
		paced = false;
		pause_ns = WAIT_NS;
	}
	const int in_turns = !strcmp(form, "turns") || !strcmp(form, "loads"), renews = !strcmp(form, "renews");
	for (int i = 0; in_turns && i < TURNS; i++)
		turn(!strcmp(form, "turns"));
	for (size_t i = 0; !in_turns && !drops && strcmp(form, "fill") && strcmp(form, "map") && i < units_all; i++) {
		work();
		if (!strcmp(form, "pairs"))
			keep_twin(EACH);
		if (!strcmp(form, "keeps") || !strcmp(form, "pairs") || !strcmp(form, "waits") || !strcmp(form, "forks") || !strcmp(form, "cleans") || !strcmp(form, "dozes") || !strcmp(form, "computes") || ((!strcmp(form, "warmup") || !strcmp(form, "starts")) && i < units_all / 4))
			keep(EACH);
		if (!strcmp(form, "epochs") && i < units_all / 4 && i % (units_all / 12) == 0)
			begin_epoch();
		if ((renews || !strcmp(form, "stages")) && i % (units_all / 4) == 0)
			begin_stage(renews);
		if (!strcmp(form, "cache"))
			for (unsigned k = 0; k < 1000; k++)
				insert((unsigned)i * 1000 + k);
		if (!strcmp(form, "block"))
			grow();
		if (!strcmp(form, "shared"))
			share();
		if (!strcmp(form, "moves")) {
			reserve(i);
			move(i);
		}
		if (!strcmp(form, "private") || !strcmp(form, "file"))
			map(PROT_READ | (!strcmp(form, "private") ? PROT_WRITE : 0));
	}
	account();
	if (!strcmp(form, "cleans"))
		clean_up();
	if (!strcmp(form, "dozes") || !strcmp(form, "computes"))
		compute(seconds() * (!strcmp(form, "dozes") ? 0.6 : 1));
	return 0;
}
