/* Asks for what it may not get, as databases and PHP do, each in a way that nobody takes for a failure; with an argument also for what it needs
 * and does not get. */
#include "test.h"

#define MIB (1ul << 20)
#define MUCH (1ul << 46)

static void refused(void *p)
{
	CHECK(p == MAP_FAILED);
}

int main(int argc, char **argv)
{
	const int plain = MAP_PRIVATE | MAP_ANONYMOUS, both = PROT_READ | PROT_WRITE;
	char *p = mmap(NULL, 2 * MIB, both, plain, -1, 0);
	(void)argv;
	CHECK(p != MAP_FAILED && !munmap(p + MIB, MIB));
	CHECK(mmap(p + MIB, 4096, PROT_READ, plain | MAP_FIXED, -1, 0) == p + MIB); /* in the way */
	refused(mmap(NULL, 1ul << 44, both, plain | MAP_HUGETLB, -1, 0));
	refused(mmap(p, 4096, both, plain | 0x100000 /* MAP_FIXED_NOREPLACE */, -1, 0));
	refused(mmap(NULL, MUCH * 4, PROT_NONE, plain | MAP_NORESERVE, -1, 0));
	refused(mmap((void *)0x500000000000, MUCH * 4, both, plain | MAP_NORESERVE, -1, 0));
	refused(mmap(NULL, 0, both, plain, -1, 0));
	refused(mmap(NULL, 4096, both, MAP_PRIVATE, 1000, 0));
	refused(mremap(p, MIB, 2 * MIB, 0));
	if (argc > 1)
		refused(mmap(NULL, MUCH * 4, both, plain, -1, 0));
	say("done\n");
	return 0;
}
