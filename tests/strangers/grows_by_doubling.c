// truth(line): leak append 12.8M; a text is made larger by realloc, a line at a time
// truth(double): leak append 16.8M; the same, twice as large when it is full
// truth(once): stopped append 1.6M; the text is complete after an eighth of the run
// pauses: 0 0.0002
// short
#include <string.h>

#include "pause.h"

enum { LINES = 10000, LINE = 1280 };
static char *text;
static size_t used, room;

static __attribute__((noinline)) void append(int doubles)
{
	if (used + LINE > room) {
		room = doubles && room ? 2 * room : used + LINE;
		if (doubles && room < 4096)
			room = 4096;
		text = realloc(text, room);
	}
	memset(text + used, 'x', LINE);
	used += LINE;
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "line";
	for (int line = 0; line < LINES; line++) {
		if (strcmp(form, "once") || line < LINES / 8)
			append(!strcmp(form, "double"));
		for (int k = 0; k < 4; k++) {
			void *volatile word = malloc(900 + 40 * (size_t)k);
			free(word);
		}
		wait_a_turn();
	}
	return 0;
}
