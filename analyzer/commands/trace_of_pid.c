#include "analyzer/commands/trace_of_pid.h"

#include "analyzer/util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The directory of the session that a process has mapped. */
static char *directory_of(const char *pid)
{
	char path[64], *line = NULL, *found = NULL;
	size_t room = 0;
	snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0) {
		char *file = strchr(line, '/');
		size_t n = file ? strcspn(file, "\n") : 0;
		if (n > 8 && !strncmp(file + n - 8, "/session", 8)) {
			file[n - 8] = '\0';
			found = strdup(file);
		}
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

int trace_of_pid(const char *word, char **dir)
{
	struct stat st;
	*dir = NULL;
	if (stat(word, &st) == 0 || !*word || word[strspn(word, "0123456789")])
		return 0;
	*dir = directory_of(word);
	return *dir ? 0 : error_set(MT_ENOTRACE, word, ERROR_NO_OFFSET, "no such process, or it is not recorded");
}
