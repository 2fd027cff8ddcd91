#include "analyzer/commands/attach_pid.h"
#include "analyzer/attach/attach.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "format/settings.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int pid_of(const char *word)
{
	struct stat st;
	if (!*word || word[strspn(word, "0123456789")] || strlen(word) > 9 || stat(word, &st) == 0)
		return 0;
	return (int)strtol(word, NULL, 10);
}

/* The program has another working directory. */
static const char *absolute(const char *path, char *room, size_t size)
{
	char cwd[PATH_MAX];
	if (!path || *path == '/' || !getcwd(cwd, sizeof(cwd)))
		return path;
	snprintf(room, size, "%s/%s", cwd, path);
	return room;
}

static void collect(char *settings, size_t size)
{
	size_t at = 0;
	for (const char *const *name = record_variables; *name; name++) {
		char room[2 * PATH_MAX];
		const char *value = getenv(*name);
		if (!value || !*value || !strcmp(*name, MT_SETTING_PREFIX "OUTPUT"))
			continue;
		if (!strcmp(*name, MT_SETTING_PREFIX "RING_DIR"))
			value = absolute(value, room, sizeof(room));
		int n = snprintf(settings + at, size - at, "%s=%s", *name, value);
		if (n > 0 && at + (size_t)n + 2 < size)
			at += (size_t)n + 1;
	}
	settings[at] = '\0';
}

struct answer {
	int e;
	struct error error;
	char trace[ATTACH_PATH];
};

/* In a process of its own: with it, every thread that it still traces is let go. */
static int in_child(int pid, struct answer *answer)
{
	char library[PATH_MAX], settings[8192], room[2 * PATH_MAX];
	int ends[2], status;
	record_library(library, sizeof(library));
	if (!*library)
		return error_set(MT_ERUN, "libmemtrace.so", ERROR_NO_OFFSET,
				 "is not beside this program nor in ../lib");
	const char *output = absolute(getenv(MT_SETTING_PREFIX "OUTPUT"), room, sizeof(room));
	collect(settings, sizeof(settings));
	print_flush();
	if (pipe(ends))
		return error_errno(MT_ERUN, "pipe", ERROR_NO_OFFSET);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		answer->e = attach(pid, library, output && *output ? output : NULL, settings, answer->trace);
		answer->error = *error_get();
		_exit(write(ends[1], answer, sizeof(*answer)) != sizeof(*answer));
	}
	close(ends[1]);
	size_t got = 0;
	for (ssize_t n; got < sizeof(*answer) && (n = read(ends[0], (char *)answer + got, sizeof(*answer) - got)) != 0;)
		if (n > 0)
			got += (size_t)n;
		else if (errno != EINTR)
			break;
	close(ends[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (got != sizeof(*answer))
		return error_set(MT_EATTACH, NULL, ERROR_NO_OFFSET, "attaching was interrupted; the program goes on");
	return answer->e ? error_set(answer->error.code, answer->error.file, answer->error.offset, "%s",
				     answer->error.why)
			 : 0;
}

/* ---- processes that it had started before ---- */

enum { MOST_CHILDREN = 256, NAMED_CHILDREN = 4 };

struct children {
	int pids[MOST_CHILDREN];
	unsigned count;
};

static void add_children(const char *path, struct children *c)
{
	FILE *f = fopen(path, "re");
	while (f && c->count < MOST_CHILDREN && fscanf(f, "%d", &c->pids[c->count]) == 1)
		c->count++;
	if (f)
		fclose(f);
}

/* Each thread has its own. */
static void find_children(int pid, struct children *c)
{
	char path[80];
	c->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", pid, e->d_name);
		if (*e->d_name != '.')
			add_children(path, c);
	}
	if (d)
		closedir(d);
}

/* A process that has ended and waits for its parent still has a pid, but no program. */
static bool has_program(int pid)
{
	char path[40], program[2];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, program, sizeof(program)) > 0 || errno == EACCES;
}

/* A server's workers are often what somebody is after. Those that begin from now on are recorded. */
static void name_children(const struct children *c)
{
	char names[NAMED_CHILDREN * 12 + 8] = "";
	unsigned left = 0;
	for (unsigned i = 0; i < c->count; i++) {
		size_t at = strlen(names);
		if (!has_program(c->pids[i]) || attach_is_loaded(c->pids[i]))
			continue;
		if (left++ < NAMED_CHILDREN)
			snprintf(names + at, sizeof(names) - at, " %d", c->pids[i]);
	}
	if (left)
		print_error(
			"memtrace: %u process%s that it has started before %s not recorded; each can be attached to:%s%s\n",
			left, left > 1 ? "es" : "", left > 1 ? "are" : "is", names, left > NAMED_CHILDREN ? " .." : "");
}

int attach_pid(int pid, char **dir)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	struct children before;
	*dir = NULL;
	if (!answer)
		return error_memory();
	record_unknown_variables();
	find_children(pid, &before);
	int e = in_child(pid, answer);
	if (!e && !(*dir = strdup(answer->trace)))
		e = error_memory();
	if (!e)
		name_children(&before);
	free(answer);
	return e;
}

int trace_or_attach(const char *word, char **dir, bool *attached)
{
	int e = trace_of_pid(word, dir), pid = pid_of(word);
	*attached = false;
	if (e != -MT_ENOTRACE || !pid)
		return e;
	e = attach_pid(pid, dir);
	*attached = !e;
	return e;
}
