#include "analyzer/attach/inject.h"
#include "analyzer/attach/arch.h"
#include "analyzer/attach/place.h"
#include "analyzer/util/error.h"
#include "analyzer/util/ticks.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND       1000000000ull
#define LOOK_FOR     (15 * SECOND) /* for a safe place */
#define STOP_WITHIN  (SECOND / 2)  /* a thread in an uninterruptible call does not */
#define CALL_WITHIN  (30 * SECOND)
#define LOCK_WITHIN  (2 * SECOND) /* the loader's, which another thread took at the last moment */
#define MOST_THREADS 4096

enum { EVENT_STOP = 128 }; /* PTRACE_EVENT_STOP */

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* For tests: where to die. */
static void step(int number)
{
	const char *at = getenv("TEST_ATTACH_DIES_AT");
	if (at && strtol(at, NULL, 10) == number)
		kill(getpid(), SIGKILL);
}

/* ---- waiting for a thread, with an end ---- */

static void wake(int number)
{
	(void)number;
}

/* A wait is interrupted now and then, so that the time is looked at. */
static void clock_runs(bool on)
{
	struct itimerval often = { { 0, on ? 50000 : 0 }, { 0, on ? 50000 : 0 } };
	struct sigaction action = { .sa_handler = on ? wake : SIG_DFL };
	if (on)
		sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	if (!on)
		sigaction(SIGALRM, &action, NULL);
}

/* Its next stop. False: it has ended, or not stopped in time. */
static bool next_stop(pid_t tid, uint64_t until, int *status)
{
	for (;;) {
		pid_t got = waitpid(tid, status, __WALL);
		if (got == tid)
			return WIFSTOPPED(*status);
		if (got < 0 && errno != EINTR)
			return false;
		if (ticks_mono_ns() > until)
			return false;
	}
}

static bool is_event_stop(int status)
{
	return status >> 16 == EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

static bool is_group_stop(int status)
{
	return status >> 16 == EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
}

static bool is_syscall_stop(int status)
{
	return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/* ---- stopping and leaving ---- */

/* Stopped, with its registers read; else it is not traced any more. *group: the program was stopped by a signal. */
static bool stop(pid_t tid, struct arch_thread *thread, bool *group)
{
	int status;
	uint64_t until = ticks_mono_ns() + STOP_WITHIN;
	*group = false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD))
		return false;
	step(1);
	arch_look(tid, thread);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return false;
	while (next_stop(tid, until, &status)) {
		if (is_event_stop(status) && arch_save(tid, thread))
			return true;
		if (status >> 16 == EVENT_STOP) {
			*group = is_group_stop(status);
			ptrace(PTRACE_DETACH, tid, NULL, 0);
			return false;
		}
		if (ptrace(PTRACE_CONT, tid, NULL, WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status)))
			return false;
	}
	/* it can't be let go before it stops: whoever traces it ends with us, and it goes on then */
	return false;
}

/* ---- the call ---- */

/* In the stop before sigreturn, or one in which the call has failed: the thread goes back, and stops once more in the
 * kernel, where all is put in its place. */
static bool come_back(pid_t tid, const struct arch_thread *thread)
{
	int status;
	if (!arch_go_back(tid, thread))
		return false;
	step(6);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || ptrace(PTRACE_CONT, tid, NULL, 0) ||
	    !next_stop(tid, ticks_mono_ns() + SECOND, &status))
		return false;
	step(7);
	arch_let_go(tid, thread, status >> 16 || is_syscall_stop(status) ? 0 : WSTOPSIG(status));
	return true;
}

static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGSYS;
}

static int failed(const struct target *t, const char *why)
{
	char name[32];
	snprintf(name, sizeof(name), "%d", (int)t->pid);
	return error_set(MT_EATTACH, name, ERROR_NO_OFFSET, "%s", why);
}

/* Those that wait without an end come first: nothing of them is delayed. */
static int rank_of(pid_t pid, pid_t tid)
{
	char path[80], text[160] = "";
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	FILE *f = fopen(path, "re");
	bool any = f && fgets(text, sizeof(text), f);
	if (f)
		fclose(f);
	if (!any)
		return 3;
	if (!strncmp(text, "running", 7))
		return 2;
	long number = strtol(text, NULL, 10);
	if (number == SYS_futex || number == SYS_read || number == SYS_wait4 || number == SYS_accept4 ||
	    number == SYS_accept)
		return 0;
	if (number == SYS_epoll_pwait)
		return 4;
#ifdef SYS_epoll_wait
	if (number == SYS_epoll_wait)
		return 4;
#endif
	return 1;
}

/* It waits for the loader's lock: dlopen has done nothing yet. Whoever has that may wait for what this thread has. */
static bool waits_for_loader(const struct target *t, pid_t tid)
{
	return rank_of(t->pid, tid) == 0 && target_loader_is_busy(t);
}

/* A thread that was stopped. */
static bool still_waits(pid_t tid)
{
	static struct arch_thread now;
	return arch_save(tid, &now) && now.call == SYS_futex && arch_goes_on(&now);
}

static int follow(const struct target *t, pid_t tid, const struct arch_thread *thread, uint64_t top,
		  enum inject_waits waits)
{
	uint64_t begin = ticks_mono_ns(), until = begin + (waits ? LOCK_WITHIN : CALL_WITHIN);
	int status, request = PTRACE_SYSCALL;
	unsigned long signal = 0;
	for (unsigned stops = 0;; stops++) {
		if (stops == 40)
			step(4);
		if (request && ptrace(request, tid, NULL, signal))
			return failed(t, "has ended while it was attached to");
		request = PTRACE_SYSCALL;
		signal = 0;
		if (!next_stop(tid, until, &status)) {
			bool locked = waits == INJECT_WAITS_FOR_LOADER ? waits_for_loader(t, tid)
								       : waits && rank_of(t->pid, tid) == 0;
			if (!locked && until < begin + CALL_WITHIN) { /* a slow disk */
				until = begin + CALL_WITHIN;
				request = 0;
				continue;
			}
			if (locked && !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) &&
			    next_stop(tid, ticks_mono_ns() + SECOND, &status) &&
			    (is_event_stop(status) || is_syscall_stop(status))) {
				if (!still_waits(tid)) { /* it has just got the lock */
					until = begin + CALL_WITHIN;
					continue;
				}
				come_back(tid, thread);
				return failed(t, waits == INJECT_WAITS_FOR_LOADER
							 ? "was just loading a library: try again"
							 : "was just forking: try again");
			}
			/* interrupted, it can be let go: the call returns by itself */
			if (!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) &&
			    next_stop(tid, ticks_mono_ns() + SECOND, &status))
				ptrace(PTRACE_DETACH, tid, NULL, 0);
			return failed(t, "does not come back from loading the library; it is left to itself");
		}
		if (is_syscall_stop(status) && arch_has_returned(tid, top)) {
			step(5);
			return come_back(tid, thread) ? 0 : failed(t, "has ended while it was attached to");
		}
		if (is_group_stop(status))
			request = PTRACE_LISTEN; /* stopped by a signal: it stays so */
		else if (!is_syscall_stop(status) && !(status >> 16)) {
			if (is_fault(WSTOPSIG(status))) {
				come_back(tid, thread);
				return failed(t, "could not load the library: the attempt failed, and was undone");
			}
			signal = (unsigned long)WSTOPSIG(status);
		}
	}
}

static int call_in(struct target *t, pid_t tid, struct arch_thread *thread, uint64_t function, void *passed,
		   size_t bytes, uint64_t second, enum inject_waits waits)
{
	uint64_t at = (thread->sp - ARCH_RED_ZONE - bytes) & ~63ull, arguments[2] = { at, second }, restorer = 0;
	uint8_t *text = NULL;
	/* what handlers return to */
	for (size_t i = 0; i < t->range_count && !restorer; i++) {
		const struct target_range *r = &t->ranges[i];
		if (r->prot[2] != 'x' ||
		    ((r->start < t->libc.base || r->end > t->libc.end) && strcmp(r->path, "[vdso]") != 0))
			continue;
		size_t size = r->end - r->start;
		text = malloc(size);
		uint8_t *found = text && target_read(t, r->start, text, size)
					 ? memmem(text, size, ARCH_RESTORER, ARCH_RESTORER_BYTES)
					 : NULL;
		restorer = found ? r->start + (uint64_t)(found - text) : 0;
		free(text);
	}
	if (!restorer || pwrite(t->memory, passed, bytes, (off_t)at) != (ssize_t)bytes ||
	    (step(2), !arch_call(tid, t->memory, thread, at, restorer, function, arguments))) {
		char byte;
		bool ended = !target_read(t, t->libc.base, &byte, 1);
		arch_let_go(tid, thread, 0);
		return failed(t, ended ? "has ended" : "its memory can't be written to");
	}
	step(3);
	int e = follow(t, tid, thread, at, waits);
	if (!e && !target_read(t, at, passed, bytes))
		e = failed(t, "has ended while it was attached to");
	return e;
}

/* ---- which thread ---- */

struct candidate {
	pid_t tid;
	int rank;
};

static int by_rank(const void *a, const void *b)
{
	return ((const struct candidate *)a)->rank - ((const struct candidate *)b)->rank;
}

static size_t threads_of(pid_t pid, struct candidate *out)
{
	char path[40];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d)) != NULL && n < MOST_THREADS;)
		if (*e->d_name != '.') {
			out[n].tid = (pid_t)strtol(e->d_name, NULL, 10);
			out[n].rank = rank_of(pid, out[n].tid);
			n++;
		}
	if (d)
		closedir(d);
	qsort(out, n, sizeof(*out), by_rank);
	return n;
}

/* Threads that did not stop in time do now. */
static void let_stray_go(void)
{
	int status;
	for (pid_t tid; (tid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, tid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
}

static int look_for_place(struct target *t, struct place *p, uint64_t function, void *passed, size_t bytes,
			  uint64_t second, enum inject_waits waits)
{
	static struct candidate threads[MOST_THREADS];
	static struct arch_thread thread;
	uint64_t until = ticks_mono_ns() + LOOK_FOR;
	const char *why = "does not stop";
	char text[200];
	for (long round = 0; ticks_mono_ns() < until; round++) {
		size_t n = threads_of(t->pid, threads);
		let_stray_go();
		if (!n || target_has_ended(t))
			return failed(t, "has ended");
		if (target_loader_is_busy(t)) {
			why = PLACE_LOADER_IS_BUSY;
			n = 0;
		}
		for (size_t i = 0; i < n && i < 16; i++) {
			bool group;
			if (!stop(threads[i].tid, &thread, &group)) {
				if (group)
					return failed(t, "is stopped: continue it (kill -CONT) and attach then");
				continue;
			}
			const char *not_here = place_is_unsafe(p, threads[i].tid, &thread);
			if (!not_here && !arch_settle(threads[i].tid, &thread)) {
				why = "between two calls";
				continue;
			}
			if (!not_here)
				return call_in(t, threads[i].tid, &thread, function, passed, bytes, second, waits);
			why = not_here;
			arch_let_go(threads[i].tid, &thread, 0);
		}
		nap((round < 128 ? 1 + round / 8 : 16) * 1000000 + (long)(ticks_mono_ns() % 3000000));
		if (round % 64 == 63)
			target_ranges(t);
	}
	snprintf(text, sizeof(text), "no thread came to a safe place in %llu s (the last one was %s); try again",
		 LOOK_FOR / SECOND, why);
	return failed(t, text);
}

int inject_call(struct target *t, uint64_t function, void *passed, size_t bytes, uint64_t second,
		enum inject_waits waits)
{
	struct place *p = place_new(t);
	if (!p)
		return failed(t, "its stacks can't be read");
	clock_runs(true);
	int e = look_for_place(t, p, function, passed, bytes, second, waits);
	clock_runs(false);
	place_free(p);
	return e;
}

/* ---- what was under way ---- */

/* Nanoseconds that it has run, or UINT64_MAX: it waits, or has ended. */
static uint64_t has_run(pid_t pid, pid_t tid)
{
	char path[80];
	unsigned long long ns = UINT64_MAX;
	if (rank_of(pid, tid) != 2)
		return UINT64_MAX;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = UINT64_MAX;
	if (f)
		fclose(f);
	return ns;
}

void inject_settle(const struct target *t)
{
	static struct candidate threads[MOST_THREADS];
	size_t n = threads_of(t->pid, threads);
	uint64_t until = ticks_mono_ns() + SECOND;
	for (size_t i = 0; i < n; i++) {
		uint64_t before = has_run(t->pid, threads[i].tid), now = before;
		while (before != UINT64_MAX && now != UINT64_MAX && now - before < 1000000 && ticks_mono_ns() < until) {
			nap(500000);
			now = has_run(t->pid, threads[i].tid);
		}
	}
}
