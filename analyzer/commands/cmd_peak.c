/* memtrace peak: everything alive at one moment, by owner, with the stacks below each. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/report/screen/peak_fit.h"
#include "analyzer/report/screen/peak_screen.h"
#include "analyzer/util/error.h"

#include <stdlib.h>

#define NO_FIT UINT64_MAX

struct peak_options {
	struct options common;
	uint64_t fit;
};

static const struct option_row rows[] = {
	OPTIONS_ROW_AT,
	OPTIONS_ROW_BY(OPTIONS_BY_OWNERS | 1u << BY_HOLDER),
	OPTIONS_ROW_ROWS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_PROCESS,
	{ "fit", 0, "SIZE", OPTION_BYTES, offsetof(struct peak_options, fit),
	  "would it fit SIZE, and what must go for it to fit", 0 },
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_peak_spec = {
	"memtrace peak [--at TIME] [options] [DIR...]",
	"Everything that was alive at one moment, by owner: at the peak (each kind of\n"
	"memory and each device at its own), or at another moment with --at.",
	rows,
	OPTIONS_INDEX,
	"  memtrace peak --by function -n 30\n"
	"  memtrace peak --at oom                  # when device memory ran out\n"
	"  memtrace peak --by holder               # by what kept it; memtrace holders\n",
	"--json prints stacks where the screen has sites; with --by both have the same.\n"
	"Read: docs/peak.md",
};

static int show(struct selection *sel)
{
	struct held_seens seen = { 0 };
	struct moments m;
	int e = moments_find(&m, sel, false);
	if (e == 0 && sel->by == BY_HOLDER)
		e = held_moments(sel, &m, &seen);
	if (e == 0 && sel->options->json)
		e = peak_print_json(sel, &m, &seen);
	else if (e == 0)
		peak_print(sel, &m, &seen);
	moments_fini(&m);
	free(seen.list);
	return e;
}

static int peak(struct selection *sel)
{
	struct model_query q = MODEL_QUERY_ALL;
	uint64_t fit = ((const struct peak_options *)(const void *)sel->options)->fit;
	if (!fit)
		return error_set(MT_EUSAGE, "--fit", ERROR_NO_OFFSET, "nothing fits into 0 bytes");
	if (fit != NO_FIT && (sel->options->at.kind || sel->options->by || sel->options->filter || sel->options->rows))
		return error_set(MT_EUSAGE, "--fit", ERROR_NO_OFFSET,
				 "looks at the peak as a whole: not with --at, --by, --filter, -n");
	if (fit != NO_FIT)
		return peak_fit(sel, fit);
	q.keep_blocks = sel->by == BY_HOLDER && sel->options->at.kind == WHEN_END;
	int e = selection_run(sel, &q);
	return e < 0 ? e : show(sel);
}

int cmd_peak(int argc, char **argv)
{
	struct peak_options o = { .fit = NO_FIT };
	return selection_command(&cmd_peak_spec, &o, argc, argv, peak);
}
