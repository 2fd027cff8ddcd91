#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *early_blocks[64];

__attribute__((constructor)) static void begin(void)
{
	for (int i = 0; i < 64; i++) {
		early_blocks[i] = i % 4 == 0 ? calloc(1, i + 1) : i % 4 == 1 ? realloc(NULL, i + 1) : malloc(i + 1);
		memset(early_blocks[i], i, i + 1);
	}
}

__attribute__((destructor)) static void end(void)
{
	int good = 1;
	for (int i = 0; i < 64; i++) {
		good &= !early_blocks[i] || early_blocks[i][i] == (char)i;
		free(early_blocks[i]);
		free(malloc(1000 + i));
	}
	if (write(1, good ? "good\n" : "bad!\n", 5) != 5)
		_exit(9);
}
