/* memtrace run: makes the session, starts the recorder and the command, waits for both, reports. The terminal and its
 * signals stay the command's; whatever is printed comes after it has ended, on stderr. */
#include "analyzer/commands/attach_pid.h"
#include "analyzer/commands/cmd_symbolize.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/recorder/preload_check.h"
#include "analyzer/recorder/session.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct option_row rows[] = {
	RECORD_ROWS,
	{ "no-report", 0, NULL, OPTION_FLAG, offsetof(struct record_options, no_report), "only record", 0 },
	{ "html", 0, "FILE", OPTION_STRING, offsetof(struct record_options, html),
	  "write the report there as a page, too", 0 },
	{ "pid", 0, "PID", OPTION_STRING, offsetof(struct record_options, pid),
	  "record a program that runs, until it ends or Ctrl-C", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_run_spec = {
	"memtrace run [options] -- COMMAND [ARGUMENT...]",
	"Runs the command with every allocation of it and its children recorded, then\n"
	"prints the report on stderr. Exit status: the command's (128 + signal if it was\n"
	"killed); 126 or 127 if it can't be run or is not there; 2 or 3 if it can't be\n"
	"recorded.",
	rows,
	OPTIONS_NO_DIRS | OPTIONS_STOP,
	"  memtrace run -- python train.py\n"
	"  memtrace run --stacks sample -o /data/t -- ./server\n"
	"  memtrace run --pid 4711\n",
	"Read: docs/run.md",
};

#ifndef SYS_close_range
#define SYS_close_range 436 /* older headers than Linux 5.9 */
#endif

#define SILENT_NS 20000000000ull /* its rounds take seconds where a lot is to be compressed on a busy machine */

static pid_t child;

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* Ctrl-C and Ctrl-\ reach the whole foreground group; what is sent to us alone is passed on. */
static void leave_signals_to_child(void)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaction(passed[i], &action, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

static int set_variable(const char *name, const char *value, void *unused)
{
	(void)unused;
	return setenv(name, value, 1) ? error_errno(MT_ERUN, name, ERROR_NO_OFFSET) : 0;
}

/* Whoever reads from a pipe that we were given waits until nobody has its other end. */
static void let_go_of_files(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		if (null != fd && (null < 0 || dup2(null, fd) < 0))
			close(fd);
	if (syscall(SYS_close_range, 3, ~0u, 0))
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
}

/* Its own session, so that the terminal's signals don't reach it. It takes no SIGTERM before it is ready to end by one:
 * stop() may come before it has begun. */
static pid_t start_recorder(const char *dir)
{
	sigset_t term, before;
	pid_t pid;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	pid = fork();
	if (pid == 0) {
		let_go_of_files();
		setsid();
		unsetenv("LD_PRELOAD");
		unsetenv("MEMTRACE_REDUCE"); /* we do that, who wait for it */
		execl("/proc/self/exe", "memtrace", "record", dir, (char *)NULL);
		_exit(127);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static pid_t start_command(char **argv, const char *dir)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("MEMTRACE_SESSION", dir, 1);
		execvp(argv[0], argv);
		print_error("memtrace: %s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* In a process of its own: it is an extra, and whatever libraries the target had are read by it. */
static void symbolize_quietly(const char *dir)
{
	pid_t pid;

	print_flush();
	pid = fork();
	if (pid == 0)
		_exit(symbolize(dir, &(struct symbolize_options){ .force = true, .quiet = true }) < 0);
	if (pid > 0)
		wait_for(pid);
}

/* Likewise. */
static void reduce_quietly(const char *dir)
{
	const char *wanted = getenv("MEMTRACE_REDUCE");
	char *argv[] = { "reduce", "--quiet", (char *)dir, NULL };
	pid_t pid;

	if (!wanted || strcmp(wanted, "1") != 0)
		return;
	print_flush();
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		int e = null < 0 || dup2(null, STDOUT_FILENO) < 0 ? 0 : cmd_reduce(3, argv);
		if (e < 0)
			error_print();
		print_flush();
		_exit(e != 0);
	}
	if (pid > 0)
		wait_for(pid);
}

static int report_on(const char *dir)
{
	char *argv[] = { "report", (char *)dir, NULL };

	print_flush();
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return error_errno(MT_EOUTPUT, "stderr", ERROR_NO_OFFSET);
	return cmd_report(2, argv);
}

/* Children that outlive the command start a recorder of their own, which may just be clearing files away. */
static int report_when_quiet(const char *dir)
{
	struct timespec pause = { .tv_nsec = 400000000 };
	int e = report_on(dir);

	for (int tries = 0; e == -MT_EIO && tries < 4; tries++) {
		nanosleep(&pause, NULL);
		e = report_on(dir);
	}
	return e;
}

static int write_page(const char *dir, const char *path)
{
	char *argv[] = { "html", "-o", (char *)path, (char *)dir, NULL };

	print_flush();
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return error_errno(MT_EOUTPUT, "stderr", ERROR_NO_OFFSET);
	return cmd_html(4, argv);
}

/* It ends by itself when all is compressed. One that somebody has stopped, or that hangs, is ended: whatever it knows
 * is in the files. */
static void stop(const char *dir, pid_t recorder)
{
	struct timespec pause = { .tv_nsec = 5000000 };
	int status, end_ms = 0, waited_ms = 0;
	pid_t pid;

	if (recorder <= 0)
		return;
	kill(recorder, SIGTERM);
	while ((pid = waitpid(recorder, &status, WNOHANG | WUNTRACED)) == 0 ||
	       (pid == recorder && WIFSTOPPED(status))) {
		if (!end_ms && (pid || session_recorder_silence(dir) > SILENT_NS)) {
			print_error(
				"memtrace: the recorder (%d) %s and was ended; what it had not compressed is read as it is\n",
				(int)recorder, pid ? "was stopped" : "did not answer");
			kill(recorder, SIGKILL);
			end_ms = waited_ms + 1000;
		}
		if (end_ms && waited_ms > end_ms)
			return; /* the kernel keeps it */
		nanosleep(&pause, NULL);
		waited_ms += 5;
	}
}

/* Returns the command's exit status, or an error. */
static int record_command(char **argv, const char *dir)
{
	pid_t recorder = 0;
	int status, recorded;

	child = start_command(argv, dir);
	if (child < 0)
		return error_errno(MT_ERUN, argv[0], ERROR_NO_OFFSET);
	leave_signals_to_child();
	recorded = session_wait(dir, child);
	if (recorded)
		recorder = start_recorder(dir);
	status = wait_for(child);
	if (recorded)
		session_end(dir, child, status);
	else
		rmdir(dir);
	stop(dir, recorder);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* As it can be named in the working directory. */
static const char *from_here(const char *path)
{
	char cwd[SESSION_PATH];
	size_t n = getcwd(cwd, sizeof(cwd)) ? strlen(cwd) : 0;

	return n > 1 && !strncmp(path, cwd, n) && path[n] == '/' ? path + n + 1 : path;
}

/* ---- a program that runs ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
	interrupted = 1;
	signal(sig, SIG_DFL);
}

/* Until it ends, or we are asked to; then it is as it was before. */
static int record_running(const char *word, char *dir)
{
	struct timespec pause = { .tv_nsec = 50000000 };
	char *found = NULL, *argv[] = { "stop", (char *)(uintptr_t)word, NULL };
	int pid = pid_of(word), e;

	if (!pid)
		return error_set(MT_EUSAGE, "--pid", ERROR_NO_OFFSET, "'%s' is no number of a process", word);
	if ((e = attach_pid(pid, &found)))
		return e;
	snprintf(dir, SESSION_PATH, "%s", found);
	free(found);
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	print_error("memtrace: recording process %d to %s; Ctrl-C ends that, not the process\n", pid, dir);
	while (!interrupted && (kill(pid, 0) == 0 || errno == EPERM))
		nanosleep(&pause, NULL);
	return interrupted ? cmd_stop(2, argv) : 0;
}

static int finish(const struct record_options *o, const char *dir)
{
	symbolize_quietly(dir);
	reduce_quietly(dir);
	if (!o->no_report && report_when_quiet(dir) < 0)
		error_print();
	if (o->html && write_page(dir, o->html) < 0)
		error_print();
	print_error("memtrace: the trace is in %s\n", from_here(dir));
	return 0;
}

int cmd_run(int argc, char **argv)
{
	struct record_options o = { 0 };
	char dir[SESSION_PATH];
	int first, status, e = options_parse_rest(&cmd_run_spec, &o, argc, argv, &first);

	if (e)
		return e > 0 ? 0 : e;
	if (first >= argc && !o.pid)
		return error_set(MT_EUSAGE, "run", ERROR_NO_OFFSET, "no command is given");
	if (first < argc && o.pid)
		return error_set(MT_EUSAGE, "run", ERROR_NO_OFFSET, "a command or --pid, not both");
	record_unknown_variables();
	if (o.pid) {
		e = launch_options_apply(&o, set_variable, NULL);
		unsetenv("LD_PRELOAD"); /* it is not for us */
		e = e ? e : record_running(o.pid, dir);
		return e ? e : finish(&o, dir);
	}
	if ((e = launch_options_apply(&o, set_variable, NULL)) || (e = preloadable(argv[first])) ||
	    (e = session_make(dir, argv[first])))
		return e;
	if (o.verbose)
		print_error("memtrace: recording to %s\n", dir);
	status = record_command(argv + first, dir);
	if (status < 0)
		return status;
	if (access(dir, F_OK)) {
		print_error("memtrace: %s: nothing was recorded; see --verbose\n", argv[first]);
		return status;
	}
	finish(&o, dir);
	return status;
}
