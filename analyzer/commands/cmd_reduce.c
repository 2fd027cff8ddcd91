/* memtrace reduce: what a fleet's questions need of one trace, as one small file. */
#include "analyzer/commands/commands.h"
#include "analyzer/reduce/reduce.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

struct reduce_options {
	struct options common;
	const char *output;
	bool columns;
};

static const struct option_row rows[] = {
	{ "output", 'o', "FILE", OPTION_STRING, offsetof(struct reduce_options, output),
	  "write it there, not to DIR/reduced.ndjson.gz", 0 },
	{ "columns", 0, NULL, OPTION_FLAG, offsetof(struct reduce_options, columns),
	  "print the tables and their columns as JSON instead", 0 },
	OPTIONS_ROW_RULES,
	OPTIONS_ROW("no-debug-files", 0, NULL, OPTION_FLAG, no_debug_files, "open no file outside the trace for names"),
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_reduce_spec = {
	"memtrace reduce [-o FILE] [options] [DIR]",
	"A trace as one file of at most 2 MB, whatever its size: what it was and how it\n"
	"ended, verdicts, devices, the stacks that matter, memory over time and by step.\n"
	"memtrace fleet asks its questions of many of them. Prints the path of the file.",
	rows,
	OPTIONS_TEXT,
	"  memtrace reduce                         # of the newest trace here\n"
	"  memtrace reduce -o rank17.ndjson.gz memtrace-17\n"
	"  MEMTRACE_REDUCE=1 torchrun ...          # the recorder does it at the end\n",
	"Next: memtrace help fleet\n"
	"Read: docs/reduce.md",
};

static int write_file(const struct reduced *r, const char *path)
{
	struct new_file file;
	int e = new_file_open(&file, path);
	if (e < 0)
		return e;
	bool whole = fwrite(r->bytes, 1, r->count, file.file) == r->count;
	return new_file_close(&file, whole);
}

static int answer(struct selection *sel)
{
	const struct reduce_options *o = (const struct reduce_options *)(const void *)sel->options;
	char *beside = output_format("%s/" REDUCE_FILE, sel->options->dirs[0]);
	const char *path = o->output ? o->output : beside;
	struct reduced r = { 0 };
	int e = path ? reduce(&r, sel) : error_memory();
	if (e == 0)
		e = write_file(&r, path);
	if (e == 0)
		print("%s\n", path);
	if (e == 0 && output_is_terminal())
		print_error("memtrace: %s, of %s events and %s stacks\n", BYTES(r.count), COUNT(r.events),
			    COUNT(r.sites));
	free(r.bytes);
	free(beside);
	return e;
}

/* --columns needs no trace, so that is asked before the newest one is looked for. Parsing moves words: those of a
 * copy. */
static int ask_columns(int argc, char **argv, bool *columns)
{
	struct reduce_options o = { 0 };
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	if (!words)
		return error_memory();
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	int e = options_parse(&cmd_reduce_spec, &o, argc, words);
	*columns = o.columns;
	if (e == 0)
		options_free(&o.common);
	free(words);
	return e;
}

int cmd_reduce(int argc, char **argv)
{
	struct reduce_options o = { .common = { .force = true } };
	bool columns = false;
	int e = ask_columns(argc, argv, &columns);
	if (e == 0 && columns)
		return reduce_print_columns();
	if (e == 0)
		e = open_options(&cmd_reduce_spec, &o, argc, argv);
	if (e)
		return e > 0 ? 0 : e;
	if (o.common.ndirs > 1) {
		options_free(&o.common);
		return error_set(MT_EUSAGE, "reduce", ERROR_NO_OFFSET, "takes one trace; memtrace fleet takes many");
	}
	return selection_answer(&cmd_reduce_spec, &o, answer);
}
