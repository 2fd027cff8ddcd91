/* Allocation in a handler on an alternate stack of 8 KiB with a hole below it. */
#include "test.h"

#include <signal.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static volatile int handled;

static void handler(int sig)
{
	(void)sig;
	for (int i = 0; i < 100; i++) {
		void *p = opaque(malloc(100 + i));
		p = opaque(realloc(p, 300));
		free(p);
		p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 4096);
	}
	handled++;
}

int main(void)
{
	if (getauxval(AT_MINSIGSTKSZ) > 4500) {
		say("signal frames are too large here\n");
		return 0;
	}
	char *area = raw_map(NULL, 65536 + 8192);
	mprotect(area, 65536, PROT_NONE);
	stack_t stack = { .ss_sp = area + 65536, .ss_size = 8192 };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	for (int i = 0; i < 200; i++)
		raise(SIGUSR1);
	say("handled %d\n", handled);
	return 0;
}
