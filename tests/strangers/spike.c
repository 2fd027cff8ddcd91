// truth(lost): leak serve 12.0M; 64 MB are held while it begins, then each request loses 6,000 bytes, and nothing is freed at exit
// truth(freed): leak serve 12.0M; the same, but all requests are kept, and freed at exit
// truth(done): passes - 0; the same spike, and requests that free what they made
// pauses: 0 0.001
// short
#include <stdlib.h>
#include <string.h>

#include "pause.h"

enum { REQUESTS = 2000 };
static void *kept[REQUESTS];

static void begin(void)
{
	void *parts[64];
	for (int i = 0; i < 64; i++)
		parts[i] = memset(malloc(1000000), 1, 1000000);
	for (int i = 0; i < 64; i++)
		free(parts[i]);
}

static __attribute__((noinline)) void *serve(int request)
{
	void *session = memset(malloc(6000), request, 6000);
	for (int i = 0; i < 8; i++) {
		void *volatile reply = malloc(4000 + 100 * (size_t)i);
		free(reply);
	}
	return session;
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "lost";
	begin();
	for (int request = 0; request < REQUESTS; request++) {
		void *volatile session = serve(request);
		if (!strcmp(form, "freed"))
			kept[request] = session;
		if (!strcmp(form, "done"))
			free(session);
		wait_a_turn();
	}
	for (int request = 0; request < REQUESTS; request++)
		free(kept[request]);
	return 0;
}
