/* Handlers that allocate, at any instruction of the threads' own allocating. Runs on libbump.so.
 *   sigstorm storm|jump LOOPS    jump: the handler leaves by siglongjmp
 * The tally is of calls that returned. */
#include "tally.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static int jumps;
static volatile sig_atomic_t jumping, jumped;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;

static void handler(int sig)
{
	(void)sig;
	void *p = tally_alloc(malloc(24), 24);
	free(p);
	tally_free(24);
	if (jumping && may_jump) {
		jumped++;
		siglongjmp(back, 1);
	}
}

static void timer(long us)
{
	struct itimerval t = { { 0, us }, { 0, us } };
	setitimer(ITIMER_REAL, &t, NULL);
}

static void *work(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		char *p = tally_alloc(malloc(100 + i % 50), 100 + i % 50);
		void *q = tally_alloc(calloc(2, 20), 40);
		p = tally_realloc(realloc(p, 300), 300, p, 100 + i % 50);
		free(p);
		tally_free(300);
		free(q);
		tally_free(40);
	}
	return NULL;
}

__attribute__((noinline)) static void after_jumps(void)
{
	for (int i = 0; i < 10000; i++)
		tally_alloc(malloc(77), 77);
}

static void jump_around(void)
{
	jumping = 1;
	sigsetjmp(back, 1);
	while (jumped < jumps) {
		may_jump = 1;
		work((void *)100);
		may_jump = 0;
	}
	timer(0);
	jumping = 0;
	after_jumps();
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	if (argc < 3 || sigaction(SIGALRM, &sa, NULL))
		return 2;
	timer(50);
	if (!strcmp(argv[1], "jump")) {
		jumps = atoi(argv[2]);
		jump_around();
	} else {
		pthread_t other;
		pthread_create(&other, NULL, work, (void *)atol(argv[2]));
		work((void *)atol(argv[2]));
		pthread_join(other, NULL);
		timer(0);
	}
	int fd = open("tally", O_WRONLY | O_CREAT | O_TRUNC, 0600); /* differs from run to run */
	dup2(fd, 1);
	tally_say();
	return 0;
}
