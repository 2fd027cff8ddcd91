/* memtrace dump: the records of a trace as text, one a line. */
#include "analyzer/commands/commands.h"
#include "analyzer/report/dump/dump.h"
#include "analyzer/report/dump/dump_line.h"
#include "analyzer/report/dump/dump_samples.h"
#include "analyzer/analysis/open.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>

struct dump_options {
	struct options common;
	bool nodes;
	bool events_only;
	bool samples;
	bool symbols;
};

static const struct option_row rows[] = {
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_TIMES,
	OPTIONS_ROW_ROWS,
	{ "events", 0, NULL, OPTION_FLAG, offsetof(struct dump_options, events_only), "only events", 0 },
	{ "nodes", 0, NULL, OPTION_FLAG, offsetof(struct dump_options, nodes), "also the call tree", 0 },
	{ "samples", 0, NULL, OPTION_FLAG, offsetof(struct dump_options, samples), "only what was seen of the system",
	  0 },
	{ "symbols", 0, NULL, OPTION_FLAG, offsetof(struct dump_options, symbols), "only what is known of addresses",
	  0 },
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_dump_spec = {
	"memtrace dump [options] [DIR...]",
	"The records of a trace as text, one a line: what is known of each process, then\n"
	"its events in order of time. -n limits the events.",
	rows,
	OPTIONS_TEXT,
	"  memtrace dump --events -n 20 --from 1.5\n"
	"  memtrace dump --samples --json\n",
	"Read: docs/dump.md, docs/FORMAT.md",
};

static void dump_notes(const struct reader *r)
{
	enum { MOST_NOTES = 20 };
	unsigned notes = reader_notes(r), shown = notes > MOST_NOTES ? MOST_NOTES : notes;
	for (unsigned i = 0; i < shown; i++) {
		const struct reader_note *n = reader_note(r, i);
		print_error("memtrace: %s: %s\n", n->file, n->text);
	}
	if (shown < notes)
		print_error("memtrace: %u more: see memtrace check\n", notes - shown);
}

/* Who asks for events may want all of them. */
static void say_young(const struct reader *r)
{
	bool young = false, picked = false;
	for (unsigned i = 0; i < reader_processes(r); i++) {
		young |= reader_process(r, i)->record == MT_RECORD_YOUNG || reader_process(r, i)->mode_count;
		picked |= process_is_picked(reader_process(r, i));
	}
	if (picked)
		print_error("memtrace: note: most blocks of the heap have no events here; record with "
			    "MEMTRACE_RECORD=all\n");
	if (young)
		print_error("memtrace: note: short-lived small blocks have no events here; record with "
			    "MEMTRACE_RECORD=all\n");
}

static int dump(const struct dump_options *o, struct reader *r, bool *wanted)
{
	struct dump_range sel = { .wanted = wanted, .to = UINT64_MAX };
	sel.left = o->common.rows ? o->common.rows : UINT64_MAX;
	int e = open_resolve(&o->common.from, r, &sel.from);
	if (!e)
		e = open_resolve(&o->common.to, r, &sel.to);
	if (!e && sel.from > sel.to)
		e = error_set(MT_EUSAGE, "--from", ERROR_NO_OFFSET, "%s is after --to %s", o->common.from.text,
			      o->common.to.text);
	if (!e && reader_find(r, o->common.process, 0) == reader_processes(r))
		e = reader_no_such_process(r, o->common.process);
	if (e)
		return e;
	for (unsigned id = 0; (id = reader_find(r, o->common.process, id)) < reader_processes(r); id++) {
		wanted[id] = true;
		if (!o->events_only)
			dump_facts(reader_process(r, id), o->nodes);
	}
	e = dump_events(r, &sel);
	enum when_kind from = o->common.from.kind;
	if (!e && (from == WHEN_SECONDS || from == WHEN_WALL) && sel.from > reader_duration_ns(r))
		e = error_set(MT_EUSAGE, "--from", ERROR_NO_OFFSET, "%s is behind the end of the trace, at %s",
			      o->common.from.text, DURATION(reader_duration_ns(r)));
	return e;
}

/* --samples and --symbols are of the whole trace. */
static int check_alone(const struct dump_options *o)
{
	const struct options *c = &o->common;
	bool more = o->nodes || o->events_only || c->process || c->from.kind || c->to.kind || c->rows;
	if (o->samples && o->symbols)
		return error_set(MT_EUSAGE, "--samples", ERROR_NO_OFFSET, "not with --symbols");
	if ((o->samples || o->symbols) && more)
		return error_set(MT_EUSAGE, o->samples ? "--samples" : "--symbols", ERROR_NO_OFFSET,
				 "is alone: not with --process, --from, --to, -n, --events, --nodes");
	if (o->nodes && o->events_only)
		return error_set(MT_EUSAGE, "--nodes", ERROR_NO_OFFSET, "not with --events");
	return 0;
}

int cmd_dump(int argc, char **argv)
{
	struct dump_options o = { 0 };
	struct reader *r = NULL;
	int e = open_options(&cmd_dump_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	if ((e = check_alone(&o)) < 0) {
		options_free(&o.common);
		return e;
	}
	dump_as_json(o.common.json);
	e = reader_open(&r, o.common.dirs, o.common.ndirs, o.common.force ? READER_FORCE : 0);
	if (!e && (o.samples || o.symbols)) {
		e = o.samples ? dump_samples(r, o.common.json) : 0;
		for (int i = 0; !e && o.symbols && i < o.common.ndirs; i++)
			e = dump_symbols(o.common.dirs[i]);
		dump_notes(r);
		reader_close(r);
		options_free(&o.common);
		return e;
	}
	bool *wanted = e ? NULL : calloc(reader_processes(r), sizeof(*wanted));
	if (!e)
		e = wanted ? dump(&o, r, wanted) : error_memory();
	if (!e) {
		dump_notes(r);
		say_young(r);
	}
	free(wanted);
	reader_close(r);
	options_free(&o.common);
	return e;
}
