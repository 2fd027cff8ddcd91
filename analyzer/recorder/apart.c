#include "analyzer/recorder/apart.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const left_out[] = { "LD_PRELOAD=",      "MEMTRACE_SESSION=", "MEMTRACE_FILTERS=",
					"MEMTRACE_ON_OOM=", "MEMTRACE_OOM_",     "MEMTRACE_PUSH=" };

static bool stays(const char *setting)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (!strncmp(setting, left_out[i], strlen(left_out[i])))
			return false;
	return true;
}

char **apart_environment(const char *const *more)
{
	size_t n = 0, m = 0, count = 0;
	while (environ[n])
		n++;
	while (more[m])
		m++;
	char **list = calloc(n + m + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++)
		if (stays(environ[i]))
			list[count++] = environ[i];
	for (size_t i = 0; list && i < m; i++)
		list[count++] = (char *)(uintptr_t)more[i];
	return list;
}

void apart_set_up(const char *log)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	sigset_t none;
	sigemptyset(&none);
	setsid();
	for (int sig = 1; sig < 32; sig++)
		sigaction(sig, &by_default, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_RDWR), out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(fd && out >= 0 ? out : null, fd);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

/* Of the directory itself: `dir` is one of our descriptors. Where it sends to is in the environment, which others can't
 * see. */
static void become_push(const char *dir, char **env)
{
	static char path[PATH_MAX], log[PATH_MAX + 16];
	ssize_t n = readlink(dir, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	snprintf(log, sizeof(log), "%s/push.log", path);
	apart_set_up(log);
	nice(10);
	execve("/proc/self/exe", (char *[]){ "memtrace", "push", path, NULL }, env);
	_exit(127);
}

void apart_push(const char *dir)
{
	const char *wanted = getenv("MEMTRACE_PUSH");
	char *setting = NULL, **env = NULL;
	if (wanted && strchr(wanted, '=') && asprintf(&setting, "MEMTRACE_PUSH=%s", wanted) > 0)
		env = apart_environment((const char *const[]){ setting, NULL });
	pid_t child = env ? fork() : -1;
	if (child == 0) {
		if (fork() == 0) /* nobody waits for it */
			become_push(dir, env);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	free(env);
	free(setting);
}
