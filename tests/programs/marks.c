/* Marks of every kind, from threads and forked children. What is expected in the trace is in tests/cases/marks.py.
 *
 *   marks basic | threads | fork | names N | long | signals | paused */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "memtrace.h"
#include "test.h"

static void basic(void)
{
	void *block = malloc(1000);

	errno = 77;
	memtrace_mark("begin");
	memtrace_phase_begin("outer");
	for (unsigned long i = 0; i < 3; i++) {
		memtrace_step(i);
		memtrace_phase_begin("inner");
		memtrace_phase_end("inner");
	}
	memtrace_label(block, "parameters:block");
	memtrace_label(NULL, "nothing");
	memtrace_mark(NULL);
	memtrace_mark("");
	memtrace_phase_end(NULL);
	CHECK(errno == 77);
	say("BLOCK %p\n", block);
	free(block);
}

/* All threads use the same names, so each is met by several at once. */
static void *work(void *unused)
{
	char name[32];

	(void)unused;
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		memtrace_mark(name);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, work, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void in_child(const char *name)
{
	memtrace_mark("both");
	memtrace_mark(name);
	memtrace_phase_end("whole");
	_exit(0);
}

/* The raw clone skips all fork handlers, and its first event is a mark. */
static void forks(void)
{
	pid_t pid;

	memtrace_phase_begin("whole");
	memtrace_mark("parent");
	memtrace_mark("both");
	if ((pid = fork()) == 0)
		in_child("fork");
	wait_for(pid);
	if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0)
		in_child("clone");
	wait_for(pid);
	memtrace_mark("after");
}

static void names(int n)
{
	char name[32];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		memtrace_mark(name);
	}
	memtrace_mark("name 7");
}

/* 1023 bytes, and a character that lies across the end. */
static void long_names(void)
{
	static char text[4096];

	memset(text, 'x', 1500);
	memtrace_mark(text);
	memset(text, 'y', 1022);
	memcpy(text + 1022, "\xe2\x82\xac", 4);
	memtrace_mark(text);
	memtrace_mark("plain \"quoted\" \\ \n \x01 gr\xc3\xbc\xc3\x9f");
}

static void on_alarm(int sig)
{
	static char name[32];
	static int n;

	(void)sig;
	snprintf(name, sizeof(name), "signal %d", n++ % 50);
	memtrace_mark(name);
}

/* Handlers that interrupt marks and allocations. */
static void signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec every = { { 0, 200000 }, { 0, 200000 } };
	char name[32];

	sigaction(SIGUSR1, &action, NULL);
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &every, NULL));
	for (int i = 0; i < 40000; i++) {
		snprintf(name, sizeof(name), "name %d", i % 5000);
		memtrace_mark(name);
		free(malloc(10));
	}
	timer_delete(timer);
}

static void mark_in_child(const char *text)
{
	pid_t child = fork();

	if (child == 0) {
		memtrace_mark(text);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

static void paused(void)
{
	memtrace_mark("unseen");
	mark_in_child("unseen by a child");
	memtrace_start();
	memtrace_mark("seen");
	mark_in_child("seen by a child");
	memtrace_stop();
	memtrace_mark("unseen too");
	mark_in_child("unseen by a child too");
	memtrace_start();
	memtrace_mark("seen again");
}

enum { STEPS = 100, FIRST = 20480, SECOND = 10240 };

static void *keep_first(void) { return malloc(FIRST); }
static void *keep_second(void) { return malloc(SECOND); }

/* Two sites keep a block each step until the end; then all but the oldest of each is freed. */
static void grow(void)
{
	static void *volatile kept[STEPS][2];
	for (int i = 0; i < STEPS; i++) {
		memtrace_step(i + 1);
		kept[i][0] = keep_first();
		kept[i][1] = keep_second();
		for (int k = 0; k < 100; k++)
			free(malloc(4000));
	}
	for (int i = 1; i < STEPS; i++)
		for (int k = 0; k < 2; k++)
			free(kept[i][k]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "basic"))
		basic();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "fork"))
		forks();
	else if (!strcmp(what, "names"))
		names(argc > 2 ? atoi(argv[2]) : 10);
	else if (!strcmp(what, "long"))
		long_names();
	else if (!strcmp(what, "signals"))
		signals();
	else if (!strcmp(what, "paused"))
		paused();
	else if (!strcmp(what, "grow"))
		grow();
	else
		return 2;
	return 0;
}
