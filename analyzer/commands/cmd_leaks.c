/* memtrace leaks: what was alive at the end, and what grows. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/screen/leaks_screen.h"
#include "analyzer/util/error.h"

#include <stdlib.h>

struct leaks_options {
	struct options common;
	const char *fail_over;
	const char *suppressions, *format;
};

static const struct option_row rows[] = {
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct leaks_options, fail_over),
	  "exit 1 if more is alive at the end (100M) or sites grow faster (1M/s, 1M/step)", 0 },
	{ "suppressions", 0, "FILE", OPTION_STRING, offsetof(struct leaks_options, suppressions),
	  "lines leak:PATTERN, as LeakSanitizer reads them: what to leave out", 0 },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON,
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct leaks_options, format),
	  "for CI: github, sarif or junit", 0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_leaks_spec = {
	"memtrace leaks [--fail-over 100M,1M/step] [options] [DIR...]",
	"What was alive when processes ended, by the site that allocated it, and sites\n"
	"that grow. What libraries, interpreter and imported modules usually keep is\n"
	"folded into one line.",
	rows,
	OPTIONS_INDEX,
	"  memtrace leaks -n 30\n"
	"  memtrace leaks --fail-over 1M/step      # for CI\n",
	"Read: docs/leaks.md; docs/MARKS.md on steps",
};

static int run(struct selection *sel, struct leaks *l, const char *suppressions)
{
	struct suppress *suppress = NULL;
	struct analysis a;
	int e = suppressions ? suppressions_read(&suppress, suppressions) : 0;
	if (e < 0)
		return e;
	e = analysis_run(&a, sel, ANALYSIS_TIMELINE | ANALYSIS_HOST, NULL, NULL);
	if (e < 0) {
		suppressions_free(suppress);
	} else {
		e = leaks_init(l, sel, a.timeline, suppress, NULL);
		a.timeline = NULL; /* taken over */
	}
	if (e == 0 && (e = shm_maker_find(&l->shm, sel, a.host)) < 0)
		leaks_fini(l);
	analysis_free(&a);
	return e;
}

static int leaks(struct selection *sel)
{
	const struct leaks_options *o = (const struct leaks_options *)sel->options;
	struct leaks_limits limits = { 0 };
	struct held_question *held = NULL;
	struct leaks l;
	struct ci ci;
	int e = ci_init(&ci, "leaks", o->format, sel->options->json);
	if (e == 0)
		e = leaks_limits_parse(&limits, o->fail_over);
	if (e == 0)
		e = run(sel, &l, o->suppressions);
	if (e < 0)
		return e;
	e = held_of_leaks(&l, &held);
	if (e == 0 && sel->options->json)
		e = leaks_print_json(&l, held);
	else if (e == 0 && ci.format)
		leaks_add_growing(&l, &ci);
	else if (e == 0)
		leaks_print(&l, held);
	if (e == 0)
		e = leaks_check_limits(&l, &limits, &ci);
	ci_finish(&ci);
	held_fini(held, held ? l.count : 0);
	free(held);
	leaks_fini(&l);
	return e;
}

int cmd_leaks(int argc, char **argv)
{
	struct leaks_options o = { 0 };
	return selection_command(&cmd_leaks_spec, &o, argc, argv, leaks);
}
