/* A handler that interrupts malloc anywhere, and leaves by siglongjmp, again and again. Runs on libbump.so.
 *   jumps same|deeper|alternate LOOPS
 * same: each call of malloc is by one function at one depth. deeper: what allocates after a jump does so further in, over
 * a hole that nobody writes to. alternate: the handler has a stack of its own. All that malloc returned is in the tally;
 * behind the jumps come 10,000 blocks and one of 100 MiB. */
#include "tally.h"

#include <setjmp.h>
#include <signal.h>
#include <time.h>

#define HOLE 16384

static sigjmp_buf back;
static volatile long jumped;
static volatile int may_jump;
static timer_t timer;

static void handler(int sig)
{
	(void)sig;
	if (!may_jump)
		return;
	jumped++;
	may_jump = 0;
	siglongjmp(back, 1);
}

/* 2 to 42 us from now. */
static void set_timer(void)
{
	struct itimerspec at = { .it_value.tv_nsec = 2000 + jumped % 401 * 100 };

	CHECK(!timer_settime(timer, 0, &at, NULL));
}

__attribute__((noinline)) static void allocate(long loops)
{
	while (jumped < loops)
		tally_alloc(malloc(16), 16);
}

__attribute__((noinline)) static void allocate_deeper(long loops, int hole)
{
	char room[hole]; /* written to by nobody */

	opaque(room);
	allocate(loops);
}

__attribute__((noinline)) static void after_jumps(void)
{
	for (int i = 0; i < 10000; i++)
		tally_alloc(malloc(77), 77);
	tally_alloc(malloc(100 << 20), 100 << 20);
}

static void use_alternate_stack(void)
{
	static char memory[65536];
	stack_t s = { .ss_sp = memory, .ss_size = sizeof(memory) };

	CHECK(!sigaltstack(&s, NULL));
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	long loops = argc > 2 ? atol(argv[2]) : 1000;
	int deeper = argc > 1 && !strcmp(argv[1], "deeper");

	if (argc > 1 && !strcmp(argv[1], "alternate")) {
		use_alternate_stack();
		sa.sa_flags |= SA_ONSTACK;
	}
	CHECK(!sigaction(SIGUSR1, &sa, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	sigsetjmp(back, 1);
	if (jumped < loops) {
		may_jump = 1;
		set_timer();
		if (deeper)
			allocate_deeper(loops, 64 + (int)(jumped % 64) * (HOLE / 64));
		else
			allocate(loops);
	}
	may_jump = 0;
	if (deeper)
		allocate_deeper(0, HOLE);
	after_jumps();
	int fd = open("tally", O_WRONLY | O_CREAT | O_TRUNC, 0600); /* differs from run to run */
	dup2(fd, 1);
	tally_say();
	return 0;
}
