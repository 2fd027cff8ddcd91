/*
 * memtrace dump: the records of a trace as text, one a line. The lines are a contract: scripts/decode.py prints the
 * same from the documented format alone.
 *
 *   process ID PID IMAGE origin ORIGIN parent PPID PARENT_IMAGE clock CLOCK start TICKS fork TICKS nodes BASE END
 *   stacks MODE
 *           depth N sample N exit KIND CODE
 *   program ID EXE ARG...       env ID SETTING...      hook ID NUMBER NAME      file ID NUMBER PATH
 *   module ID START END BIAS NODE_FROM NODE_UNTIL BUILD_ID PATH                 (NODE_UNTIL "-": still loaded)
 *   thread ID INDEX TID NAME    child ID PID KIND CODE
 *   code ID NUMBER VERSION FIRST_LINE FILE NAME LINES                           (LINES: its line table, in hexadecimal)
 *   node ID NUMBER PARENT PC FLAGS                                              (with --nodes)
 *   alloc ID TICKS RING ADDR SIZE HOOK NODE NODE2      free ID TICKS RING ADDR HOOK
 *   fail ID TICKS RING BYTES KIND HOOK NODE NODE2      undo ID TICKS RING ADDR HOOK
 *   map ID TICKS RING ADDR SIZE HOOK NODE NODE2 PROT FLAGS FILE OFFSET OLD      unmap ID TICKS RING ADDR SIZE HOOK
 *   owner ID TICKS RING THREAD  lost ID TICKS RING EVENTS
 *   symbol PATH BUILD_ID ADDRESS FUNCTION FILE LANGUAGE LINE INLINED          (with --symbols, alone; one a frame)
 *   sample, gone: see dump_samples.c                                            (with --samples, alone)
 *
 * ID counts processes in order of start. Numbers are decimal but for addresses and flags (0x); strings are JSON's. With
 * --json each line is an object with the same names.
 */
#include "analyzer/commands/commands.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/reader/reader.h"
#include "analyzer/report/screen/dump_samples.h"
#include "analyzer/report/json/json.h"
#include "analyzer/analysis/open.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- one line -------------------------------------------------------------------------------------------- */

static bool json;

static void put_hex(const unsigned char *bytes, unsigned n)
{
	if (json || !n)
		print(json ? "\"" : "-");
	for (unsigned i = 0; i < n; i++)
		print("%02x", bytes[i]);
	if (json)
		print("\"");
}

/* Ours, and there are millions. */
static void print_word(const char *word)
{
	print_as_is(word, strlen(word));
}

static void begin(const char *record, unsigned process)
{
	print_word(json ? "{\"record\":\"" : "");
	print_word(record);
	print_word(json ? "\",\"process\":" : " ");
	print_decimal(process);
}

static void end(void)
{
	print_word(json ? "}\n" : "\n");
}

/* The separator and, in JSON, the name. */
static void name(const char *key)
{
	print_word(json ? ",\"" : " ");
	if (json) {
		print_word(key);
		print_word("\":");
	}
}

static void number(const char *key, uint64_t n)
{
	name(key);
	print_decimal(n);
}

static void address(const char *key, uint64_t n)
{
	name(key);
	(json ? print_decimal : print_hexadecimal)(n);
}

static void word(const char *key, const char *s)
{
	name(key);
	print(json ? "\"%s\"" : "%s", s);
}

static void text(const char *key, const char *s)
{
	name(key);
	json_print_text(s);
}

/* A word of the trace's own, without blanks: they separate words. */
static void function(const char *key, const char *s)
{
	name(key);
	if (json) {
		json_print_text(s);
		return;
	}
	for (size_t n; (n = strcspn(s, " ")), s[n]; s += n + 1)
		print("%.*s?", (int)n, s);
	print_text(s);
}

/* A label that only text has: in JSON the keys say as much. */
static void label(const char *s)
{
	if (!json)
		print(" %s", s);
}

static void list(const char *key, const char *const *strings)
{
	if (json)
		print(",\"%s\":[", key);
	for (int i = 0; strings[i]; i++) {
		if (!json || i)
			print(json ? "," : " ");
		json_print_text(strings[i]);
	}
	if (json)
		print("]");
}

/* ---- facts ----------------------------------------------------------------------------------------------- */

static void dump_limits(const struct process *p)
{
	begin("limits", p->id);
	label("address");
	number("address_used", p->address_used);
	label("of");
	number("address_limit", p->address_limit);
	label("data");
	number("data_used", p->data_used);
	label("of");
	number("data_limit", p->data_limit);
	label("shm");
	number("shm_used", p->shm_used);
	end();
}

/* It was not recorded all the time. */
static void dump_recorded(const struct process *p)
{
	begin("recorded", p->id);
	label("from");
	number("recorded_ticks", p->recorded_ticks);
	label("to");
	number("stopped_ticks", p->stopped_ticks);
	label("stops");
	number("stops", p->stops);
	label("gaps");
	number("gap_ticks", p->gap_ticks);
	end();
}

/* Where its parent forked it. */
static void dump_fork(const struct process *p)
{
	begin("forked", p->id);
	label("at");
	number("node", p->fork_node);
	number("node2", p->fork_node2);
	end();
}

static void dump_process(const struct process *p)
{
	static const char *const stacks[] = { "all", "sample", "none" };
	begin("process", p->id);
	number("pid", p->pid);
	number("image", p->image);
	label("origin");
	word("origin", p->origin == MT_ORIGIN_FORK ? "fork" : "exec");
	label("parent");
	number("ppid", p->ppid);
	number("parent_image", p->parent_image);
	label("clock");
	number("clock", p->clock);
	label("start");
	number("start_ticks", p->start_ticks);
	label("fork");
	number("fork_ticks", p->fork_ticks);
	label("nodes");
	number("node_base", p->node_base);
	number("node_end", p->node_end);
	label("stacks");
	word("stacks", stacks[p->stacks]);
	label("depth");
	number("depth", p->depth);
	label("sample");
	number("sample_bytes", p->sample_bytes);
	label("exit");
	word("exit", exit_name(p->own_exit_kind));
	name("code");
	print("%" PRId32, p->own_exit_code);
	end();
	if (p->address_limit || p->data_limit || p->shm_used)
		dump_limits(p);
	if (p->recorded_ticks || process_was_stopped(p))
		dump_recorded(p);
	if (p->fork_node)
		dump_fork(p);
}

static void dump_program(const struct process *p)
{
	begin("program", p->id);
	text("exe", p->exe);
	list("argv", p->argv);
	end();
	begin("env", p->id);
	list("env", p->env);
	end();
}

static void dump_module(const struct process *p, const struct process_module *m)
{
	begin("module", p->id);
	address("start", m->start);
	address("end", m->end);
	address("bias", m->bias);
	number("node_from", m->node_from);
	if (m->node_until == UINT32_MAX) {
		name("node_until");
		print(json ? "null" : "-");
	} else {
		number("node_until", m->node_until);
	}
	name("build_id");
	put_hex(m->build_id, m->build_id_bytes);
	text("path", m->path);
	end();
}

static void dump_hooks(const struct process *p)
{
	for (unsigned i = 0; i < 1024; i++) {
		const char *hook = process_hook(p, i);
		if (!strcmp(hook, "?"))
			continue;
		begin("hook", p->id);
		number("id", i);
		text("name", hook);
		end();
	}
}

static void dump_files(const struct process *p)
{
	for (unsigned i = 0; i < p->file_count; i++) {
		begin("file", p->id);
		number("id", p->files[i].id);
		text("path", p->files[i].path);
		end();
	}
}

static void dump_threads(const struct process *p)
{
	for (uint32_t i = 0; i < p->thread_end; i++) {
		const struct process_thread *t = process_thread(p, i);
		if (!t)
			continue;
		begin("thread", p->id);
		number("index", t->index);
		number("tid", t->tid);
		text("name", t->name);
		end();
	}
}

static void dump_children(const struct process *p)
{
	for (unsigned i = 0; i < p->child_count; i++) {
		begin("child", p->id);
		number("pid", p->children[i].pid);
		word("exit", exit_name(p->children[i].kind));
		name("code");
		print("%" PRId32, p->children[i].code);
		end();
	}
}

static void dump_codes(const struct process *p)
{
	for (unsigned i = 0; i < p->code_count; i++) {
		const struct process_code *c = &p->codes[i];
		begin("code", p->id);
		number("id", c->id);
		address("version", c->version);
		number("first_line", c->first_line);
		text("file", c->file);
		text("name", c->name);
		name("lines");
		put_hex(c->table, c->table_bytes);
		end();
	}
}

static void dump_devices(const struct process *p)
{
	for (unsigned i = 0; i < p->device_count; i++) {
		const struct process_device *d = &p->devices[i];
		begin("device", p->id);
		number("id", d->id);
		number("backend", d->backend);
		number("ordinal", d->ordinal);
		number("total", d->total_bytes);
		text("uuid", d->uuid);
		text("name", d->name);
		end();
	}
	for (uint32_t i = 1; i < process_marks(p); i++) {
		if (!*process_mark(p, i))
			continue;
		begin("name", p->id);
		number("id", i);
		text("name", process_mark(p, i));
		end();
	}
}

static void dump_nodes(const struct process *p)
{
	for (uint32_t id = p->node_base; id < p->node_end; id++) {
		const struct mt_node *n = process_node(p, id);
		if (!n)
			continue;
		begin("node", p->id);
		number("id", id);
		number("parent", n->parent);
		address("pc", n->pc);
		address("flags", n->flags);
		end();
	}
}

static void dump_facts(const struct dump_options *o, const struct process *p)
{
	dump_process(p);
	dump_program(p);
	for (unsigned i = 0; i < p->module_count; i++)
		dump_module(p, &p->modules[i]);
	dump_hooks(p);
	dump_files(p);
	dump_threads(p);
	dump_children(p);
	dump_codes(p);
	dump_devices(p);
	if (o->nodes)
		dump_nodes(p);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static void put_nodes(const struct process *p, const struct mt_event *s)
{
	function("hook", process_hook(p, s->hook));
	number("node", s->node);
	number("node2", s->node2);
}

static void put_map(const struct process *p, const struct mt_event *s)
{
	struct mt_ext_map ext;
	memcpy(&ext, s + 1, sizeof(ext));
	address("addr", s->addr);
	number("size", s->size);
	put_nodes(p, s);
	address("prot", ext.prot);
	address("flags", ext.flags);
	number("file", ext.file);
	number("offset", ext.offset);
	address("old", ext.old);
}

/* Device events and marks all have the same columns. */
static void put_device(const struct process *p, const struct mt_event *s)
{
	struct mt_ext_device ext;
	memcpy(&ext, s + 1, sizeof(ext));
	address("addr", s->addr);
	number("size", s->size);
	put_nodes(p, s);
	number("class", ext.class);
	number("device", ext.device);
	number("source", ext.source);
	address("stream", ext.stream);
	number("other", ext.other);
	number("status", ext.status);
	if (ext.capture)
		number("capture", ext.capture);
}

static void put_slot(const struct process *p, const struct mt_event *s)
{
	switch (s->kind) {
	case MT_ALLOC:
		address("addr", s->addr);
		number("size", s->size);
		put_nodes(p, s);
		break;
	case MT_FAIL:
		number("bytes", s->addr);
		word("kind", (s->size & ~(uint64_t)MT_TRIAL) != MT_MAP ? "heap"
			     : s->size & MT_TRIAL                      ? "map-trial"
								       : "map");
		put_nodes(p, s);
		break;
	case MT_MAP:
		put_map(p, s);
		break;
	case MT_UNMAP:
		address("addr", s->addr);
		number("size", s->size);
		function("hook", process_hook(p, s->hook));
		break;
	case MT_FREE:
	case MT_UNDO:
		address("addr", s->addr);
		function("hook", process_hook(p, s->hook));
		break;
	case MT_THREAD:
		number("thread", s->addr);
		if (s->size)
			number("tid", s->size);
		break;
	case MT_LOST:
		number("events", s->addr);
		break;
	default:
		put_device(p, s);
	}
}

static void dump_slot(const struct process *p, const struct mt_event *s, uint32_t ring)
{
	static const char *const kinds[] = {
		[MT_ALLOC] = "alloc",
		[MT_FREE] = "free",
		[MT_FAIL] = "fail",
		[MT_UNDO] = "undo",
		[MT_MAP] = "map",
		[MT_UNMAP] = "unmap",
		[MT_THREAD] = "owner",
		[MT_LOST] = "lost",
		[MT_DEVICE_ALLOC] = "device-alloc",
		[MT_DEVICE_FREE] = "device-free",
		[MT_DEVICE_FAIL] = "device-fail",
		[MT_DEVICE_UNDO] = "device-undo",
		[MT_DEVICE_MAP] = "device-map",
		[MT_DEVICE_UNMAP] = "device-unmap",
		[MT_DEVICE_RESET] = "device-reset",
		[MT_DEVICE_INFO] = "device-info",
		[MT_MARK] = "mark",
		[MT_FOLD] = "fold",
	};
	begin(kinds[s->kind], p->id);
	number("ticks", s->ticks);
	number("ring", ring);
	put_slot(p, s);
	end();
}

struct dump_range {
	const bool *wanted; /* by process */
	uint64_t from, to;
	uint64_t left; /* events that may still be printed */
};

static void dump_step(const struct reader_step *step, struct dump_range *sel)
{
	const struct process *p = step->process;
	for (size_t i = 0; i < step->count && sel->left; i++) {
		const struct mt_event *s = &step->slots[i];
		if (s->kind == MT_EXT)
			continue;
		uint64_t ns = process_ns(p, s->ticks);
		if (ns < sel->from || ns > sel->to)
			continue;
		dump_slot(p, s, step->rings[i]);
		sel->left--;
	}
}

static int dump_events(struct reader *r, struct dump_range *sel)
{
	enum { PROGRESS_EVENTS = 65536 };
	struct reader_step step;
	size_t seen = 0;
	int e = 0;
	while (sel->left && (e = reader_next(r, &step)) > 0) {
		seen += step.count + 1;
		if (seen >= PROGRESS_EVENTS && !output_is_terminal()) {
			struct reader_progress p = reader_progress(r);
			output_progress(p.done, p.events);
			seen = 0;
		}
		if (step.what == READER_EVENTS && sel->wanted[step.process->id])
			dump_step(&step, sel);
	}
	output_progress_end();
	return e < 0 ? e : 0;
}

/* ---- symbols --------------------------------------------------------------------------------------------- */

static void put_or_none(const char *key, const char *text)
{
	name(key);
	if (text)
		json_print_text(text);
	else
		print(json ? "null" : "-");
}

static void dump_symbol(const struct module_id *id, uint64_t at, const struct frame *f)
{
	print(json ? "{\"record\":\"symbol\"" : "symbol");
	put_or_none("path", id->path);
	name("build_id");
	put_hex(id->build_id, (unsigned)id->build_id_bytes);
	address("address", at);
	put_or_none("function", f->function);
	put_or_none("file", f->file);
	put_or_none("language", f->language);
	number("line", f->line);
	number("inlined", f->inlined);
	end();
}

/* As the file has them, without looking anything up. */
static int dump_symbols(const char *dir)
{
	struct symbols *symbols = symbols_new();
	struct symbol_place *places = NULL;
	size_t count = 0;
	int e = symbols ? symbol_file_read(symbols, dir) : error_memory();
	if (!e)
		e = symbols_places(symbols, &places, &count);
	for (size_t i = 0; i < count; i++) {
		struct module_id id = symbols_id(places[i].module);
		for (size_t k = 0; k < places[i].count; k++)
			dump_symbol(&id, places[i].address, &places[i].frames[k]);
	}
	free(places);
	symbols_free(symbols);
	return e;
}

/* ---- the command ----------------------------------------------------------------------------------------- */

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
			dump_facts(o, reader_process(r, id));
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
	json = o.common.json;
	e = reader_open(&r, o.common.dirs, o.common.ndirs, o.common.force ? READER_FORCE : 0);
	if (!e && (o.samples || o.symbols)) {
		e = o.samples ? dump_samples(r, json) : 0;
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
	if (!e)
		dump_notes(r);
	free(wanted);
	reader_close(r);
	options_free(&o.common);
	return e;
}
