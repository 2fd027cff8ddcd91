/* One block, a wait, and little else: once MIB MIB_A_SECOND SECONDS [kept|pieces]
 *
 * malloc(MIB), touched page by page at that pace (0: as fast as it goes), a wait, free; `kept` doesn't, nor does `pieces`, which gets it in blocks
 * of 16 MiB. Each says when, on CLOCK_MONOTONIC, and what was resident then: "touched NS BYTES", "waited NS BYTES". Nothing is allocated meanwhile. */
#include <time.h>

#include "test.h"

#define MIB (1ul << 20)

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ns(long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

static void tell(const char *what)
{
	char text[128];
	long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY), n = 0;

	CHECK(fd >= 0 && (n = (int)read(fd, text, sizeof(text) - 1)) > 0);
	text[n] = 0;
	close(fd);
	CHECK(sscanf(text, "%*d %ld", &pages) == 1);
	say("%s %ld %ld\n", what, now_ns(), pages * 4096);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 4);
	size_t bytes = strtoul(argv[1], NULL, 10) * MIB;
	long pace = atol(argv[2]);
	size_t piece = argc > 4 && !strcmp(argv[4], "pieces") ? 16 * MIB : bytes;
	volatile char *p[64] = { NULL };

	for (size_t i = 0; i < bytes / piece; i++)
		CHECK(i < 64 && (p[i] = malloc(piece)) != NULL);
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i / piece][i % piece] = 1;
		if (pace && i % MIB == 0)
			pause_ns(1000000000 / pace);
	}
	tell("touched");
	pause_ns((long)(strtod(argv[3], NULL) * 1e9));
	tell("waited");
	if (argc < 5)
		free((void *)p[0]);
	return 0;
}
