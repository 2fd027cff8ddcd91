// truth(known): stopped load 16.8M; a file whose size is known is read into a buffer that realloc makes larger once, then worked through
// truth(doubled): stopped load 33.6M; it is gathered line by line into a buffer that doubles: a third of all blocks, and of the bytes a sixth
// pauses: 0 0.002
// short
#include <string.h>

#include "pause.h"

enum { SIZE = 17000000, LINE = 100, PIECE = 400000, PIECES = 1500 };

static __attribute__((noinline)) char *load(int known)
{
	size_t room = 4096;
	char *text = malloc(64);
	text = realloc(text, known ? SIZE : room);
	for (size_t used = 0; used + LINE <= SIZE && !known; used += LINE) {
		char *volatile line = malloc(LINE);
		memset(line, 'a', LINE);
		if (used + LINE > room)
			text = realloc(text, room *= 2);
		memcpy(text + used, line, LINE);
		free(line);
	}
	if (known)
		memset(text, 'a', SIZE);
	return text;
}

int main(int argc, char **argv)
{
	char *text = load(argc > 1 && !strcmp(argv[1], "known"));
	for (int i = 0; i < PIECES; i++) {
		char *scratch = malloc(PIECE);
		memcpy(scratch, text + i % (SIZE / PIECE) * PIECE, PIECE);
		for (int word = 0; word < 200; word++) {
			void *volatile copy = malloc(60 + (size_t)word);
			free(copy);
		}
		free(scratch);
		wait_a_turn();
	}
	return text[0] != 'a';
}
