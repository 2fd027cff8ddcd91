/* fork_window thread | handler LIBRARY: a block is freed within fork(), before memory is copied. The child gets its address
 * again.
 *   thread    fork() waits for a lock of the C library, after all handlers; meanwhile another thread frees
 *   handler   a handler of the program frees; LIBRARY is opened after that was registered, so its own handlers run earlier */
#include "test.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

enum { BYTES = 50000 };

static void *block;
static volatile pid_t flushes, forks;

static void free_block(void)
{
	free(block);
}

/* Until that thread waits for a lock. */
static void until_it_waits(volatile pid_t *tid)
{
	char path[64], text[16];
	for (int tries = 0; tries < 5000; tries++) {
		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", *tid);
		int fd = *tid ? open(path, O_RDONLY) : -1;
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (atoi(text) == SYS_futex)
			return;
	}
	say("nobody waits\n");
}

static void *flush_all(void *unused)
{
	flushes = (pid_t)syscall(SYS_gettid);
	fflush(NULL);
	return unused;
}

static void *fork_child(void *unused)
{
	int status;
	pid_t pid;
	free(opaque(malloc(10))); /* what the allocator takes for a new thread */
	forks = (pid_t)syscall(SYS_gettid);
	pid = fork();
	if (pid == 0) {
		void *again = opaque(malloc(BYTES));
		say("%s\n", again == block ? "the same address" : "another address");
		_exit(3);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
	return unused;
}

static void in_thread(void)
{
	pthread_t flusher, forker;
	FILE *file = fopen("/dev/null", "w");
	flockfile(file);
	pthread_create(&flusher, NULL, flush_all, NULL);
	until_it_waits(&flushes); /* it has the lock of the list of files */
	pthread_create(&forker, NULL, fork_child, NULL);
	until_it_waits(&forks); /* for that lock */
	free_block();
	funlockfile(file);
	pthread_join(flusher, NULL);
	pthread_join(forker, NULL);
	fclose(file);
}

int main(int argc, char **argv)
{
	mallopt(M_ARENA_MAX, 1);
	if (argc > 2) {
		pthread_atfork(free_block, NULL, NULL);
		CHECK(dlopen(argv[2], RTLD_NOW));
	}
	block = opaque(malloc(BYTES));
	memset(block, 1, BYTES);
	void *top = opaque(malloc(BYTES)); /* what is freed lies between two that are not */
	if (argc > 2)
		fork_child(NULL);
	else
		in_thread();
	free(top);
	say("done\n");
	return 0;
}
