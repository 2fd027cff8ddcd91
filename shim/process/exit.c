/*
 * How a process and its children end.
 *
 * A vfork child runs these hooks in its parent's memory: what would tell the parent's end is skipped there
 * (mt_process_is_owner), since only the pid differs.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/output_name.h"
#include "shim/base/holders.h"
#include "shim/base/log.h"
#include "shim/base/quiet.h"
#include "shim/base/state.h"
#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"
#include "shim/host/new.h"
#include "shim/process/life.h"
#include "shim/process/relocate.h"
#include "shim/stack/modules.h"
#include "shim/trace/record.h"
#include "shim/trace/recorder.h"

MT_EXPORT _Noreturn void _exit(int status)
{
	mt_holders_leave();
	mt_life_ends(MT_EXIT_CODE, status & 0xff);
	if (mt_real._exit)
		mt_real._exit(status); /* another library's, maybe */
	MT_SYS1(SYS_exit_group, status);
	__builtin_unreachable();
}

MT_EXPORT _Noreturn void _Exit(int status)
{
	mt_life_ends(MT_EXIT_CODE, status & 0xff);
	if (mt_real._Exit)
		mt_real._Exit(status);
	MT_SYS1(SYS_exit_group, status);
	__builtin_unreachable();
}

MT_EXPORT _Noreturn void quick_exit(int status)
{
	mt_life_ends(MT_EXIT_CODE, status & 0xff);
	if (MT_READY(quick_exit))
		mt_real.quick_exit(status);
	_exit(status);
}

MT_EXPORT _Noreturn void abort(void)
{
	mt_life_ends(MT_EXIT_SIGNAL, SIGABRT);
	if (MT_READY(abort))
		mt_real.abort();
	mt_arch_syscall(SYS_kill, mt_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
	__builtin_unreachable();
}

/* ---- exec ---- */

static const char *fd_path(char path[32], int fd)
{
	mt_put_number(mt_put(path, path + 32, "/proc/self/fd/"), path + 32, fd < 0 ? 0 : (unsigned)fd);
	return fd < 0 ? NULL : path;
}

#define EXEC(name, params, args, path, searched, envp) \
	MT_EXPORT int name params \
	{ \
		struct mt_leaving leaving; \
		int ret; \
		if (!MT_READY(name)) \
			return errno = ENOSYS, -1; \
		leaving = mt_life_execs(path, searched, envp); \
		ret = mt_real.name args; \
		mt_life_goes_on(leaving); \
		return ret; \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), path, 0, envp)
EXEC(execv, (const char *path, char *const argv[]), (path, argv), path, 0, environ)
EXEC(execvp, (const char *file, char *const argv[]), (file, argv), file, 1, environ)
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp), file, 1, envp)
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp), fd_path((char[32]){ 0 }, fd), 0, envp)

/* ---- children ---- */

static void note_child(pid_t pid, int status)
{
	struct mt_rec_child rec = { .pid = (uint32_t)pid };

	if (WIFEXITED(status)) {
		rec.kind = MT_EXIT_CODE;
		rec.code = WEXITSTATUS(status);
	} else if (WIFSIGNALED(status)) {
		rec.kind = MT_EXIT_SIGNAL;
		rec.code = WTERMSIG(status);
	}
	if (rec.kind && mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner())
		mt_log_add(MT_REC_CHILD, (struct mt_part[]){ { &rec, sizeof(rec) } }, 1);
}

#ifndef __WALL /* musl leaves them to <linux/wait.h> */
#define __WALL   0x40000000
#define __WCLONE 0x80000000
#endif

#define COLLECTED(ret, info, options) ((ret) ? -1 : (options) & WNOWAIT ? 0 : (info)->si_pid)

/* Evaluates a wait, and again while the child that it found is ours; `met` is whom it has collected, of the result
 * `ret`. The tries are counted: a launch may hang. */
#define WITHOUT_OURS(call, met, options) \
	({ \
		__typeof__(call) ret; \
		uint32_t before; \
		int left = (unsigned)(options) & (__WALL | __WCLONE) ? 100000 : 0; \
		do { \
			before = mt_recorder_launches(); \
			ret = (call); \
		} while (left-- && mt_recorder_was_met((pid_t)(met), before)); \
		ret; \
	})

/* Where nothing is recorded it ends with a jump, and no frame of ours is in what the real one may report. */
#define WAIT(name, params, args, how) \
	static __attribute__((noinline)) pid_t noting_##name params \
	{ \
		int mine = 0; \
		pid_t pid; \
		if (!status) \
			status = &mine; \
		pid = WITHOUT_OURS(mt_real.name args, ret, how); \
		if (pid > 0) \
			note_child(pid, *status); \
		return pid; \
	} \
	MT_EXPORT pid_t name params \
	{ \
		if (!MT_READY(name)) \
			return errno = ECHILD, -1; \
		return mt_process_state() == MT_STATE_OFF ? mt_real.name args : noting_##name args; \
	}

WAIT(wait, (int *status), (status), 0)
WAIT(waitpid, (pid_t id, int *status, int options), (id, status, options), options)
WAIT(wait3, (int *status, int options, struct rusage *usage), (status, options, usage), options)
WAIT(wait4, (pid_t id, int *status, int options, struct rusage *usage), (id, status, options, usage), options)

MT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	siginfo_t mine = { 0 };
	int result;

	if (!MT_READY(waitid))
		return errno = ECHILD, -1;
	if (mt_process_state() == MT_STATE_OFF)
		return mt_real.waitid(type, id, info, options);
	result = WITHOUT_OURS(mt_real.waitid(type, id, info ? info : &mine, options),
			      COLLECTED(ret, info ? info : &mine, options), options);
	if (result == 0 && info && info->si_pid && !(options & WNOWAIT)) {
		if (info->si_code == CLD_EXITED)
			note_child(info->si_pid, (info->si_status & 0xff) << 8);
		else if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)
			note_child(info->si_pid, info->si_status & 0x7f);
	}
	return result;
}

/* By syscall(), for which see syscall.S: the number comes first. */
long mt_syscall_wait4(long number, pid_t id, int *status, long options, struct rusage *usage);
long mt_syscall_wait4(long number, pid_t id, int *status, long options, struct rusage *usage)
{
	if (!MT_READY(syscall))
		return errno = ENOSYS, -1;
	return WITHOUT_OURS(mt_real.syscall(number, (long)id, status, options, usage), ret, options);
}

long mt_syscall_waitid(long number, int type, id_t id, siginfo_t *info, long options, struct rusage *usage);
long mt_syscall_waitid(long number, int type, id_t id, siginfo_t *info, long options, struct rusage *usage)
{
	siginfo_t mine = { 0 };

	if (!MT_READY(syscall))
		return errno = ENOSYS, -1;
	return WITHOUT_OURS(mt_real.syscall(number, (long)type, (long)id, info ? info : &mine, options, usage),
			    COLLECTED(ret, info ? info : &mine, options), options);
}

/* What fork() does without its handlers. */
MT_EXPORT pid_t _Fork(void)
{
	pid_t pid;

	if (!MT_READY(_Fork))
		return errno = ENOSYS, -1;
	mt_life_before_fork();
	pid = mt_real._Fork();
	if (pid)
		mt_life_after_fork();
	else
		mt_life_forked();
	return pid;
}

struct start {
	int (*run)(void *);
	void *arg;
};

/* A child that has memory of its own: its parent's frame is in it. */
static int run_forked(void *start)
{
	struct start s = *(const struct start *)start;

	mt_life_forked();
	return s.run(s.arg);
}

/* What the caller left out is passed on as whatever lies in its place, as libc itself reads it. */
MT_EXPORT int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
	va_list rest;
	pid_t *parent, *child;
	void *tls;
	int pid;

	va_start(rest, arg);
	parent = va_arg(rest, pid_t *);
	tls = va_arg(rest, void *);
	child = va_arg(rest, pid_t *);
	va_end(rest);
	if (!MT_READY(clone))
		return errno = ENOSYS, -1;
	if ((flags & CLONE_VM) && !(flags & (CLONE_SETTLS | CLONE_VFORK)))
		mt_record_share();
	if (flags & CLONE_VM)
		return mt_real.clone(run, stack, flags, arg, parent, tls, child);
	mt_life_before_fork();
	if (mt_sys_quiet() && run && stack)
		pid = mt_real.clone(run_forked, stack, flags, &(struct start){ run, arg }, parent, tls, child);
	else
		pid = mt_real.clone(run, stack, flags, arg, parent, tls, child);
	mt_life_after_fork(); /* the child is in run() */
	return pid;
}

#define SPAWN(name, searched) \
	MT_EXPORT int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, \
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) \
	{ \
		pid_t mine = 0; \
		int ret; \
		if (!MT_READY(name)) \
			return ENOSYS; \
		pid = pid ? pid : &mine; \
		ret = mt_real.name(pid, path, actions, attr, argv, envp); \
		if (!ret) \
			mt_life_started((uint32_t)*pid, path, searched, envp); \
		return ret; \
	}

SPAWN(posix_spawn, 0)
SPAWN(posix_spawnp, 1)

/* ---- modules ---- */

MT_EXPORT int dlclose(void *handle)
{
	int ret, kept;

	if (!MT_READY(dlclose))
		return -1;
	ret = mt_real.dlclose(handle);
	kept = errno;
	if (mt_process_state() == MT_STATE_ACTIVE && mt_process_is_owner())
		mt_modules_check();
	mt_relocate_later();
	mt_wrap_forget();
	mt_new_forget();
	errno = kept;
	return ret;
}

/* ---- rights ---- */

/* To another user than the process's, and not to root's. */
static int drops(uid_t to)
{
	return to != (uid_t)-1 && to != 0 && to != (uid_t)MT_SYS0(SYS_geteuid);
}

#define RIGHTS(name, params, args, lost) \
	MT_EXPORT int name params \
	{ \
		if (!MT_READY(name)) \
			return errno = ENOSYS, -1; \
		if (lost) \
			mt_life_before_drop(); \
		return mt_real.name args; \
	}

RIGHTS(setuid, (uid_t uid), (uid), drops(uid))
RIGHTS(seteuid, (uid_t uid), (uid), drops(uid))
RIGHTS(setreuid, (uid_t real, uid_t uid), (real, uid), drops(uid))
RIGHTS(setresuid, (uid_t real, uid_t uid, uid_t saved), (real, uid, saved), drops(uid))
RIGHTS(chroot, (const char *path), (path), 1)

/* ---- sandboxes ---- */

/* Strict mode also takes the time stamp counter away, and with it every clock that needs no system call. */
static void before_seccomp(int strict, const void *filter)
{
	int kept = errno;

	if (!strict && !filter)
		return; /* EFAULT: it asks what the kernel can do */
	if (strict) {
		mt_process_off();
		mt_quiet_whole();
	} else {
		mt_life_before_sandbox();
	}
	errno = kept;
}

/* By whichever way it is called. */
static void before_prctl(long option, unsigned long a, unsigned long b)
{
	if (option == PR_SET_SECCOMP)
		before_seccomp(a == SECCOMP_MODE_STRICT, (const void *)b);
	if (option == PR_SET_CHILD_SUBREAPER && a)
		mt_recorder_forbid();
	if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
		mt_process_off();
}

/* libc declares it with an ellipsis; all five arguments are registers either way. */
MT_EXPORT int mt_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) __asm__("prctl");
int mt_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	before_prctl(option, a, b);
	if (MT_READY(prctl))
		return mt_real.prctl(option, a, b, c, d);
	return errno = ENOSYS, -1;
}

/* Called by the assembly of syscall.S with the arguments of syscall(). */
void mt_before_prctl(long number, long option, unsigned long a, unsigned long b);
void mt_before_prctl(long number, long option, unsigned long a, unsigned long b)
{
	(void)number;
	before_prctl((int)option, a, b);
}

void mt_before_seccomp(long number, long operation, long flags, const void *filter);
void mt_before_seccomp(long number, long operation, long flags, const void *filter)
{
	(void)number;
	(void)flags;
	if (operation != SECCOMP_GET_ACTION_AVAIL && operation != SECCOMP_GET_NOTIF_SIZES)
		before_seccomp(operation == SECCOMP_SET_MODE_STRICT, filter);
}

/* As with chroot, files of the trace can't be opened afterwards. */
void mt_before_landlock(void);
void mt_before_landlock(void)
{
	mt_life_before_drop();
}

void *mt_real_syscall(void);
void *mt_real_syscall(void)
{
	return MT_READY(syscall) ? (void *)(uintptr_t)mt_real.syscall : NULL;
}
