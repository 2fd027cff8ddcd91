/* forks MODE: ways to make children. The parent holds 1,000 blocks of 100 bytes; a child that returns here frees 250 of
 * them and leaves 10 blocks of 30. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char *blocks[1000];

__attribute__((noinline)) static void parent_blocks(void)
{
	for (int i = 0; i < 1000; i++)
		memset(blocks[i] = opaque(malloc(100)), i, 100);
}

__attribute__((noinline)) static void child_work(void)
{
	for (int i = 0; i < 250; i++) {
		CHECK(blocks[i][99] == (char)i);
		free(blocks[i]);
	}
	for (int i = 0; i < 10; i++)
		opaque(malloc(30));
	say("child\n");
}

static void reap(pid_t pid)
{
	int status = -1;
	CHECK(waitpid(pid, &status, 0) == pid);
	say("status %d\n", status);
}

static void spawn(char *self)
{
	pid_t pid;
	char *argv[] = { self, "nothing", NULL };
	CHECK(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ));
	reap(pid);
	CHECK(posix_spawnp(&pid, "/nonexistent/program", NULL, NULL, argv, environ));
}

static void in_vfork(char *self, int execs)
{
	pid_t pid = vfork();
	if (pid == 0) {
		void *p = opaque(malloc(5000)); /* in the parent's heap */
		memset(p, 1, 5000);
		free(p);
		if (execs)
			execl("/proc/self/exe", self, "nothing", NULL);
		_exit(4);
	}
	reap(pid);
	child_work(); /* our heap is whole */
}

static volatile int stop;

static void *churn(void *arg)
{
	while (!stop) {
		char *p = opaque(malloc(200));
		*p = 1;
		free(p);
	}
	return arg;
}

static void with_threads(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, churn, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (int k = 0; k < 1000; k++)
				free(opaque(malloc(k)));
			_exit(0);
		}
		int status;
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static void exec_chain(char *self, int left)
{
	char n[12];
	snprintf(n, sizeof(n), "%d", left - 1);
	if (left > 0)
		execl("/proc/self/exe", self, "chain", n, NULL);
	say("end of the chain\n");
}

static void daemonize(void)
{
	int fd[2];
	char c;
	CHECK(!pipe(fd));
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			usleep(50000); /* our parent is gone by now */
			child_work();
			exit(0);
		}
		_exit(0);
	}
	wait(NULL);
	close(fd[1]);
	CHECK(read(fd[0], &c, 1) == 0); /* the daemon ended */
}

static int both[2][2];

static void hand_over(int to)
{
	CHECK(write(both[to][1], "", 1) == 1);
}

static void await(int from)
{
	char c;
	CHECK(read(both[from][0], &c, 1) == 1);
}

/* Frees blocks that the one who made them has freed since, and allocates nothing before that. */
static int middle_child(void *unused)
{
	await(1);
	if (fork() == 0) {
		child_work();
		hand_over(0);
		_exit(5);
	}
	_exit(0);
	return unused != NULL;
}

static void middle(const char *how)
{
	static char stack[1 << 18] __attribute__((aligned(64)));
	int status;
	pid_t pid;
	CHECK(!pipe(both[0]) && !pipe(both[1]));
	if (!strcmp(how, "clone"))
		pid = clone(middle_child, stack + sizeof(stack), SIGCHLD, NULL);
	else
		pid = !strcmp(how, "_Fork") ? _Fork() : fork();
	if (!pid)
		middle_child(NULL);
	for (int i = 0; i < 500; i++)
		free(blocks[i]);
	for (int i = 0; i < 100; i++)
		opaque(malloc(70));
	hand_over(1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	await(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pid_t pid = -1;
	if (!strcmp(mode, "nothing"))
		return 0;
	if (strcmp(mode, "chain"))
		parent_blocks();
	if (!strcmp(mode, "fork"))
		pid = fork();
	else if (!strcmp(mode, "_Fork"))
		pid = _Fork();
	else if (!strcmp(mode, "clone"))
		pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	else if (!strcmp(mode, "spawn"))
		spawn(argv[0]);
	else if (!strcmp(mode, "vfork"))
		in_vfork(argv[0], 0);
	else if (!strcmp(mode, "vforkexec"))
		in_vfork(argv[0], 1);
	else if (!strcmp(mode, "threads"))
		with_threads();
	else if (!strcmp(mode, "chain"))
		exec_chain(argv[0], argc > 2 ? atoi(argv[2]) : 20);
	else if (!strcmp(mode, "middle"))
		middle(argv[2]);
	else if (!strcmp(mode, "daemon"))
		daemonize();
	else if (!strcmp(mode, "system"))
		say("system %d\n", system("echo in the shell; exit 3"));
	if (pid == 0) {
		child_work();
		exit(5);
	}
	if (pid > 0)
		reap(pid);
	say("done\n");
	return 0;
}
