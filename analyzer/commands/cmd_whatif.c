/* memtrace whatif: the requests of the run, replayed under other settings of the framework's caching allocator, or on
 * another card. */
#include "analyzer/commands/commands.h"
#include "analyzer/analysis/open.h"
#include "analyzer/whatif/whatif_host.h"
#include "analyzer/whatif/whatif_pool.h"
#include "analyzer/util/error.h"

struct whatif_options {
	struct options common;
	struct whatif_asked asked; /* of a pool */
	const char *host;
};

static const struct option_row rows[] = {
	{ "alloc-conf", 0, "CONF", OPTION_STRING, offsetof(struct whatif_options, asked.conf),
	  "like PYTORCH_CUDA_ALLOC_CONF; without it, the usual", 0 },
	{ "device-memory", 0, "BYTES", OPTION_BYTES, offsetof(struct whatif_options, asked.device_bytes),
	  "on a card with so much memory", 0 },
	{ "without", 0, "SITE", OPTION_STRING, offsetof(struct whatif_options, asked.without),
	  "without blocks of FILE:LINE or of stacks that match a regex, the pools' Nth leak (leak:N), or copies", 0 },
	{ "scale", 0, "SITE=N", OPTION_STRING, offsetof(struct whatif_options, asked.scale),
	  "with N times the bytes for these; batch=N: for what depends on the batch", 0 },
	{ "host", 0, "SETTING", OPTION_STRING, offsetof(struct whatif_options, host),
	  "the heap again: jemalloc, MALLOC_ARENA_MAX=2 ...; all", 0 },
	OPTIONS_ROW_PROCESS,
	OPTIONS_ROW_DEVICE,
	OPTIONS_ROW_JSON,
	OPTIONS_ROW_RULES,
	OPTIONS_ROW_FRAMES,
	OPTIONS_ROW_FORCE,
	OPTIONS_ROW_QUIET,
	OPTIONS_END,
};

const struct option_spec cmd_whatif_spec = {
	"memtrace whatif [--alloc-conf CONF] [options] [DIR...]",
	"Replays the recorded requests with another setting of PyTorch's allocator, on\n"
	"another card, without some blocks, or with another malloc. The run itself is\n"
	"replayed first: if that does not agree with the trace, there is no answer.",
	rows,
	0,
	"  memtrace whatif                            # the usual settings, ranked\n"
	"  memtrace whatif --alloc-conf expandable_segments:True\n"
	"  memtrace whatif --device-memory 40G\n"
	"  memtrace whatif --without train.py:73      # had that line kept nothing\n"
	"  memtrace whatif --scale batch=2            # at least so much, at most so much\n"
	"  memtrace whatif --host jemalloc            # malloc's memory with that one\n",
	"Read: docs/whatif.md",
};

static int whatif(struct selection *sel)
{
	const struct whatif_options *o = (const struct whatif_options *)sel->options;
	if (o->host && (o->asked.conf || o->asked.without || o->asked.scale || o->asked.device_bytes))
		return error_set(MT_EUSAGE, "--host", ERROR_NO_OFFSET, "is of the heap: one question at a time");
	return o->host ? whatif_host(sel, o->host) : whatif_pool(sel, &o->asked);
}

int cmd_whatif(int argc, char **argv)
{
	struct whatif_options o = { 0 };
	return selection_command(&cmd_whatif_spec, &o, argc, argv, whatif);
}
