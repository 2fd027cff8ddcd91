/* memtrace pack: traces as one file that every command reads; with --redact one that is safe to attach. */
#include "analyzer/commands/cmd_pack.h"
#include "analyzer/commands/cmd_symbolize.h"
#include "analyzer/commands/commands.h"
#include "analyzer/reader/reader.h"
#include "analyzer/analysis/open.h"
#include "analyzer/pack/pack.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/symbols/symbol_file.h"
#include "analyzer/util/error.h"
#include "analyzer/util/system/new_file.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"
#include "analyzer/util/system/unnamed_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct pack_options {
	struct options common;
	const char *output, *salt;
	bool redact;
};

static const struct option_row rows[] = {
	{ "output", 'o', "FILE", OPTION_STRING, offsetof(struct pack_options, output), "where to; NAME.tar.zst", 0 },
	{ "redact", 0, NULL, OPTION_FLAG, offsetof(struct pack_options, redact),
	  "hash paths, arguments, hosts, and names of what is not widely known", 0 },
	{ "salt", 0, "TEXT", OPTION_STRING, offsetof(struct pack_options, salt),
	  "with --redact: the same hashes as other packs with it (random)", 0 },
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_pack_spec = {
	"memtrace pack [--redact] -o FILE [DIR...]",
	"Packs traces, with the names of their functions, into one file that every\n"
	"command reads like the directory, on any machine. With --redact names become\n"
	"hashes, the same name the same hash; numbers and the names of libc, Python,\n"
	"PyTorch, CUDA and the like stay.",
	rows,
	0,
	"  memtrace pack -o run.tar.zst memtrace-python-host-4711\n"
	"  memtrace pack --redact -o run.tar.zst; memtrace report run.tar.zst\n",
	"Read: docs/pack.md",
};

struct packing {
	struct pack *pack;
	struct redact *redact; /* NULL: names as they are */
	unsigned number;       /* of the trace, from 1 */
	uint64_t samples_end;
};

static void name_member(const struct packing *p, const char *name, char out[100])
{
	snprintf(out, 100, "memtrace-%u/%s", p->number, name);
}

static int add_redacted(struct packing *p, const char *name, const char *member, const struct file *file)
{
	int e;
	FILE *to = unnamed_stream(&e);
	if (to)
		e = pack_redact_file(p->redact, name, file, to, &p->samples_end);
	if (!e)
		e = pack_add_stream(p->pack, member, to);
	else if (e > 0)
		e = pack_add_file(p->pack, member, file);
	if (to)
		fclose(to);
	return e;
}

static int add_file(void *context, const char *name, const struct file *file)
{
	struct packing *p = context;
	const char *extension = strrchr(name, '.');
	char member[100];
	if (p->redact && extension && !strcmp(extension, ".holders"))
		return 0; /* it consists of names */
	name_member(p, name, member);
	return p->redact ? add_redacted(p, name, member, file) : pack_add_file(p->pack, member, file);
}

/* What the trace's own file has, and what the programs say that are here. */
static int add_symbols(struct packing *p, struct reader *r, const char *dir, const struct options *o)
{
	struct stacks *stacks = stacks_new();
	void *bytes = NULL;
	size_t n;
	char member[100];
	if (!stacks)
		return error_memory();
	symbolize_look_up(r, stacks, dir, &(struct symbolize_options){ .quiet = o->quiet });
	int e = symbol_file_make(stacks_symbols(stacks), p->redact, &bytes, &n);
	name_member(p, "symbols", member);
	if (!e)
		e = pack_add_bytes(p->pack, member, bytes, n);
	free(bytes);
	stacks_free(stacks);
	return e;
}

static int add_trace(struct packing *p, const char *dir, const struct options *o)
{
	struct reader *r;
	const struct process *running = NULL;
	int e = reader_open(&r, &dir, 1, o->force ? READER_FORCE : 0);
	if (e)
		return e;
	p->number++;
	p->samples_end = 0;
	if ((running = reader_recording(r)) != NULL)
		e = error_set(MT_ECHANGED, dir, ERROR_NO_OFFSET, "is still being recorded: pid %" PRIu32, running->pid);
	if (!e)
		e = reader_files(r, add_file, p);
	if (!e)
		e = add_symbols(p, r, dir, o);
	reader_close(r);
	return e;
}

static int pack_into(struct packing *p, FILE *to, const char *path, const struct options *o)
{
	int e = pack_open(&p->pack, to, path);
	for (int i = 0; !e && i < o->ndirs; i++)
		e = add_trace(p, o->dirs[i], o);
	int closed = pack_close(p->pack, !e);
	return e ? e : closed;
}

int pack_redacted(const struct options *o, FILE *to)
{
	struct packing p = { .redact = redact_new(NULL) };
	int e = p.redact ? pack_into(&p, to, "TMPDIR", o) : error_memory();
	redact_free(p.redact);
	return e;
}

static int pack(const struct pack_options *o)
{
	struct packing p = { 0 };
	struct new_file file;
	struct stat st;
	if (!o->output)
		return error_set(MT_EUSAGE, "--output", ERROR_NO_OFFSET, "where to? -o FILE");
	if (o->salt && !o->redact)
		return error_set(MT_EUSAGE, "--salt", ERROR_NO_OFFSET, "means something with --redact alone");
	if (o->redact && !(p.redact = redact_new(o->salt)))
		return error_memory();
	int e = new_file_open(&file, o->output);
	if (!e) {
		e = pack_into(&p, file.file, o->output, &o->common);
		int closed = new_file_close(&file, !e);
		e = e ? e : closed;
	}
	redact_free(p.redact);
	if (!e && !o->common.quiet && !stat(o->output, &st))
		print("%s: %s\n", o->output, BYTES((uint64_t)st.st_size));
	return e;
}

int cmd_pack(int argc, char **argv)
{
	struct pack_options o = { 0 };
	int e = open_options(&cmd_pack_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	e = pack(&o);
	options_free(&o.common);
	return e;
}
