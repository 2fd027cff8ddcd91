// truth: leak handler 12.5M; fifty handlers, each of which loses 100 bytes a call: no line has much, all together have
// pauses: 0 0.0001
// short
#include <string.h>

#include "pause.h"

enum { HANDLERS = 50 };
static void *volatile latest;

static void answer(int request)
{
	for (int i = 0; i < 3; i++)
		free(memset(malloc(200 + (size_t)i), request, 200));
}

/* A function on each line, which loses what it made before. */
#define HANDLER(N) \
	static __attribute__((noinline)) void handler_##N(int request) \
	{ \
		latest = memset(malloc(100), request, 100); \
		answer(request); \
	}
#define TEN(DO, N) DO(N##0) DO(N##1) DO(N##2) DO(N##3) DO(N##4) DO(N##5) DO(N##6) DO(N##7) DO(N##8) DO(N##9)
#define ALL(DO)    TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4) TEN(DO, 5)
ALL(HANDLER)

#define NAME(N) handler_##N,
static void (*const handlers[HANDLERS])(int) = { ALL(NAME) };

int main(void)
{
	for (int request = 0; request < 125000; request++) {
		handlers[request % HANDLERS](request);
		if (request % 10 == 0)
			wait_a_turn();
	}
	return 0;
}
