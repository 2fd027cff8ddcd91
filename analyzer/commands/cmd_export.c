/* memtrace export: what was alive at one moment, in the format of another tool. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/export/export.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stddef.h>

struct export_options {
	struct options common;
	const char *format, *output;
	bool all;
};

static const struct option_row rows[] = {
	{ "format", 0, "FORMAT", OPTION_STRING, offsetof(struct export_options, format),
	  "folded, speedscope, pprof, snapshot (of PyTorch), perfetto, csv, ndjson", 0 },
	{ "output", 'o', "FILE", OPTION_STRING, offsetof(struct export_options, output),
	  "write it there, not on stdout", 0 },
	{ "all", 0, NULL, OPTION_FLAG, offsetof(struct export_options, all),
	  "each stack of each kind of memory, however small", 0 },
	OPTIONS_ROW("rows", 'n', "ROWS", OPTION_ROWS, rows, "so many stacks of each kind, and the others together"),
	OPTIONS_ROW_AT,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_FILTER,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END
};

const struct option_spec cmd_export_spec = {
	"memtrace export --format FORMAT [--at TIME] [options] [DIR...]",
	"What was alive at the peak, or at another moment with --at, in the format of\n"
	"another tool: for each kind of memory its stacks and their bytes; perfetto and\n"
	"snapshot also what happened up to then. Stacks below 0.1 % are one row,\n"
	"and so are imported modules; --all has every stack.",
	rows,
	OPTIONS_TEXT | OPTIONS_INDEX,
	"  memtrace export --format folded | flamegraph.pl --countname=bytes > peak.svg\n"
	"  memtrace export --format speedscope -o peak.speedscope.json\n"
	"  memtrace export --format pprof -o peak.pb.gz       # pprof -http=: peak.pb.gz\n"
	"  memtrace export --format snapshot --at oom -o snapshot.pickle\n"
	"  memtrace export --format perfetto -o run.perfetto  # ui.perfetto.dev\n",
	"Read: docs/export.md",
};

static int export_into(const struct export_ops *format, struct selection *sel, bool all, const char *path)
{
	struct new_file file;
	int e = new_file_open(&file, path);
	if (e < 0)
		return e;
	print_into(file.file);
	e = export_run(format, sel, all);
	print_into(NULL);
	int closed = new_file_close(&file, e == 0);
	return e < 0 ? e : closed;
}

static int export(struct selection *sel)
{
	const struct export_options *o = (const struct export_options *)(const void *)sel->options;
	const struct export_ops *format = export_find(o->format);
	if (!format)
		return -MT_EUSAGE;
	if (!format->stack && (o->all || sel->options->rows))
		return error_set(MT_EUSAGE, o->all ? "--all" : "-n", ERROR_NO_OFFSET, "%s has each block, not stacks",
				 format->name);
	if (format->binary && !o->output && output_is_terminal())
		return error_set(MT_EUSAGE, "--format", ERROR_NO_OFFSET, "%s is not for a terminal: -o FILE",
				 format->name);
	return o->output ? export_into(format, sel, o->all, o->output) : export_run(format, sel, o->all);
}

int cmd_export(int argc, char **argv)
{
	struct export_options o = { 0 };
	return selection_command(&cmd_export_spec, &o, argc, argv, export);
}
