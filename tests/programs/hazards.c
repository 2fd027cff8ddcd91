/*
 * What may go wrong around an allocation. After it, all modes allocate as many blocks as before it: hazards MODE [ARGUMENT]
 *
 *   chroot FOLDER  no file can be found any more
 *   cancel         a thread that is cancelled already allocates, frees, maps: none of these is a point to end at; then it ends
 *   memlock        locks all that it has and will have, of which there may be little
 *   sharer         clone with CLONE_VM: a process that has our memory and thread-local variables, and a pid of its own
 *   exec COUNT     in an image of its own with system calls forbidden before it starts: they fail with EPERM
 *   silent         a thread that ends by a system call: no destructor of it runs
 *   stop           stops and is continued by its child
 *   overflow       a thread without stack left: its handler jumps out, again and again
 */
#include "test.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define COUNT 30000 /* some chunks of events */

static __attribute__((noinline)) int work(void)
{
	for (int i = 0; i < COUNT; i++) {
		char *p = opaque(malloc(1 + i % 500));
		if (!p)
			return 0;
		p[0] = 1;
		free(p);
	}
	return 1;
}

static void *thread(void *(*f)(void *), size_t stack)
{
	pthread_attr_t attr;
	pthread_t id;
	void *result = NULL;

	CHECK(!pthread_attr_init(&attr) && (!stack || !pthread_attr_setstacksize(&attr, stack)));
	CHECK(!pthread_create(&id, &attr, f, NULL) && !pthread_join(id, &result));
	return result;
}

/* ---- cancelled ---- */

static volatile int reached;

static void *cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	work();
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 4096);
	free(opaque(realloc(opaque(malloc(10)), 100)));
	reached = 1;
	pthread_testcancel();
	reached = 2;
	return unused;
}

/* ---- memory that must stay ---- */

static void lock_all(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	struct rlimit little = { 8 << 20, 8 << 20 };

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &little) && !syscall(SYS_capset, &head, none));
	CHECK(!mlockall(MCL_FUTURE));
}

/* ---- a process in our memory ---- */

static int share(void *result)
{
	*(int *)result = work();
	syscall(SYS_exit, 0);
	return 0;
}

static void sharer(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	int ok = 0, status;
	pid_t child = clone(share, stack + sizeof(stack), CLONE_VM | SIGCHLD, &ok);

	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0 && ok);
}

/* ---- system calls that fail ---- */

#define FAIL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void forbid(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FAIL(fallocate), FAIL(madvise), FAIL(pwrite64), FAIL(statfs), FAIL(faccessat), FAIL(readlinkat), FAIL(clone), FAIL(clone3),
		FAIL(futex), FAIL(sigaltstack), FAIL(uname), FAIL(mkdirat),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- threads that end silently ---- */

static volatile int gone;

static void *end_silently(void *unused)
{
	work();
	gone = 1;
	syscall(SYS_exit, 0);
	return unused;
}

static void silent(void)
{
	pthread_t id;

	CHECK(!pthread_create(&id, NULL, end_silently, NULL) && !pthread_detach(id));
	while (!gone)
		sched_yield();
}

/* ---- stopped ---- */

static void stop(void)
{
	pid_t us = getpid(), child = fork();
	int status;
	char path[64], state = 0;

	if (!child) {
		snprintf(path, sizeof(path), "/proc/%d/stat", us);
		while (state != 'T') {
			char text[256] = "";
			int fd = open(path, O_RDONLY);
			if (read(fd, text, sizeof(text) - 1) > 0 && strrchr(text, ')'))
				state = strrchr(text, ')')[2];
			close(fd);
		}
		_exit(kill(us, SIGCONT) != 0);
	}
	raise(SIGSTOP);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- no stack left ---- */

static sigjmp_buf out;
static volatile int jumps;

static void jump(int sig)
{
	(void)sig;
	jumps++;
	siglongjmp(out, 1);
}

/* A page is needed to go deeper and no more than a hook has of it to allocate: what overflows is this function. */
static __attribute__((noinline)) int deeper(int n)
{
	char page[8192];

	memset(opaque(page), n, sizeof(page));
	free(opaque(malloc(10 + (size_t)n)));
	return n < 1000000 ? deeper(n + 1) + *(char *)opaque(page) : 0;
}

static void *overflow(void *unused)
{
	static char stack[65536];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = jump, .sa_flags = SA_ONSTACK | SA_NODEFER };

	CHECK(!sigaltstack(&alt, NULL) && !sigaction(SIGSEGV, &sa, NULL));
	for (volatile int i = 0; i < 200; i++) {
		if (!sigsetjmp(out, 1))
			deeper(0);
		work();
		i += 19;
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "exec")) {
		forbid();
		execl(argv[0], argv[0], "plain", NULL);
		return 1;
	}
	CHECK(work());
	if (!strcmp(mode, "chroot"))
		CHECK(!chroot(argv[2]) && !chdir("/"));
	else if (!strcmp(mode, "cancel"))
		CHECK(thread(cancelled, 0) == PTHREAD_CANCELED && reached == 1);
	else if (!strcmp(mode, "memlock"))
		lock_all();
	else if (!strcmp(mode, "sharer"))
		sharer();
	else if (!strcmp(mode, "silent"))
		silent();
	else if (!strcmp(mode, "stop"))
		stop();
	else if (!strcmp(mode, "overflow"))
		thread(overflow, 256 << 10);
	CHECK(work());
	say("done, %d jumps\n", jumps);
	return 0;
}
