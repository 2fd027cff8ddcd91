/* keeps N: N blocks that stay, of which nothing can be folded. */
#include <stdlib.h>

#include "test.h"

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, seed = 88172645463325252ul;
	while (n-- > 0) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		CHECK(opaque(malloc(1 + seed % 500)));
	}
	return 0;
}
