/* memtrace list: which traces are here. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/screen/list_screen.h"

struct list_options {
	struct options common;
	bool verdict;
};

static const struct option_row rows[] = {
	{ "verdict", 0, NULL, OPTION_FLAG, offsetof(struct list_options, verdict),
	  "also what went wrong; each trace is read for it", 0 },
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_JSON,
	OPTIONS_END,
};

const struct option_spec cmd_list_spec = {
	"memtrace list [--verdict] [DIR...]",
	"The traces in a directory (the working directory), the newest first: when each\n"
	"began, its ranks, its command and how that ended, what it takes on disk. Those\n"
	"that lie two directories further down are found, too.",
	rows,
	0,
	"  memtrace list                # as coredumpctl list\n"
	"  memtrace list --verdict /scratch/traces\n",
	"Read: docs/list.md",
};

int cmd_list(int argc, char **argv)
{
	struct list_options o = { 0 };
	struct trace_list all = { 0 };
	int e = options_parse(&cmd_list_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	e = trace_list_make(&all, o.common.dirs, o.common.ndirs);
	if (!e)
		e = list_print(&all, &o.common, o.verdict);
	trace_list_fini(&all);
	options_free(&o.common);
	return e;
}
