/* ownheap MIB [data|reserve]: an allocator of its own, linked into the program and not to be seen from outside, serves so many MiB in blocks of 1,000
 * bytes from pieces of 1 MiB that it maps. `data`: the program maps that much itself, as data, and has no such allocator.
 * `reserve`: its first piece is 1 GiB, as mimalloc's is, and it waits until the recorder has looked. */
#include "test.h"

#define PIECE ((size_t)1 << 20)

static char *piece;
static size_t left, next = PIECE;

__attribute__((noinline)) static void *more(void)
{
	void *p = mmap(NULL, next, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

__attribute__((noinline, visibility("hidden"))) void *malloc(size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (size > left) {
		piece = more();
		left = next;
	}
	void *p = piece;
	piece += size;
	left -= size;
	return p;
}

__attribute__((noinline)) static void fill(size_t bytes)
{
	for (; bytes >= 1000; bytes -= 1000)
		memset(opaque(malloc(1000)), 1, 1000);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? (size_t)atoi(argv[1]) << 20 : 0;
	const int reserves = argc > 2 && !strcmp(argv[2], "reserve");
	next = reserves ? (size_t)1 << 30 : PIECE;
	if (argc > 2 && !reserves)
		memset(opaque(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), 1, bytes);
	else
		fill(bytes);
	usleep(reserves ? 1500000 : 0);
	return 0;
}
