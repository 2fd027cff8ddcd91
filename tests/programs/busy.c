/* busy COUNT LIVE SIZE [MS]: COUNT allocations of up to SIZE bytes of which LIVE are kept, from many call stacks; prints a checksum of
 * their contents. With MS it then idles that long and does it again. The exit status is 7. */
#include "test.h"

static char **kept;
static size_t *sizes;

__attribute__((noinline)) static void *deep(unsigned path, unsigned levels, size_t size)
{
	if (!levels)
		return malloc(size);
	void *p = path & 1 ? deep(path >> 1, levels - 1, size) : deep(path >> 1, levels - 1, size);
	return opaque(p);
}

static unsigned busy(unsigned count, unsigned live, unsigned size)
{
	unsigned random = 12345, sum = 0;
	for (unsigned i = 0; i < count; i++) {
		random = random * 1103515245 + 12345;
		unsigned k = i % live, n = 1 + (random >> 8) % size;
		if (kept[k])
			sum = sum * 31 + (unsigned char)kept[k][sizes[k] - 1];
		free(kept[k]);
		kept[k] = deep(random >> 16, 12, n);
		if (!kept[k]) {
			say("out of memory\n");
			_exit(3);
		}
		sizes[k] = n;
		kept[k][n - 1] = i;
	}
	return sum;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	unsigned count = atoi(argv[1]), live = atoi(argv[2]), size = atoi(argv[3]);
	kept = raw_map(NULL, live * sizeof(*kept));
	sizes = raw_map(NULL, live * sizeof(*sizes));
	say("%u\n", busy(count, live, size));
	if (argc > 4) {
		usleep(atoi(argv[4]) * 1000);
		say("%u\n", busy(count, live, size));
	}
	return 7;
}
