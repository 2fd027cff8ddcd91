/* Frees in a way that is known: allocates MIB of blocks and touches them, says so, waits for a line, frees them all, and says what
 * the kernel has it charged with at both moments. Then it waits for stdin to end.
 *
 *   givesback kept MIB      the allocator may not give anything back
 *   givesback trimmed MIB   ... until it is told to, by malloc_trim()
 *   givesback mapped MIB    every block is a mapping of its own
 *   givesback untouched MIB ... and was never touched */
#include <malloc.h>
#include <poll.h>

#include "test.h"

#define MIB (1ul << 20)

static unsigned long resident(void)
{
	char text[4096], *at;
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "RssAnon:");
	return at ? strtoul(at + 8, NULL, 10) * 1024 : 0;
}

/* For a line, or the end: 0. Only who does something gets a recorder. */
static int wait_for_line(void)
{
	struct pollfd in = { 0, POLLIN, 0 };
	char line[16];

	while (poll(&in, 1, 20) == 0)
		free(malloc(1));
	return read(0, line, sizeof(line)) > 0;
}

int main(int argc, char **argv)
{
	static char *blocks[65536];
	const char *how = argc > 2 ? argv[1] : "";
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	int own = !strcmp(how, "mapped") || !strcmp(how, "untouched");

	CHECK(mallopt(M_MMAP_THRESHOLD, own ? 65536 : 1 << 30) && mallopt(M_TRIM_THRESHOLD, 1 << 30) && mallopt(M_MMAP_MAX, own ? 65536 : 0));
	for (size_t i = 0; i < count; i++) {
		blocks[i] = malloc(MIB);
		CHECK(blocks[i]);
		for (size_t at = 0; strcmp(how, "untouched") && at < MIB; at += 4096)
			((volatile char *)blocks[i])[at] = 1;
	}
	say("READY %d %lu\n", (int)getpid(), resident());
	if (!wait_for_line())
		return 1;
	for (size_t i = 0; i < count; i++)
		free(blocks[i]);
	if (!strcmp(how, "trimmed"))
		malloc_trim(0);
	say("FREED %d %lu\n", (int)getpid(), resident());
	while (wait_for_line())
		;
	return 0;
}
