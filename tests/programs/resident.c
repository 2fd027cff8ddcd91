/* Known amounts of memory of every kind, each touched page by page, then a wait.
 *
 *   resident KIND MIB [KIND MIB]... hold SECONDS
 *   resident KIND MIB [KIND MIB]... until 0        until nobody holds the other end of stdin
 *
 * anon: private, touched; untouched: private, not; heap: malloc, touched; freed: malloc in blocks, touched, freed but for the last;
 * file: of a file, read; shm: a shared mapping; lock: private and locked; cow: what the parent has, half of it written to in a forked
 * child, that goes on in its place, when there is something on stdin; grow: heap in steps of 1 MiB, 20 ms each; later: private, touched in
 * such steps once it is mapped; waves: private, touched and given back again and again until stdin has no other end. */
#include <poll.h>
#include <sys/wait.h>

#include "test.h"

#define MIB (1ul << 20)

/* Something to read on stdin, which stays there, or for `what` = 0 nobody at its other end. */
static int told(short what)
{
	struct pollfd in = { 0, what, 0 };

	return poll(&in, 1, 0) == 1 && in.revents & (what | POLLHUP);
}

static void touch(volatile char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = (char)(i >> 12 | 1);
}

static void *map(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void read_file(size_t bytes)
{
	char name[] = "resident-XXXXXX";
	int fd = mkstemp(name);
	volatile char sum = 0;
	char *p;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	for (size_t i = 0; i < bytes; i += MIB)
		CHECK(pwrite(fd, calloc(1, MIB), MIB, (off_t)i) == (ssize_t)MIB);
	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	for (size_t i = 0; i < bytes; i += 4096)
		sum += p[i];
	unlink(name);
}

/* The last block keeps glibc from giving the others back. */
static void free_most(size_t bytes)
{
	size_t n = bytes / 65536;
	char **blocks = malloc(n * sizeof(*blocks));

	for (size_t i = 0; i < n; i++)
		touch(blocks[i] = malloc(65536), 65536);
	for (size_t i = 0; i + 1 < n; i++)
		free(blocks[i]);
}

static void grow(size_t mib)
{
	for (size_t i = 0; i < mib; i++) {
		char *p = malloc(MIB);
		touch(p, MIB);
		usleep(20000);
	}
}

static void touch_later(size_t mib)
{
	char *p = map(mib * MIB, MAP_PRIVATE);
	for (size_t i = 0; i < mib; i++) {
		touch(p + i * MIB, MIB);
		usleep(20000);
	}
}

static void copy_on_write(size_t bytes)
{
	char *inherited = map(bytes, MAP_PRIVATE);
	touch(inherited, bytes);
	pid_t pid = fork();
	if (pid == 0) {
		free(malloc(100)); /* who has done nothing yet is not recorded */
		say("CHILD %d\n", (int)getpid());
		while (!told(POLLIN))
			usleep(20000);
		touch(inherited, bytes / 2);
		say("COPIED %d\n", (int)getpid());
	}
}

/* A recorder is only started by a program that does something. */
static void rest(void)
{
	usleep(20000);
	free(malloc(100));
}

static void waves(size_t bytes)
{
	char *p = map(bytes, MAP_PRIVATE);

	say("READY %d\n", (int)getpid());
	while (!told(0)) {
		touch(p, bytes);
		for (int i = 0; i < 40; i++)
			rest();
		CHECK(!madvise(p, bytes, MADV_DONTNEED));
		rest();
	}
}

static void hold(size_t seconds)
{
	say("READY %d\n", (int)getpid());
	for (size_t i = 0; i < seconds * 50; i++)
		rest();
}

static void until(void)
{
	say("READY %d\n", (int)getpid());
	while (!told(0))
		rest();
}

static void one(const char *kind, size_t n)
{
	size_t bytes = n * MIB;

	if (!strcmp(kind, "anon"))
		touch(map(bytes, MAP_PRIVATE), bytes);
	else if (!strcmp(kind, "untouched"))
		map(bytes, MAP_PRIVATE);
	else if (!strcmp(kind, "heap"))
		touch(malloc(bytes), bytes);
	else if (!strcmp(kind, "freed"))
		free_most(bytes);
	else if (!strcmp(kind, "file"))
		read_file(bytes);
	else if (!strcmp(kind, "shm"))
		touch(map(bytes, MAP_SHARED), bytes);
	else if (!strcmp(kind, "lock"))
		CHECK(!mlock(map(bytes, MAP_PRIVATE), bytes));
	else if (!strcmp(kind, "cow"))
		copy_on_write(bytes);
	else if (!strcmp(kind, "grow"))
		grow(n);
	else if (!strcmp(kind, "later"))
		touch_later(n);
	else if (!strcmp(kind, "waves"))
		waves(bytes);
	else if (!strcmp(kind, "hold"))
		hold(n);
	else if (!strcmp(kind, "until"))
		until();
	else
		say("FAILED: what is %s?\n", kind);
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2)
		one(argv[i], strtoul(argv[i + 1], NULL, 10));
	return 0;
}
