#include "analyzer/recorder/exit_status.h"

#include "analyzer/util/system/pid_alive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As in <linux/pidfd.h>, which may be older than the kernel. */
struct pidfd_status {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};

#define PIDFD_STATUS      _IOWR(0xFF, 11, struct pidfd_status)
#define PIDFD_STATUS_EXIT (1ull << 3)

void exit_status_watch(struct record_process *p)
{
	if (p->number)
		return;
	p->number = pid_in_own_proc(p->pid, p->info->pid_ns, p->start);
#ifdef SYS_pidfd_open
	p->pidfd = p->number ? (int)syscall(SYS_pidfd_open, (pid_t)p->number, 0) : -1;
	/* whose number it was while it was opened */
	if (p->pidfd >= 0 && pid_in_own_proc(p->pid, p->info->pid_ns, p->start) != p->number) {
		close(p->pidfd);
		p->pidfd = -1;
	}
#endif
	p->number = p->number ? p->number : UINT32_MAX;
}

/* The last field of a zombie's stat. */
static bool ask_proc(const struct record_process *p, int *status)
{
	char path[64], text[1024];
	unsigned long long start;
	char state;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", p->number);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
	if (!end || !last ||
	    sscanf(end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state,
		   &start) != 2)
		return false;
	*status = (int)strtol(last, NULL, 10);
	return state == 'Z' && start == p->start;
}

static bool ask_pidfd(const struct record_process *p, int *status)
{
	struct pidfd_status s = { .mask = PIDFD_STATUS_EXIT };
	if (p->pidfd < 0 || ioctl(p->pidfd, PIDFD_STATUS, &s) || !(s.mask & PIDFD_STATUS_EXIT))
		return false;
	*status = s.exit_code;
	return true;
}

void exit_status_take(struct record_process *p)
{
	int status;
	bool wanted = p->number && p->number != UINT32_MAX && p->info->exit_kind == MT_EXIT_NONE;
	if (!wanted || !(ask_proc(p, &status) || ask_pidfd(p, &status)))
		return;
	p->info->exit_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	p->info->exit_kind = WIFSIGNALED(status) ? MT_EXIT_SIGNAL : MT_EXIT_CODE;
}
