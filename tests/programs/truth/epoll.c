/* A server with an event loop: who hangs up before its request is whole leaves its buffer behind */
// truth: leak epoll.c accept_one
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct connection {
	int number;
	size_t used;
	char *buffer;
};

static struct connection *accept_one(int number)
{
	struct connection *c = calloc(1, sizeof(*c));

	c->number = number;
	c->buffer = malloc(16384);
	return c;
}

static void receive(struct connection *c, int part)
{
	memset(c->buffer + c->used, part, 2048);
	c->used += 2048;
}

static char *respond(struct connection *c)
{
	char *answer = malloc(c->used + 64);

	memcpy(answer, c->buffer, c->used);
	return answer;
}

int main(int argc, char **argv)
{
	(void)argv;
	for (int number = 0; number < 20000; number++) {
		struct connection *c = accept_one(number);
		const int hangs_up = number % 4 == 0;

		for (int part = 0; part < (hangs_up ? 2 : 6); part++)
			receive(c, part);
		if (!hangs_up) {
			free(respond(c));
			free(c->buffer);
		} else if (argc > 1) {
			free(c->buffer);
		}
		free(c);
	}
	return 0;
}
