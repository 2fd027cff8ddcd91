/* memtrace check: is everything there, and does it fit together? Reads all of it, stepping over damage, so that one run
 * names all that is wrong. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/screen/check_screen.h"

static const struct option_row rows[] = {
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_check_spec = {
	"memtrace check [--json] [DIR...]",
	"Reads every file of a trace, checks it, and says what is missing or damaged.\n"
	"Exit status: 0 complete, 1 something is lost or wrong, 3 no trace that could\n"
	"be read.",
	rows,
	0,
	"  memtrace check memtrace-python-host-4711\n",
	"Read: docs/check.md",
};

int cmd_check(int argc, char **argv)
{
	struct options o = { 0 };
	struct reader *r = NULL;
	int e = open_options(&cmd_check_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	e = reader_open(&r, o.dirs, o.ndirs, READER_FORCE);
	if (!e)
		e = check_print(r, &o);
	reader_close(r);
	options_free(&o);
	return e;
}
