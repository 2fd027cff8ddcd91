/* Address space that is reserved first and made usable piece by piece, as runtimes do. Prints the bytes that can be used in the end, the
 * most at any time, what was given back by madvise, and the address space that is left. */
#include "test.h"

#define MIB (1ul << 20)

static size_t now, most;

static void change(long bytes)
{
	now += (size_t)bytes;
	most = now > most ? now : most;
}

static void use(char *p, size_t bytes)
{
	CHECK(!mprotect(p, bytes, PROT_READ | PROT_WRITE));
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	change((long)bytes);
}

/* What generates code does all the time; and what never was mapped here, or is usable already, changes nothing. */
static void flip(char *p, size_t bytes)
{
	for (int i = 0; i < 20000; i++)
		CHECK(!mprotect(p, bytes, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC));
	CHECK(mprotect((char *)8192, 4096, PROT_READ) == -1 && errno == ENOMEM);
	CHECK(mprotect(p + 1, 4096, PROT_READ) == -1 && errno == EINVAL);
	CHECK(!mprotect(p, 4096, PROT_READ));
}

int main(void)
{
	char *space = mmap(NULL, 400 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *plain = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(space != MAP_FAILED && plain != MAP_FAILED);
	change(16 * MIB);
	use(space, 300 * MIB);
	flip(space + MIB, 64 * 4096);
	CHECK(!mprotect(space + 10 * MIB, 20 * MIB, PROT_NONE)); /* a part goes */
	change(-20l * (long)MIB);
	CHECK(mmap(space + 100 * MIB, 50 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == space + 100 * MIB);
	change(-50l * (long)MIB);
	use(space + 120 * MIB, 10 * MIB);
	CHECK(!mprotect(plain, 4096, PROT_NONE)); /* a guard page */
	change(-4096);
	CHECK(!munmap(space + 295 * MIB, 10 * MIB)); /* half of it was usable */
	change(-5l * (long)MIB);
	CHECK(!madvise(plain + MIB, 4 * MIB, MADV_DONTNEED) && plain[MIB] == 0);
	CHECK(!madvise(plain, 16 * MIB, MADV_RANDOM));
	CHECK(!madvise(space + 20 * MIB, 20 * MIB, MADV_DONTNEED)); /* of which 10 are usable */
	CHECK(madvise(plain + 1, 4096, MADV_DONTNEED) == -1 && errno == EINVAL);
	char *moved = mremap(space, MIB, 11 * MIB, MREMAP_MAYMOVE); /* grows as what it is */
	CHECK(moved != MAP_FAILED);
	change(10 * MIB);
	say("%zu %zu %zu %zu\n", now, most, 14 * MIB, 400 * MIB - 10 * MIB - 235 * MIB + 4096);
	return 0;
}
