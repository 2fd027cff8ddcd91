#include "analyzer/commands/attach_pid.h"
#include "analyzer/attach/attach.h"
#include "analyzer/commands/trace_of_pid.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "format/settings.h"

#include <errno.h>
#include <limits.h>
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

int attach_pid(int pid, char **dir)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	*dir = NULL;
	if (!answer)
		return error_memory();
	record_unknown_variables();
	int e = in_child(pid, answer);
	if (!e && !(*dir = strdup(answer->trace)))
		e = error_memory();
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
