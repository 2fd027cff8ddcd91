/* memtrace fleet: its options and its help. The work is done by the Python package libmemtrace.fleet. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/python_part.h"
#include "analyzer/util/error.h"

#include <stdlib.h>
#include <string.h>

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
		e = python_part_become("fleet", argc, typed);
	free(typed);
	return e > 0 ? 0 : e;
}
