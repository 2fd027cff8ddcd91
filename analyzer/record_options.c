#include "analyzer/record_options.h"
#include "analyzer/error.h"
#include "analyzer/suggest.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library beside this program (build tree) or in ../lib (installed); "" if neither. */
static void find_library(char *path, size_t size)
{
	static const char *const places[] = { "libmemtrace.so", "../lib/libmemtrace.so", "../lib64/libmemtrace.so" };
	char self[PATH_MAX], candidate[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	*path = 0;
	if (n <= 0)
		return;
	self[n] = 0;
	*(strrchr(self, '/') + 1) = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char real[PATH_MAX];
		snprintf(candidate, sizeof(candidate), "%s%s", self, places[i]);
		if (realpath(candidate, real) && access(real, R_OK) == 0) {
			snprintf(path, size, "%s", real);
			return;
		}
	}
}

/* Under either of its names: both would be two tracers. */
void record_other_preloads(char *at, size_t size)
{
	static const char *const own[] = { "libmemtrace.so", "libmemtrace_libascend_kernel_hook.so" };
	const char *list = getenv("LD_PRELOAD"), *blank = "";

	*at = 0;
	while (list && *(list += strspn(list, ": "))) {
		size_t n = strcspn(list, ": ");
		const char *base = memrchr(list, '/', n);
		size_t length = base ? n - (size_t)(base + 1 - list) : n;
		bool is_own = false;
		base = base ? base + 1 : list;
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			is_own |= length == strlen(own[i]) && !memcmp(base, own[i], length);
		if (!is_own) {
			int written = snprintf(at, size, "%s%.*s", blank, (int)n, list);
			if (written < 0 || (size_t)written >= size)
				return;
			at += written;
			size -= (size_t)written;
			blank = " ";
		}
		list += n;
	}
}

static int check_bytes(const char *option, const char *text)
{
	uint64_t n;

	if (!text || options_bytes(text, &n) == 0)
		return 0;
	return error_set(MT_EUSAGE, option, ERROR_NO_OFFSET, "'%s' is no number of bytes (512K, 4G)", text);
}

static int no_mode(const char *text)
{
	struct suggestion s = { .text = text };
	suggest(&s, "all");
	suggest(&s, "sample");
	suggest(&s, "none");
	if (s.best)
		return error_set(MT_EUSAGE, "--stacks", ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", text, s.best);
	return error_set(MT_EUSAGE, "--stacks", ERROR_NO_OFFSET, "'%s' is not all, sample or none", text);
}

static int check_values(const struct record_options *o)
{
	int e = 0;

	if (o->stacks && strcmp(o->stacks, "all") && strcmp(o->stacks, "sample") && strcmp(o->stacks, "none"))
		return no_mode(o->stacks);
	if (o->children && strcmp(o->children, "0") && strcmp(o->children, "1"))
		return error_set(MT_EUSAGE, "--children", ERROR_NO_OFFSET, "'%s' is not 0 or 1", o->children);
	if (o->depth && (atoi(o->depth) < 1 || atoi(o->depth) > 4096))
		return error_set(MT_EUSAGE, "--depth", ERROR_NO_OFFSET, "'%s' is not between 1 and 4096", o->depth);
	if ((e = check_bytes("--sample", o->sample)) || (e = check_bytes("--limit", o->limit)) ||
	    (e = check_bytes("--keep-free", o->keep_free)))
		return e;
	return 0;
}

#define VARIABLES(X) \
	X("MEMTRACE_OUTPUT", o->output) X("MEMTRACE_STACKS", o->stacks) X("MEMTRACE_SAMPLE", o->sample) X("MEMTRACE_DEPTH", o->depth) \
	X("MEMTRACE_LIMIT", o->limit) X("MEMTRACE_KEEP_FREE", o->keep_free) X("MEMTRACE_RING_DIR", o->ring_dir) \
	X("MEMTRACE_CHILDREN", o->children) X("MEMTRACE_EXCLUDE", o->exclude) X("MEMTRACE_PAUSED", o->paused ? "1" : NULL) \
	X("MEMTRACE_PYTHON_ALLOCATORS", o->python_allocators ? "1" : NULL) X("MEMTRACE_VERBOSE", o->verbose ? "1" : NULL)

const char *const record_variables[] = {
#define X(name, value) name,
	VARIABLES(X)
#undef X
	NULL
};

int record_options_apply(const struct record_options *o, int (*set)(const char *, const char *, void *), void *context)
{
	const struct { const char *name, *value; } variables[] = {
#define X(name, value) { name, value },
		VARIABLES(X)
#undef X
	};
	char library[PATH_MAX], others[PATH_MAX], preload[2 * PATH_MAX];
	int e = check_values(o);

	if (e)
		return e;
	find_library(library, sizeof(library));
	if (!*library)
		return error_set(MT_ERUN, "libmemtrace.so", ERROR_NO_OFFSET, "is not beside this program nor in ../lib");
	if (strchr(library, ' ') || strchr(library, ':'))
		return error_set(MT_ERUN, library, ERROR_NO_OFFSET, "LD_PRELOAD can't name a path with a blank or colon");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (variables[i].value && (e = set(variables[i].name, variables[i].value, context)))
			return e;
	record_other_preloads(others, sizeof(others));
	snprintf(preload, sizeof(preload), "%s%s%s", library, *others ? " " : "", others);
	return set("LD_PRELOAD", preload, context);
}
