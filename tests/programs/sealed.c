/* sealed learn LIST COMMAND...: runs the command and adds the numbers of the system calls that it makes to the file LIST
 * sealed before LIST COMMAND...: becomes the command, under a filter that kills for all others; with SEALED_PRELOAD as its LD_PRELOAD
 * sealed without LIST COMMAND...: under a filter that kills for these and for some that only a tool makes
 * sealed after LIST THREADS: installs the filter itself, lets so many threads begin, allocates in each and in deep stacks, and in a child
 * sealed work LIST THREADS: does the same without a filter
 * sealed try LIST: 6 if a filter can be installed here */
#include "test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define MOST 512

static unsigned char known[MOST];

static void read_list(const char *path)
{
	FILE *f = fopen(path, "r");
	int n;

	while (f && fscanf(f, "%d", &n) == 1)
		if (n >= 0 && n < MOST)
			known[n] = 1;
	if (f)
		fclose(f);
}

static void write_list(const char *path)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	for (int n = 0; n < MOST; n++)
		if (known[n])
			fprintf(f, "%d\n", n);
	fclose(f);
}

static void note_call(pid_t pid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
	    info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < MOST)
		known[info.entry.nr] = 1;
}

static int learn(const char *list, char **command)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
	int status, result = 99;
	pid_t child = fork(), pid;

	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(77);
		raise(SIGSTOP);
		execvp(command[0], command);
		_exit(78);
	}
	CHECK(waitpid(child, &status, 0) == child);
	if (!WIFSTOPPED(status))
		return 77;
	ptrace(PTRACE_SETOPTIONS, child, 0, options);
	ptrace(PTRACE_SYSCALL, child, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
		if (!WIFSTOPPED(status)) {
			if (pid == child)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
			continue;
		}
		if (sig == (SIGTRAP | 0x80))
			note_call(pid);
		ptrace(PTRACE_SYSCALL, pid, 0, sig == (SIGTRAP | 0x80) || sig == SIGTRAP || sig == SIGSTOP ? 0 : sig);
	}
	write_list(list);
	return result;
}

/* `kills`: for those that are known, else for all others. */
static int seal(int kills)
{
	static struct sock_filter filter[2 * MOST + 4];
	struct sock_fprog program = { 0, filter };
	size_t n = 0;

	known[SYS_futex] = !kills; /* who waits for whom differs */
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < MOST; i++)
		if (known[i]) {
			filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, i, 0, 1);
			filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
		}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, kills ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)n;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static __attribute__((noinline)) void dig(int depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (depth > 0)
		dig(depth - 1);
	else
		free(opaque(malloc(300)));
	room[1] = room[0];
}

static void *work(void *unused)
{
	for (int i = 0; i < 5000; i++)
		free(opaque(malloc(10 + i % 100)));
	for (int i = 0; i < 64; i++)
		dig(i);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	pid_t child;
	int n;

	if (argc < 3)
		return 2;
	read_list(argv[2]);
	if (!strcmp(argv[1], "try"))
		return seal(0) ? 7 : (syscall(SYS_exit_group, 6), 0);
	if (!strcmp(argv[1], "learn"))
		return learn(argv[2], argv + 3);
	if (!strcmp(argv[1], "before") || !strcmp(argv[1], "without")) {
		int kills = argv[1][0] == 'w';
		if (getenv("SEALED_PRELOAD"))
			setenv("LD_PRELOAD", getenv("SEALED_PRELOAD"), 1);
		known[SYS_process_vm_readv] |= kills;
		known[SYS_getppid] |= kills;
		known[SYS_execve] = !kills;
		CHECK(!seal(kills));
		execv(argv[3], argv + 3);
		return 3;
	}
	n = atoi(argv[3]);
	if (!strcmp(argv[1], "after"))
		CHECK(!seal(0));
	for (int i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, NULL));
	work(NULL);
	for (int i = 0; i < n; i++)
		CHECK(!pthread_join(threads[i], NULL));
	if ((child = fork()) == 0) {
		work(NULL);
		_exit(8);
	}
	CHECK(waitpid(child, &n, 0) == child && WIFEXITED(n) && WEXITSTATUS(n) == 8);
	say("done\n");
	return 5;
}
