/* seccomped MODE COUNT: a filter that kills whoever opens a file, makes a process or a socket; then COUNT allocations.
 * MODE: early = before the first allocation of main, late = after 20,000, called = the same, by prctl's number, strict = SECCOMP_MODE_STRICT, threads = a filter that lets threads begin, and
 * eight of them do so then */
#include "test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define DENY(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_open
	DENY(open), DENY(creat), DENY(fork), DENY(vfork), DENY(unlink), DENY(mkdir),
#endif
	DENY(openat), DENY(clone), DENY(clone3), DENY(execve), DENY(execveat), DENY(socket), DENY(memfd_create), DENY(unlinkat),
	DENY(mkdirat), DENY(ftruncate), DENY(fallocate), DENY(openat2),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void work(int n)
{
	for (int i = 0; i < n; i++)
		free(opaque(malloc(10 + i % 100)));
}

static void *thread(void *count)
{
	work(*(int *)count);
	return NULL;
}

static void work_in_threads(int n)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, &n));
	for (int i = 0; i < 8; i++)
		CHECK(!pthread_join(t[i], NULL));
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };
	int threads = argc > 2 && !strcmp(argv[1], "threads");
	if (argc < 3)
		return 2;
	for (size_t i = 0; i < sizeof(filter) / sizeof(*filter) && threads; i++)
		if (filter[i].code == (BPF_JMP | BPF_JEQ | BPF_K) && (filter[i].k == SYS_clone || filter[i].k == SYS_clone3))
			filter[i].k = -1; /* no system call */
	if (strcmp(argv[1], "early"))
		work(20000);
	if (!strcmp(argv[1], "strict")) {
		free(malloc(100));
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	} else {
		CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		if (!strcmp(argv[1], "called"))
			CHECK(!syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
		else
			CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	}
	if (threads)
		work_in_threads(atoi(argv[2]));
	work(atoi(argv[2]));
	say("survived\n");
	syscall(SYS_exit, 6);
}
