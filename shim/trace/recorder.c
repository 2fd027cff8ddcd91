#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/config.h"
#include "shim/base/libc.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/trace/recorder.h"

#define STACK_BYTES (64 * 1024)
#define APART       (CLONE_VM | CLONE_VFORK | CLONE_UNTRACED)
#define SILENT_NS   5000000000ull /* a recorder that has not been round for so long is taken for dead */
#define START_NS    500000000ull  /* ... and who started one a moment ago waits until it is at work */
#define MAX_TRIES   3
#define RAW_MOST    (16ull << 20) /* of a session: then a recorder is wanted at once */
/* of memory that was asked for: then a recorder is wanted for what is resident of it ... */
#define ASKED_MUCH  (64ull << 20)
#define SOON_PART   4 /* ... in one block at once, else from this part of a second on */
#define ASKED_TIMES 4 /* so many times as much: at once, too, since there may be no event later */

#ifndef __WCLONE /* musl leaves it to <linux/wait.h> */
#define __WCLONE 0x80000000
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

uint64_t mt_recorder_due = UINT64_MAX;

static char program[PATH_MAX];
/* Nothing of the program's but what is meant for us, copied when it starts: its environment may change under our feet.
 * */
#define MAX_SETTINGS 20
static char settings[4096];
static char *recorder_env[MAX_SETTINGS + 3] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
static uint32_t tries, starting;
static uint64_t asked; /* bytes, in large blocks, until a recorder was wanted */

/* ---- in the clones, which share our memory: raw system calls on own stacks only ---- */

static int become_recorder(void *stack)
{
	char *argv[] = { program, "record", mt_process.session_path, NULL };
	/* the kernel's struct sigaction: handler, flags, restorer, mask */
	unsigned long by_default[4] = { 0, 0, 0, 0 };
	uint64_t none = 0;
	long fd;

	(void)stack;
	for (int sig = 1; sig < 65; sig++)
		MT_SYS4(SYS_rt_sigaction, sig, by_default, NULL, sizeof(none));
	MT_SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	if (mt_sys_failed(MT_SYS3(SYS_close_range, 0, ~0u, 0)))
		for (int i = 0; i < 1024; i++)
			MT_SYS1(SYS_close, i);
	fd = MT_SYS3(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	if (fd == 0) {
		MT_SYS3(SYS_dup3, 0, 1, 0);
		MT_SYS3(SYS_dup3, 0, 2, 0);
	}
	MT_SYS1(SYS_chdir, "/");
	MT_SYS3(SYS_execve, program, argv, recorder_env);
	MT_SYS1(SYS_exit_group, 127);
	return 0;
}

static int leave_family(void *stack)
{
	MT_SYS0(SYS_setsid);
	mt_libc()->clone(become_recorder, (char *)stack + STACK_BYTES, APART, NULL);
	MT_SYS1(SYS_exit_group, 0);
	return 0;
}

/* ---- in the target ---- */

static int would_come_back(void)
{
	int reaper = 0;

	MT_SYS2(SYS_prctl, PR_GET_CHILD_SUBREAPER, &reaper);
	return reaper || mt_quiet_pid() == 1;
}

static long name_of_namespace(const char *path, char name[32])
{
	return MT_SYS4(SYS_readlinkat, AT_FDCWD, path, name, 32);
}

/* After unshare or setns of pids the next child is the first process of the new namespace, and none can be made there
 * once it has ended: that is for the program's own. */
static int has_left_with_children(void)
{
	char own[32], theirs[32];
	long n = name_of_namespace("/proc/self/ns/pid", own);
	long m = name_of_namespace("/proc/self/ns/pid_for_children", theirs);

	/* before its first process is there the new one has no name (ENOENT) */
	return !mt_sys_failed(n) && (m == -ENOENT || (!mt_sys_failed(m) && (m != n || memcmp(own, theirs, (size_t)n))));
}

void mt_recorder_forbid(void)
{
	if (mt_process.session)
		__atomic_fetch_or(&mt_process.session->flags, MT_SESSION_NO_RECORDER, __ATOMIC_RELAXED);
}

/* The first clone. */
static struct launch {
	pid_t pid;       /* written by the kernel before it runs; 0 = we have waited for it */
	uint32_t number; /* of this launch */
	uint32_t by;     /* pid of the process that launches; 0 = it is over */
	uint32_t ended;  /* launches that are over */
} launch;

uint32_t mt_recorder_launches(void)
{
	return __atomic_load_n(&launch.ended, __ATOMIC_ACQUIRE);
}

/* Of a launch that was over before the wait it can't be the clone, and the number is somebody else's. A wait that has
 * collected nobody may be asked again at no harm, so it is where there was a launch beside it. */
int mt_recorder_was_met(pid_t met, uint32_t before)
{
	uint32_t by = __atomic_load_n(&launch.by, __ATOMIC_ACQUIRE);

	if (met > 0)
		return met == __atomic_load_n(&launch.pid, __ATOMIC_RELAXED) &&
		       before == __atomic_load_n(&launch.number, __ATOMIC_RELAXED);
	return met == 0 && ((by && by == mt_quiet_pid()) || before != mt_recorder_launches());
}

static void launch_begins(void)
{
	launch.number = launch.ended;
	__atomic_store_n(&launch.by, mt_quiet_pid(), __ATOMIC_RELAXED);
}

/* release pairs with mt_recorder_launches() */
static void launch_ends(int collected)
{
	if (collected)
		__atomic_store_n(&launch.pid, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&launch.ended, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&launch.by, 0, __ATOMIC_RELEASE); /* last: there is no moment without either */
}

static void start(void)
{
	char *stacks = mt_sys_pages(2 * STACK_BYTES);
	int kept = errno, child, status;
	uint64_t signals;
	long done = 0;

	if (!stacks)
		return;
	mt_sys_block_signals(&signals);
	launch_begins();
	child = mt_libc()->clone(leave_family, stacks + 2 * STACK_BYTES, APART | CLONE_PARENT_SETTID, stacks,
				 &launch.pid);
	/* it has exited already; a clone without exit signal is only seen by a wait that asks for it */
	if (child > 0)
		done = MT_SYS4(SYS_wait4, child, &status, __WCLONE, NULL);
	launch_ends(done == child);
	mt_sys_restore_signals(&signals);
	mt_sys_unmap(stacks, 2 * STACK_BYTES);
	errno = kept;
}

static int seems_alive(const struct mt_session *s)
{
	uint64_t beat = __atomic_load_n(&s->recorder_beat_ns, __ATOMIC_RELAXED);

	return __atomic_load_n(&s->recorder_pid, __ATOMIC_RELAXED) && mt_clock_ns(CLOCK_MONOTONIC) - beat < SILENT_NS;
}

static uint64_t second(void)
{
	return mt_clock == MT_ARCH_CLOCK ? mt_arch_second() : 1000000000;
}

/* Of many processes that come at once only one starts it. */
static int is_starting(const struct mt_session *s)
{
	return mt_clock_ns(CLOCK_MONOTONIC) - __atomic_load_n(&s->recorder_beat_ns, __ATOMIC_RELAXED) < START_NS;
}

void mt_recorder_want(void)
{
	struct mt_session *s = mt_process.session;
	uint32_t idle = 0;

	mt_recorder_due = UINT64_MAX;
	if (!s || (s->flags & (MT_SESSION_NO_RECORDER | MT_SESSION_SUPERVISED)) || mt_process_sandboxed() ||
	    !mt_process_is_owner() || tries >= MAX_TRIES || seems_alive(s) || !program[0])
		return;
	if (is_starting(s)) {
		mt_recorder_due = mt_ticks() + second();
		return;
	}
	if (!__atomic_compare_exchange_n(&starting, &idle, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (!would_come_back() && !has_left_with_children()) {
		tries++;
		__atomic_store_n(&s->recorder_beat_ns, mt_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
		start();
	}
	__atomic_store_n(&starting, 0, __ATOMIC_RELEASE);
}

/* In a session that is older than that, or has grown large, at once: its other processes may wait for their children,
 * and nothing else. */
void mt_recorder_start_timer(void)
{
	const struct mt_session *s = mt_process.session;
	uint64_t raw = __atomic_load_n(&s->used_bytes, __ATOMIC_RELAXED) -
		       ((uint64_t)__atomic_load_n(&s->trace_mib, __ATOMIC_RELAXED) << 20);

	if (would_come_back())
		mt_recorder_forbid();
	tries = 0;
	starting = 0;
	mt_recorder_due = raw > RAW_MOST ? 0 : s->start_ticks + second();
}

void mt_recorder_hurry(void)
{
	if (mt_recorder_due != UINT64_MAX)
		mt_recorder_due = 0;
}

void mt_recorder_weigh_large(uint64_t bytes)
{
	const struct mt_session *s = mt_process.session;
	uint64_t soon, all;

	if (mt_recorder_due == UINT64_MAX || !s)
		return; /* it was wanted, or nothing is recorded */
	all = __atomic_add_fetch(&asked, bytes, __ATOMIC_RELAXED);
	soon = bytes >= ASKED_MUCH || all >= ASKED_TIMES * ASKED_MUCH ? 0 : s->start_ticks + second() / SOON_PART;
	if (all >= ASKED_MUCH && soon < mt_recorder_due)
		mt_recorder_due = soon;
}

static void keep_settings(void)
{
	char *at = settings;
	int n = 2;

	for (char **e = environ; e && *e && n < MAX_SETTINGS + 2; e++) {
		size_t bytes = strlen(*e) + 1;
		if (strncmp(*e, "MEMTRACE_", 9) || bytes > (size_t)(settings + sizeof(settings) - at))
			continue;
		memcpy(at, *e, bytes);
		recorder_env[n++] = at;
		at += bytes;
	}
	recorder_env[n] = NULL;
}

static int try_program(const char *dir, size_t dir_bytes, const char *name)
{
	if (dir_bytes + strlen(name) + 1 > sizeof(program))
		return 0;
	memcpy(program, dir, dir_bytes);
	strcpy(program + dir_bytes, name);
	if (!mt_sys_failed(MT_SYS4(SYS_faccessat, AT_FDCWD, program, X_OK, 0)))
		return 1;
	program[0] = 0;
	return 0;
}

/* Beside the library in a build tree, in ../bin when installed, in ../../bin from Debian's lib/TRIPLET. */
void mt_recorder_boot(void)
{
	static char path[PATH_MAX];
	Dl_info self;
	const char *slash;

	if ((mt_process.session->flags & (MT_SESSION_NO_RECORDER | MT_SESSION_SUPERVISED)) || mt_sys_quiet())
		return; /* it would be killed, too */
	keep_settings();
	if (!mt_libc()->dladdr((void *)(uintptr_t)mt_recorder_boot, &self) ||
	    !mt_libc()->realpath(self.dli_fname, path))
		return;
	slash = strrchr(path, '/');
	if (slash && !try_program(path, (size_t)(slash - path), "/memtrace") &&
	    !try_program(path, (size_t)(slash - path), "/../bin/memtrace") &&
	    !try_program(path, (size_t)(slash - path), "/../../bin/memtrace"))
		mt_say("no recorder beside ", path);
	if (asked >= ASKED_MUCH)
		mt_recorder_due = 0; /* by constructors before ours */
}
