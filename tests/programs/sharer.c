/* sharer: a child that shares its parent's memory, and by that its thread-local storage, maps and unmaps at the same time as its parent,
 * both from many depths; ROUNDS children, one after the other. It calls nothing that needs storage of its own but errno. */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ROUNDS = 4, CALLS = 40000, STACK = 1 << 20 };

__attribute__((noinline)) static void deep(int n)
{
	char room[200];
	opaque(room);
	if (n) {
		deep(n - 1);
	} else {
		void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || munmap(p, 8192))
			_exit(9);
	}
	opaque(room);
}

static int child(void *unused)
{
	(void)unused;
	for (int i = 0; i < CALLS; i++)
		deep(i % 100);
	return 5;
}

int main(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	for (int round = 0; round < ROUNDS; round++) {
		int status = -1;
		pid_t pid = clone(child, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD, NULL);
		for (int i = 0; i < CALLS; i++)
			deep(i % 90);
		CHECK(waitpid(pid, &status, 0) == pid);
		say("child ended with %x\n", (unsigned)status);
	}
	return 7;
}
