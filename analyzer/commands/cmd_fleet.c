/* memtrace fleet: its options and its help. The work is done by the Python package libmemtrace.fleet, which this
 * becomes: beside the program in a source tree, in share/memtrace where it was installed, in the interpreter's own
 * packages where it came as a wheel. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fleet_options {
	struct options common;
	const char *output, *engine, *scheduler, *slurm, *html, *sql, *role, *job;
	uint64_t workers, timeout;
	bool again, all;
};

#define FLEET_ROW(name, letter, argument, field, help) \
	{ name, letter, argument, OPTION_STRING, offsetof(struct fleet_options, field), help, 0 }
#define FLEET_FLAG(name, field, help) { name, 0, NULL, OPTION_FLAG, offsetof(struct fleet_options, field), help, 0 }
static const struct option_row rows[] = {
	FLEET_ROW("output", 'o', "FLEET", output, "folder of the fleet [memtrace-fleet]"),
	FLEET_ROW("engine", 0, "ENGINE", engine,
		  "who reduces: dask (the default, if it is installed), ray, local, slurm"),
	FLEET_ROW("scheduler", 0, "ADDRESS", scheduler, "of a cluster of Dask or Ray that runs already"),
	{ "workers", 0, "N", OPTION_NUMBER, offsetof(struct fleet_options, workers), "so many at once [cores]", 0 },
	FLEET_ROW("slurm", 0, "SETTINGS", slurm, "for sbatch: partition=cpu,time=60"),
	{ "timeout", 0, "SECONDS", OPTION_NUMBER, offsetof(struct fleet_options, timeout), "for one trace [3600]", 0 },
	FLEET_FLAG("again", again, "reduce also what has not changed"),
	FLEET_FLAG("all", all, "all that is known, not only what 80x24 holds"),
	FLEET_ROW("html", 0, "FILE", html, "the report as a page, with memory by rank and time"),
	FLEET_ROW("sql", 0, "QUERY", sql, "a query of the tables (docs/fleet.md); - reads it"),
	FLEET_ROW("role", 0, "KEYS", role, "tags by which peers are told apart: pp,tp"),
	FLEET_ROW("job", 0, "JOB", job, "where there are several"),
	OPTIONS_ROW("json", 0, NULL, OPTION_FLAG, json, "print JSON; docs/fleet.md has its keys"),
	OPTIONS_ROW("quiet", 'q', NULL, OPTION_FLAG, quiet, "say nothing on stderr but errors"),
	OPTIONS_END,
};

const struct option_spec cmd_fleet_spec = {
	"memtrace fleet [options] TRACES... | report [FLEET] | diff FLEET FLEET",
	"The traces of a job with many ranks as one answer: who died first, who differs\n"
	"from its peers, what grows where. Each is reduced where it lies, once.\n",
	rows,
	OPTIONS_TEXT,
	"  memtrace fleet 'traces/4711/*'          # reduces what is new, then reports\n"
	"  memtrace fleet report --html fleet.html\n"
	"  memtrace fleet report --sql 'FROM run'\n",
	"Read: docs/fleet.md",
};

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
		snprintf(candidate, sizeof(candidate), "%s%s/libmemtrace/fleet/__main__.py", self, places[i]);
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
	unsetenv("MEMTRACE_REDUCE");
	paths = *package ? output_format("%s%s%s", package, before && *before ? ":" : "", before ? before : "") : NULL;
	if (paths)
		setenv("PYTHONPATH", paths, 1);
	free(paths);
}

/* argv as it was typed; parsing moves words. */
static int become(int argc, char **argv)
{
	char package[PATH_MAX], python[PATH_MAX];
	char **words = calloc((size_t)argc + 4, sizeof(*words));
	if (!words)
		return error_memory();
	find_package(package, sizeof(package));
	find_python(python, sizeof(python), !*package);
	set_environment(package);
	words[0] = python;
	words[1] = "-m";
	words[2] = "libmemtrace.fleet";
	memcpy(words + 3, argv + 1, ((size_t)argc - 1) * sizeof(*words));
	execvp(python, words);
	free(words);
	return error_set(MT_ERUN, python, ERROR_NO_OFFSET, "%s; memtrace fleet needs Python 3.8 or later",
			 strerror(errno));
}

int cmd_fleet(int argc, char **argv)
{
	struct fleet_options o = { 0 };
	char **typed = calloc((size_t)argc + 1, sizeof(*typed));
	if (!typed)
		return error_memory();
	memcpy(typed, argv, (size_t)argc * sizeof(*typed));
	int e = options_parse(&cmd_fleet_spec, &o, argc, argv);
	if (e == 0 && !o.common.ndirs)
		e = error_set(MT_EUSAGE, "fleet", ERROR_NO_OFFSET, "which traces?");
	options_free(&o.common);
	if (e == 0)
		e = become(argc, typed);
	free(typed);
	return e > 0 ? 0 : e;
}
