/* memtrace timeline: live bytes over time, as bars, CSV or JSON. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/timeline/timeline_rows.h"
#include "analyzer/report/timeline/timeline_screen.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"

static const struct option_row rows[] = {
	OPTIONS_ROW_BY(1u << BY_PROCESS | 1u << BY_STEP | 1u << BY_PHASE),
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_CSV,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_timeline_spec = {
	"memtrace timeline [options] [DIR...]",
	"Live bytes over time of each process and of all, and per device, and what was\n"
	"resident and swapped: a chart. --by step: low and high point of each step;\n"
	"--by phase: what was live at its start, and its peak.",
	rows,
	OPTIONS_INDEX,
	"  memtrace timeline --from 10 --to 20\n"
	"  memtrace timeline --csv > live.csv\n",
	"Read: docs/timeline.md; docs/MARKS.md on steps and phases",
};

static int show(struct selection *sel, const struct timeline *timeline, struct all_sample_series *sampled)
{
	if (sel->options->json)
		return timeline_print_json(sel, sampled);
	if (sel->options->csv)
		timeline_print_csv(sel, sampled);
	else if (timeline)
		timeline_print(sel, timeline, sampled);
	else
		timeline_print_chart(sel, sampled);
	return 0;
}

static int run(struct selection *sel)
{
	struct model_query q = MODEL_QUERY_ALL;
	struct all_sample_series *sampled;
	struct analysis a = { 0 };
	if (sel->options->csv && sel->options->rows)
		return error_set(MT_EUSAGE, "-n", ERROR_NO_OFFSET, "not with --csv, which has all rows");
	if (sel->options->by == BY_STEP || sel->options->by == BY_PHASE)
		return timeline_by_step(sel);
	/* in a pipe it is the chart alone; phases, for the plot, take another pass */
	const bool plots = output_is_terminal() && !sel->options->json && !sel->options->csv;
	int e = plots ? analysis_run(&a, sel, ANALYSIS_TIMELINE, NULL, NULL) : selection_run(sel, &q);
	if (e >= 0)
		e = sample_series_open(&sampled, sel);
	if (e >= 0) {
		e = show(sel, a.timeline, sampled);
		sample_series_close(sampled);
	}
	analysis_free(&a);
	return e;
}

int cmd_timeline(int argc, char **argv)
{
	struct options o = { 0 };
	return selection_command(&cmd_timeline_spec, &o, argc, argv, run);
}
