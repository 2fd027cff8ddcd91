/* Blocks from before the shim was ready (a constructor of libearly.so, preloaded behind it) are freed and resized here;
 * libearly's destructor goes on after the shim's. */
#include "test.h"

#include <dlfcn.h>

int main(void)
{
	char **blocks = dlsym(RTLD_DEFAULT, "early_blocks");
	if (!blocks)
		return 2;
	for (int i = 0; i < 64; i++) {
		for (int k = 0; k <= i; k++)
			CHECK(blocks[i][k] == (char)i);
		if (i % 3 == 0) {
			free(blocks[i]);
			blocks[i] = NULL;
		} else if (i % 3 == 1) {
			blocks[i] = realloc(blocks[i], 5000);
			for (int k = 0; k <= i; k++)
				CHECK(blocks[i][k] == (char)i);
		}
	}
	say("main ends\n");
	return 0;
}
