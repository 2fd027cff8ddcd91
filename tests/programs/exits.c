/* exits MODE: ways to end, each after 1,000 blocks of 50 bytes, with exit handlers that allocate. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

__attribute__((noinline)) static void before(void)
{
	for (int i = 0; i < 1000; i++)
		opaque(malloc(50));
}

__attribute__((noinline)) static void in_atexit(void)
{
	for (int i = 0; i < 10; i++)
		opaque(malloc(60));
	say("atexit\n");
}

__attribute__((noinline)) static void in_quick_exit(void)
{
	for (int i = 0; i < 10; i++)
		opaque(malloc(70));
	say("at_quick_exit\n");
}

__attribute__((destructor)) static void in_destructor(void)
{
	for (int i = 0; i < 10; i++)
		opaque(malloc(80));
	say("destructor\n");
}

static void *exit_in_thread(void *arg)
{
	exit(arg ? 6 : 5);
}

static void *linger(void *arg)
{
	usleep(20000);
	before();
	return arg;
}

static void by_signal(int sig)
{
	raise(sig);
	pause();
}

static int execute(char *self, const char *path)
{
	execl(path, self, "return", NULL);
	return errno == ENOENT ? 3 : 4;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t t;
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	atexit(in_atexit);
	at_quick_exit(in_quick_exit);
	before();
	if (!strcmp(mode, "return"))
		return 7;
	if (!strcmp(mode, "exit"))
		exit(8);
	if (!strcmp(mode, "_exit"))
		_exit(9);
	if (!strcmp(mode, "_Exit"))
		_Exit(10);
	if (!strcmp(mode, "exit_group"))
		syscall(SYS_exit_group, 11);
	if (!strcmp(mode, "quick_exit"))
		quick_exit(12);
	if (!strcmp(mode, "abort"))
		abort();
	if (!strcmp(mode, "segv"))
		*(volatile int *)opaque(NULL) = 1;
	if (!strcmp(mode, "term"))
		by_signal(SIGTERM);
	if (!strcmp(mode, "kill"))
		by_signal(SIGKILL);
	if (!strcmp(mode, "exec"))
		return execute(argv[0], "/proc/self/exe");
	if (!strcmp(mode, "execfail"))
		return execute(argv[0], "/nonexistent");
	if (!strcmp(mode, "thread")) {
		pthread_create(&t, NULL, exit_in_thread, NULL);
		pause();
	}
	if (!strcmp(mode, "pthread_exit")) {
		pthread_create(&t, NULL, linger, NULL);
		pthread_exit(NULL);
	}
	return 2;
}
