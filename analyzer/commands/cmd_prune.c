/* memtrace prune: old traces go. */
#include "analyzer/commands/commands.h"
#include "analyzer/reader/reader.h"
#include "analyzer/reader/trace_list.h"
#include "analyzer/util/error.h"
#include "analyzer/util/options.h"
#include "analyzer/util/output.h"
#include "analyzer/util/print.h"

#include <time.h>

struct prune_options {
	struct options common;
	uint64_t keep, most; /* keep: OPTIONS_ALL_ROWS and most: 0 where they are not said */
	bool dry;
};

static const struct option_row rows[] = {
	{ "keep", 0, "N", OPTION_NUMBER, offsetof(struct prune_options, keep), "the newest N stay", 0 },
	{ "max-use", 0, "SIZE", OPTION_BYTES, offsetof(struct prune_options, most),
	  "the oldest go until all of them take no more than that", 0 },
	{ "dry-run", 0, NULL, OPTION_FLAG, offsetof(struct prune_options, dry), "only say what would go", 0 },
	OPTIONS_END,
};

const struct option_spec cmd_prune_spec = {
	"memtrace prune [--keep N] [--max-use SIZE] [--dry-run] [DIR]",
	"Removes old traces in a directory (the working directory), as memtrace list\n"
	"finds them, and says which. One that is being recorded, another user's, and a\n"
	"directory with anything else in it are left alone.",
	rows,
	0,
	"  memtrace prune --keep 10 --dry-run\n"
	"  memtrace prune --max-use 50G /scratch/traces\n",
	"Read: docs/prune.md",
};

/* A trace without a process may be one that is just beginning. */
static bool is_young(const struct listed_trace *t)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return ns < t->start_real_ns + 60ull * 1000000000;
}

static bool is_recorded(const struct listed_trace *t)
{
	struct reader *r;
	const char *dir = t->dir;
	if (reader_open(&r, &dir, 1, READER_FORCE) < 0)
		return is_young(t);
	bool recorded = reader_recording(r) != NULL;
	reader_close(r);
	return recorded;
}

static int prune_one(const struct listed_trace *t, bool dry, enum trace_removed *done)
{
	static const char *const left[] = { NULL, "something in it is no trace's", "it is another user's" };
	bool recorded = is_recorded(t); /* or it went just now, and could not be read for that */
	int e = trace_list_remove(t, dry || recorded);
	if (e < 0)
		return e;
	*done = recorded && e != TRACE_GONE ? TRACE_HOLDS_MORE : (enum trace_removed)e;
	if (*done == TRACE_REMOVED)
		print("%s  %s  %s\n", dry ? "would go" : "removed ", t->dir, BYTES(t->bytes));
	else if (*done != TRACE_GONE)
		print("left     %s: %s\n", t->dir, recorded ? "it is being recorded" : left[*done]);
	return 0;
}

/* From the oldest on. */
static int prune(const struct trace_list *all, const struct prune_options *o)
{
	uint64_t use = 0, freed = 0;
	size_t count = 0;
	int e = 0;
	for (size_t i = 0; i < all->count; i++)
		use += all->list[i].bytes;
	for (size_t i = all->count; !e && i-- > 0;) {
		const struct listed_trace *t = &all->list[i];
		bool many = i >= o->keep, large = o->most && use - freed > o->most;
		enum trace_removed done;
		if (!many && !large)
			continue;
		e = prune_one(t, o->dry, &done);
		freed += !e && done == TRACE_REMOVED ? t->bytes : 0;
		count += !e && done == TRACE_REMOVED;
		use -= !e && done == TRACE_GONE ? t->bytes : 0; /* else we would take a younger one in its place */
	}
	print("%zu of %zu traces %s, %s of %s\n", count, all->count, o->dry ? "would go" : "removed", BYTES(freed),
	      BYTES(use));
	return e;
}

int cmd_prune(int argc, char **argv)
{
	struct prune_options o = { .keep = OPTIONS_ALL_ROWS };
	struct trace_list all = { 0 };
	int e = options_parse(&cmd_prune_spec, &o, argc, argv);
	if (e)
		return e < 0 ? e : 0;
	if (o.keep == OPTIONS_ALL_ROWS && !o.most)
		e = error_set(MT_EUSAGE, NULL, ERROR_NO_OFFSET, "what is to stay? --keep N or --max-use SIZE");
	else
		e = trace_list_make(&all, o.common.dirs, o.common.ndirs);
	if (!e)
		e = prune(&all, &o);
	trace_list_fini(&all);
	options_free(&o.common);
	return e;
}
