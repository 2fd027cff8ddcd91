/* memtrace export: what was alive at one moment, in the format of another tool. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/export.h"
#include "analyzer/report/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"

#include <stddef.h>

struct export_options {
	struct options common;
	const char *format;
};

static const struct option_row rows[] = { { "format", 0, "FORMAT", OPTION_STRING,
					    offsetof(struct export_options, format),
					    "folded: one line a stack, frame;frame bytes; "
					    "speedscope: JSON of speedscope.app",
					    0 },
					  OPTIONS_ROW_AT,
					  OPTIONS_ROW_DEVICE,
					  OPTIONS_ROW_PROCESS,
					  OPTIONS_ROW_FILTER,
					  OPTIONS_ROW_TIMES,
					  OPTIONS_ROW_FRAMES,
					  OPTIONS_ROW_FORCE,
					  OPTIONS_ROW_QUIET,
					  OPTIONS_END };

const struct option_spec cmd_export_spec = {
	"memtrace export --format FORMAT [--at TIME] [options] [DIR...]",
	"What was alive at the peak, or at another moment with --at, in the format of\n"
	"another tool: for each kind of memory every stack and its bytes, on stdout.",
	rows,
	OPTIONS_TEXT,
	"  memtrace export --format folded | flamegraph.pl --countname=bytes > peak.svg\n"
	"  memtrace export --format folded --device cuda:0 --at oom > oom.folded\n"
	"  memtrace export --format speedscope > peak.speedscope.json\n",
	"Read: docs/export.md",
};

/* What the format has no place for. */
static void print_notes(const struct selection *v, const struct moments *m)
{
	bool estimated = false;
	for (size_t i = 0; i < m->count; i++)
		estimated = estimated || m->moments[i].sites->estimated;
	if (!reader_complete(v->reader))
		print_error("memtrace: note: the trace is incomplete: what is left, see memtrace check\n");
	if (estimated)
		print_error("memtrace: note: stacks were sampled: their bytes are estimates\n");
	if (moment_is_time(&v->options->at) && model_fold(v->model).until_ns)
		print_error("memtrace: note: without short-lived blocks, which were folded at the disk limit\n");
}

static int export(struct selection *v)
{
	const struct export_ops *format =
		export_find(((const struct export_options *)(const void *)v->options)->format);
	struct model_query q = MODEL_QUERY_ALL;
	struct moments m = { 0 };
	if (!format)
		return -MT_EUSAGE;
	v->by = BY_STACK;
	int e = selection_run(v, &q);
	if (e == 0)
		e = moments_find(&m, v);
	if (e == 0)
		e = export_moments(format, v, &m);
	if (e == 0)
		print_notes(v, &m);
	moments_fini(&m);
	return e;
}

int cmd_export(int argc, char **argv)
{
	struct export_options o = { 0 };
	return selection_command(&cmd_export_spec, &o, argc, argv, export);
}
