#include "analyzer/commands/python_part.h"

#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder in which the package libmemtrace lies, as seen from the program; "" = it is not beside it. */
static void find_package(char *path, size_t size)
{
	static const char *const places[] = { "../python", "../../python", "../share/memtrace/python" };
	char self[PATH_MAX], candidate[PATH_MAX + 64], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	*path = '\0';
	if (n <= 0)
		return;
	self[n] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s/libmemtrace/__init__.py", self, places[i]);
		if (access(candidate, R_OK) != 0)
			continue;
		snprintf(candidate, sizeof(candidate), "%s%s", self, places[i]);
		if (realpath(candidate, real))
			snprintf(path, size, "%s", real);
		return;
	}
}

/* That of the wheel is beside the program; else the one that the shell would take, so that of an active environment. */
static void find_python(char *path, size_t size, bool beside)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 16);
	if (beside && n > 0) {
		path[n] = '\0';
		strcpy(strrchr(path, '/') + 1, "python3");
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, size, "python3");
}

/* The interpreter is not to be recorded, where the shell's programs are. */
static void set_environment(const char *package)
{
	char self[PATH_MAX], others[4096], *paths;
	const char *before = getenv("PYTHONPATH");
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		setenv("MEMTRACE_FLEET_PROGRAM", self, 1);
	}
	record_other_preloads(others, sizeof(others));
	if (*others)
		setenv("LD_PRELOAD", others, 1);
	else
		unsetenv("LD_PRELOAD");
	char *path =
		output_format("%s:/usr/local/bin:/opt/conda/bin", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	if (path) /* the recorder has a short one */
		setenv("PATH", path, 1);
	free(path);
	unsetenv("MEMTRACE_REDUCE");
	unsetenv("MEMTRACE_PUSH");
	paths = *package ? output_format("%s%s%s", package, before && *before ? ":" : "", before ? before : "") : NULL;
	if (paths)
		setenv("PYTHONPATH", paths, 1);
	free(paths);
}

char **python_part_words(const char *module, int argc, char *const *argv)
{
	static char python[PATH_MAX], name[64];
	char package[PATH_MAX];
	char **words = calloc((size_t)argc + 4, sizeof(*words));
	if (!words)
		return NULL;
	find_package(package, sizeof(package));
	find_python(python, sizeof(python), !*package);
	set_environment(package);
	snprintf(name, sizeof(name), "libmemtrace.%s", module);
	words[0] = python;
	words[1] = "-m";
	words[2] = name;
	memcpy(words + 3, argv, (size_t)argc * sizeof(*words));
	return words;
}

int python_part_become(const char *module, int argc, char *const *argv)
{
	char **words = python_part_words(module, argc - 1, argv + 1);
	if (!words)
		return error_memory();
	execvp(words[0], words);
	error_set(MT_ERUN, words[0], ERROR_NO_OFFSET, "%s; memtrace %s needs Python 3.8 or later", strerror(errno),
		  module);
	free(words);
	return -MT_ERUN;
}
