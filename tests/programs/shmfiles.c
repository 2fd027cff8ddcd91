/* A file in /dev/shm, written and not mapped, but for its first page: shmfiles MIB SECONDS [left]; a wait when all is there, and then it is removed, but
 * for `left`; its name is said. `others`: left, and no page of it was mapped, as if another program had made it. */
#include <sys/mman.h>
#include <time.h>

#include "test.h"

#define MIB (1ul << 20)

int main(int argc, char **argv)
{
	CHECK(argc >= 3);
	size_t n = strtoul(argv[1], NULL, 10);
	double s = strtod(argv[2], NULL);
	struct timespec wait = { (long)s, (long)((s - (double)(long)s) * 1e9) }, pause = { 0, 5000000 };
	char name[64], *block = malloc(MIB);

	memset(block, 1, MIB);
	snprintf(name, sizeof(name), "/dev/shm/memtrace-test-%d", (int)getpid());
	say("%s\n", name);
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		CHECK(write(fd, block, MIB) == (ssize_t)MIB);
		nanosleep(&pause, NULL);
		free(opaque(malloc(100)));
	}
	if (argc < 4 || strcmp(argv[3], "others"))
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	nanosleep(&wait, NULL);
	free(block);
	if (argc < 4)
		unlink(name);
	return 0;
}
