/* libprofapi.so as a profiler's library: it wants mstx's calls too. Counts them and prints at the end. */
#include <stdint.h>
#include <stdio.h>

typedef void (*slot)(void);

static int marks, starts, ends, creates;
static char domain;

static void mark(const char *text, void *stream) { (void)text, (void)stream, marks++; }
static uint64_t start(const char *text, void *stream) { (void)text, (void)stream; return 1000u + (unsigned)starts++; }
static void end(uint64_t id) { ends += id >= 1000 && id < 1100; }
static void *create(const char *name) { (void)name, creates++; return &domain; }

int InitInjectionMstx(int (*tables)(int, slot ***, unsigned *));
int InitInjectionMstx(int (*tables)(int, slot ***, unsigned *))
{
	slot **table;
	unsigned size;

	if (tables(1, &table, &size))
		return 1;
	*table[1] = (slot)mark;
	*table[2] = (slot)start;
	*table[3] = (slot)end;
	if (tables(2, &table, &size))
		return 1;
	*table[1] = (slot)create;
	return 0;
}

__attribute__((destructor)) static void tell(void)
{
	printf("profiler: %d marks, %d starts, %d ends, domains %s\n", marks, starts, ends, creates ? "yes" : "no");
}
