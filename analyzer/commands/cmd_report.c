/* memtrace report: what happened, on one screen. */
#include "analyzer/commands/commands.h"
#include "analyzer/commands/launch_options.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/screen/report.h"
#include "analyzer/util/error.h"

#include <string.h>

static const struct option_row rows[] = {
	{ "all", 0, NULL, OPTION_FLAG, offsetof(struct report_options, all),
	  "all that is known, not only what 80x24 holds", 0 },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_JSON,
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct report_options, format),
	  "markdown: to be pasted into an issue; for CI github, sarif or junit", 0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_report_spec = {
	"memtrace report [options] [DIR...]",
	"What happened, on one screen: what failed and why, or that all is well; where\n"
	"the memory was and whose, and what was lost while recording. Its words are\n"
	"explained by memtrace help words.",
	rows,
	OPTIONS_INDEX,
	"  memtrace report                         # of the newest trace here\n"
	"  memtrace report --all                   # everything, on a larger screen\n"
	"  memtrace report --process worker --from phase:train\n",
	"Next: memtrace help peak, leaks, timeline\n"
	"Read: docs/report.md; docs/DIAGNOSIS.md on verdicts",
};

/* Markdown has the sites and rows that JSON has. */
static int check_format(struct selection *sel, const char *format)
{
	if (!format)
		return 0;
	if (strcmp(format, "markdown") != 0 && !ci_find(format))
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET,
				 "unknown value '%s'; there are markdown, github, sarif and junit", format);
	if (sel->options->json)
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "not with --json");
	return 0;
}

static int print_findings(const struct report *r, const char *format)
{
	struct ci ci = { .format = ci_find(format), .command = "report" };
	int e = report_add_findings(r, &ci);
	if (e == 0)
		return ci_finish(&ci);
	ci_fini(&ci);
	return e;
}

static int report(struct selection *sel)
{
	const struct report_options *o = (const struct report_options *)sel->options;
	struct report r = { .brief = !o->all };
	int e = check_format(sel, o->format);
	if (e < 0)
		return e;
	e = report_make(&r, sel, 0);
	if (e == 0 && sel->options->json)
		e = report_print_json(&r);
	else if (e == 0 && o->format)
		e = ci_find(o->format) ? print_findings(&r, o->format) : report_print_markdown(&r);
	else if (e == 0)
		report_print(&r);
	sel->told_unread = !sel->options->json && !o->format && e == 0;
	report_fini(&r);
	return e;
}

int cmd_report(int argc, char **argv)
{
	struct report_options o = { 0 };
	record_unknown_variables();
	return selection_command(&cmd_report_spec, &o, argc, argv, report);
}
