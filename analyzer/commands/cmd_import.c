/* memtrace import: what other programs recorded, as a trace. */
#include "analyzer/commands/commands.h"
#include "analyzer/import/import.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>

struct import_options {
	struct options common;
	const char *output;
};

static const struct option_row rows[] = {
	{ "output", 'o', "DIR", OPTION_STRING, offsetof(struct import_options, output),
	  "write it there, not to FILE.memtrace", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_import_spec = {
	"memtrace import [-o DIR] FILE",
	"Makes a trace of what another program has recorded, for report, peak, leaks,\n"
	"frag, html, diff, whatif and all else. FILE is a memory snapshot of PyTorch's\n"
	"(torch.cuda.memory._dump_snapshot), a recording of heaptrack's or memray's, or a\n"
	"profile of JAX's (jax.profiler.save_device_memory_profile) or another's in\n"
	"pprof's format. It may be compressed by gzip, zstd or LZ4. Nothing that is in it\n"
	"is run. Prints the path of the trace.",
	rows,
	OPTIONS_TEXT,
	"  memtrace import snapshot.pickle\n"
	"  memtrace report snapshot.pickle.memtrace\n"
	"  memtrace frag snapshot.pickle.memtrace\n"
	"  memtrace import heaptrack.app.4711.zst\n"
	"  memtrace import memray-train.py.4711.bin\n"
	"  memtrace import memory.prof\n",
	"Read: docs/import.md",
};

static int import(const char *path, const char *dir)
{
	struct imported done = { 0 };
	int e = import_file(path, dir, &done);
	if (e < 0)
		return e;
	print("%s\n", dir);
	if (done.odd)
		print_error("memtrace: note: %s: %s of %s events do not fit the rest\n", path, COUNT(done.odd),
			    COUNT(done.events));
	if (done.untimed)
		print_error("memtrace: note: %s: %s of %s events have no time\n", path, COUNT(done.untimed),
			    COUNT(done.events));
	if (*done.remark)
		print_error("memtrace: note: %s: %s\n", path, done.remark);
	return 0;
}

int cmd_import(int argc, char **argv)
{
	struct import_options o = { 0 };
	int e = options_parse(&cmd_import_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	if (o.common.ndirs != 1)
		e = error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "import takes one file");
	char *beside = e ? NULL : output_format("%s.memtrace", o.common.dirs[0]);
	if (!e)
		e = beside ? import(o.common.dirs[0], o.output ? o.output : beside) : error_memory();
	free(beside);
	options_free(&o.common);
	return e;
}
