// truth: leak parse 6.0M; 1,500 of 6,000 nodes are lost: nothing points to them any more, nothing is freed at exit
// pauses: 0 0.0005
// short
#include <stdlib.h>
#include <string.h>

#include "pause.h"

struct node {
	char text[4000];
};

static __attribute__((noinline)) struct node *parse(int line)
{
	struct node *made = malloc(sizeof(*made));
	memset(made->text, line, sizeof(made->text));
	return made;
}

int main(void)
{
	for (int line = 0; line < 6000; line++) {
		struct node *volatile made = parse(line);
		if (line % 4 != 3)
			free(made);
		wait_a_turn();
	}
	return 0;
}
