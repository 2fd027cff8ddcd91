/* memtrace symbolize: looks up every address of a trace's call trees and keeps the answers in the trace. Files that are
 * here are read; what an earlier run found in files that are not here any more is kept. */
#include "analyzer/commands/cmd_symbolize.h"

#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdio.h>
#include <stdlib.h>

static const struct option_row rows[] = {
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_symbolize_spec = {
	"memtrace symbolize [--force] [DIR...]",
	"Keeps function, file and line of every address of the trace in DIR/symbols, so\n"
	"that it reads the same on a machine without the programs that were recorded.\n"
	"Where DEBUGINFOD_URLS is set, its servers are asked for debug information.\n"
	"memtrace run does this by itself, without servers.",
	rows,
	0,
	"  memtrace symbolize memtrace-python-host-4711\n",
	"Read: docs/symbolize.md",
};

static int say(const struct symbols *s, const char *dir)
{
	struct symbol_place *places;
	size_t count, named = 0;
	unsigned without = 0, given_up = 0;
	int e = symbols_places(s, &places, &count);
	if (e)
		return e;
	for (size_t i = 0; i < count; i++)
		named += places[i].frames->function != NULL;
	free(places);
	for (struct symbol_module *m = NULL; (m = symbols_next(s, m));) {
		given_up += symbols_state(m) == SYMBOLS_GIVEN_UP;
		without += *symbols_path(m) == '/' &&
			   (symbols_state(m) == SYMBOLS_MISSING || symbols_state(m) == SYMBOLS_REPLACED);
	}
	print("%s: %zu addresses, %zu with a name", dir, count, named);
	if (without)
		print("; files missing or replaced since: %u", without);
	if (given_up)
		print("; files that can't be read: %u", given_up);
	print("\n");
	return 0;
}

static void show_progress(size_t done, size_t all)
{
	output_progress_of("looking up", all, "addresses", (double)done / (double)all);
}

/* Old answers come last: a file that is here says more than what was known of it. */
void symbolize_look_up(struct reader *r, struct stacks *stacks, const char *dir, const struct symbolize_options *o)
{
	struct symbols *s = stacks_symbols(stacks);
	if (o->servers)
		symbols_use_servers(s);
	for (unsigned id = 0; id < reader_processes(r); id++)
		stacks_prepare_all(stacks, reader_process(r, id));
	stacks_look_ahead(stacks, show_progress);
	output_progress_end();
	if (symbol_file_read(s, dir) < 0 && !o->quiet)
		print_error("memtrace: note: %s: %s; made anew\n", error_get()->file, error_get()->why);
}

int symbolize(const char *dir, const struct symbolize_options *o)
{
	struct reader *r;
	int e = reader_open(&r, &dir, 1, o->force ? READER_FORCE : 0);
	if (e)
		return e;
	struct stacks *stacks = stacks_new();
	if (stacks)
		symbolize_look_up(r, stacks, dir, o);
	e = stacks ? symbol_file_write(stacks_symbols(stacks), dir) : error_memory();
	if (!e && !o->quiet)
		e = say(stacks_symbols(stacks), dir);
	stacks_free(stacks);
	reader_close(r);
	return e;
}

int cmd_symbolize(int argc, char **argv)
{
	struct options o = { 0 };
	int e = open_options(&cmd_symbolize_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	for (int i = 0; !e && i < o.ndirs; i++)
		e = symbolize(o.dirs[i], &(struct symbolize_options){ .servers = true, .force = o.force });
	options_free(&o);
	return e;
}
