/* memtrace diff: two traces of the same program, before and after a change, side by side. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/diff/diff.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/page/page.h"
#include "analyzer/util/error.h"

struct diff_options {
	struct options common;
	const char *fail_over, *html, *format;
};

static const struct option_row rows[] = {
	{ "fail-over", 0, "LIMITS", OPTION_STRING, offsetof(struct diff_options, fail_over),
	  "exit 1 if memory grew by more than that: 5%, 100M, or both", 0 },
	{ "html", 0, "FILE", OPTION_STRING, offsetof(struct diff_options, html),
	  "write it there as a page of AFTER, with what changed", 0 },
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS),
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON,
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct diff_options, format), "for CI: github, sarif or junit",
	  0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_diff_spec = {
	"memtrace diff [--fail-over 5%,100M] [options] BEFORE AFTER",
	"What a change did: totals, devices, processes, categories, phases, steps,\n"
	"resident memory and swap, the sites that make the difference, and what held the\n"
	"memory (memtrace holders). Sites are matched by the functions of their stacks,\n"
	"so lines may have moved.",
	rows,
	0,
	"  memtrace diff before/ after/\n"
	"  memtrace diff --fail-over 5%,100M before/ after/      # for CI\n",
	"Read: docs/diff.md",
};

/* ---- page ---------------------------------------------------------------------------------------------- */

/* AFTER is read once more, as its report needs it. */
static int write_page(const struct diff *d, const char *path)
{
	struct page_changes changes = { diff_json(d), &d->side[0].selection };
	struct options after = d->side[1].options;
	struct report r = { .brief = true };
	struct selection v;
	uint64_t bytes;
	after.json = false;
	int e = selection_open(&v, &after);
	if (e == 0) {
		e = report_make(&r, &v, ANALYSIS_WINDOWS);
		if (e == 0)
			e = page_write(&r, path, &(struct page_content){ .changes = &changes }, &bytes);
		report_fini(&r);
		selection_close(&v);
	}
	json_decref(changes.changes);
	return e;
}

/* ---- command ------------------------------------------------------------------------------------------- */

static int diff(const struct diff_options *o)
{
	struct diff d = { 0 };
	struct diff_limits limits = { 0 };
	struct ci ci;
	if (o->common.ndirs != 2)
		return error_set(MT_EUSAGE, "diff", ERROR_NO_OFFSET, "name two trace directories, before and after");
	int e = ci_init(&ci, "diff", o->format, o->common.json);
	if (e == 0)
		e = diff_limits_parse(&limits, o->fail_over);
	for (int side = 0; side < 2 && e == 0; side++)
		e = diff_take(&d, side, &o->common);
	if (e == 0)
		e = diff_take_holders(&d);
	if (e == 0)
		e = diff_sort(&d);
	if (e == 0)
		e = selection_check_filter(&d.side[0].selection, d.count && d.sorted[d.count - 1]->section == SITES);
	if (e == 0 && o->common.json)
		e = json_print(diff_json(&d));
	if (e == 0 && ci.format)
		diff_add_sites(&d, &ci);
	if (e == 0 && !o->common.json && !ci.format)
		diff_print(&d);
	if (e == 0 && o->html)
		e = write_page(&d, o->html);
	if (e == 0)
		e = diff_check_limits(&d, &limits, &ci);
	if (e >= 0)
		ci_finish(&ci);
	ci_fini(&ci);
	diff_fini(&d);
	return e;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options o = { 0 };
	int e = open_options(&cmd_diff_spec, &o, argc, argv);
	if (e == 0)
		e = diff(&o);
	else if (e > 0)
		return 0;
	options_free(&o.common);
	return e;
}
