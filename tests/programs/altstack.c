/* Allocation in a handler on an alternate stack with a hole below it, which has 4.5 KiB beside the kernel's frame: what 8 KiB leave
 * where that holds AVX-512's registers. */
#include "test.h"

#include <signal.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define HOLE 65536
#define LARGE 65536
#define ROOM 4500

static volatile int handled;
static char *volatile deepest;

static void measure(int sig)
{
	(void)sig;
	deepest = __builtin_frame_address(0);
}

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

/* Handles SIGUSR1 on SIZE bytes above the hole. */
static void handle(char *area, size_t size, void (*function)(int))
{
	stack_t stack = { .ss_sp = area + HOLE, .ss_size = size };
	struct sigaction sa = { .sa_handler = function, .sa_flags = SA_ONSTACK };

	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &sa, NULL));
}

int main(void)
{
	char *area = raw_map(NULL, HOLE + LARGE);
	size_t frame, least = getauxval(AT_MINSIGSTKSZ);

	mprotect(area, HOLE, PROT_NONE);
	/* It has what this processor has registers, AMX's only for who uses them; the kernel wants room for all. */
	handle(area, LARGE, measure);
	raise(SIGUSR1);
	frame = (size_t)(area + HOLE + LARGE - deepest);
	CHECK(frame + ROOM < LARGE && least < LARGE);
	handle(area, (frame + ROOM > least ? frame + ROOM : least) & ~15UL, handler);
	for (int i = 0; i < 200; i++)
		raise(SIGUSR1);
	say("handled %d\n", handled);
	return 0;
}
