#include "analyzer/commands/launch_options.h"
#include "analyzer/util/error.h"
#include "analyzer/util/print.h"
#include "analyzer/util/suggest.h"
#include "format/format.h"
#include "format/settings.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As Debian calls the folder of a machine's libraries. */
#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "."
#endif

void record_library(char *path, size_t size)
{
	static const char *const places[] = { "libmemtrace.so", "../lib/libmemtrace.so", "../lib64/libmemtrace.so",
					      "../lib/" TRIPLET "/libmemtrace.so" };
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

/* ---- names that nobody reads ---- */

static bool is_setting(const char *name, size_t n)
{
	for (unsigned i = 0; i < MT_SETTINGS; i++) {
		size_t length = strlen(mt_settings[i].name);
		bool family = mt_settings[i].name[length - 1] == '_';
		if (family ? n > length && !strncmp(name, mt_settings[i].name, length)
			   : n == length && !strncmp(name, mt_settings[i].name, n))
			return true;
	}
	return false;
}

static void remark(const char *name, size_t n)
{
	char typed[64];
	struct suggestion s = { .text = typed };

	snprintf(typed, sizeof(typed), "%.*s", (int)(n - strlen(MT_SETTING_PREFIX)), name + strlen(MT_SETTING_PREFIX));
	for (unsigned i = 0; i < MT_SETTINGS; i++)
		suggest(&s, mt_settings[i].name + strlen(MT_SETTING_PREFIX));
	for (char *c = typed; *c; c++)
		*c = isalnum((unsigned char)*c) || *c == '_' ? *c : '?';
	print_error("memtrace: " MT_SETTING_PREFIX "%s is no setting", typed);
	print_error(s.best ? "; did you mean " MT_SETTING_PREFIX "%s?\n" : " and has no effect\n", s.best);
}

void record_unknown_variables(void)
{
	static bool done;

	for (char **e = environ; !done && *e; e++) {
		size_t n = strcspn(*e, "=");
		if (!strncmp(*e, MT_SETTING_PREFIX, strlen(MT_SETTING_PREFIX)) && !is_setting(*e, n))
			remark(*e, n);
	}
	done = true;
}

/* ---- values ---- */

/* clang-format off */
#define VARIABLES(X) \
	X(OUTPUT, "--output", o->output) X(RECORD, "--record", o->record) X(STACKS, "--stacks", o->stacks) X(SAMPLE, "--sample", o->sample) X(DEPTH, "--depth", o->depth) \
	X(LIMIT, "--limit", o->limit) X(KEEP_FREE, "--keep-free", o->keep_free) X(RING_DIR, "--ring-dir", o->ring_dir) \
	X(CHILDREN, "--children", o->children) X(EXCLUDE, "--exclude", o->exclude) X(PAUSED, "--paused", o->paused ? "1" : NULL) \
	X(PYTHON_ALLOCATORS, "--python-allocators", o->python_allocators ? "1" : NULL) X(REDUCE, "--reduce", o->reduce ? "1" : NULL) \
	X(HOLDERS, "--holders", o->holders ? "1" : NULL) X(VERBOSE, "--verbose", o->verbose ? "1" : NULL)
/* clang-format on */

const char *const record_variables[] = {
#define X(name, option, value) MT_SETTING_PREFIX #name,
	VARIABLES(X)
#undef X
		NULL
};

/* `where` it stands: the option or the variable. */
static int no_value(enum mt_setting which, const char *where, const char *text)
{
	struct suggestion s = { .text = text };

	if (which == MT_SET_STACKS) {
		suggest(&s, "all");
		suggest(&s, "sample");
		suggest(&s, "none");
	}
	if (which == MT_SET_RECORD) {
		suggest(&s, "all");
		suggest(&s, "young");
		suggest(&s, "sampled");
	}
	if (s.best)
		return error_set(MT_EUSAGE, where, ERROR_NO_OFFSET, "unknown value '%s'; did you mean '%s'?", text,
				 s.best);
	return error_set(MT_EUSAGE, where, ERROR_NO_OFFSET, "'%s' %s", text, mt_settings[which].wrong);
}

/* What an option does not set the environment may: the recorded process could only tell, and go on with the default. */
static int check_values(const struct record_options *o)
{
	const char *options[MT_SETTINGS] = {
#define X(name, option, value) [MT_SET_##name] = option,
		VARIABLES(X)
#undef X
	};
	const char *values[MT_SETTINGS] = {
#define X(name, option, value) [MT_SET_##name] = value,
		VARIABLES(X)
#undef X
	};

	for (unsigned i = 0; i < MT_SETTINGS; i++) {
		const char *text = values[i] ? values[i] : getenv(mt_settings[i].name);
		uint64_t unused;
		bool empty = values[i] && !*text && mt_settings[i].kind != MT_SETTING_TEXT;
		if (mt_setting_read(i, text, &unused) || empty)
			return no_value(i, values[i] ? options[i] : mt_settings[i].name, text);
	}
	return 0;
}

/* As the recorded process will find: it is recorded all the same. */
static void remark_ring_dir(const char *dir)
{
	struct stat st;

	if (dir && *dir &&
	    (strncmp(dir, "/dev/shm", 8) == 0 || stat(dir, &st) || !S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK)))
		print_error("memtrace: %s: no directory that can be written to, so the rings are not there\n", dir);
}

static bool is_sampled(const struct record_options *o)
{
	const char *text = o->record ? o->record : getenv(mt_settings[MT_SET_RECORD].name);
	uint64_t mode;
	return !mt_setting_read(MT_SET_RECORD, text, &mode) && mode == MT_RECORD_SAMPLED;
}

static bool wants_holders(const struct record_options *o)
{
	uint64_t on = 0;
	return o->holders || (!mt_setting_read(MT_SET_HOLDERS, getenv(mt_settings[MT_SET_HOLDERS].name), &on) && on);
}

int launch_options_apply(const struct record_options *o, int (*set)(const char *, const char *, void *), void *context)
{
	const struct {
		const char *name, *value;
	} variables[] = {
#define X(name, option, value) { MT_SETTING_PREFIX #name, value },
		VARIABLES(X)
#undef X
	};
	char library[PATH_MAX], others[PATH_MAX], preload[2 * PATH_MAX];
	int e = check_values(o);

	if (!e && is_sampled(o) && wants_holders(o))
		e = error_set(MT_EUSAGE, "--holders", ERROR_NO_OFFSET, "needs every block: not with --record sampled");
	if (e)
		return e;
	remark_ring_dir(o->ring_dir ? o->ring_dir : getenv(mt_settings[MT_SET_RING_DIR].name));
	record_library(library, sizeof(library));
	if (!*library)
		return error_set(MT_ERUN, "libmemtrace.so", ERROR_NO_OFFSET,
				 "is not beside this program nor in ../lib");
	if (strchr(library, ' ') || strchr(library, ':'))
		return error_set(MT_ERUN, library, ERROR_NO_OFFSET,
				 "LD_PRELOAD can't name a path with a blank or colon");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (variables[i].value && (e = set(variables[i].name, variables[i].value, context)))
			return e;
	record_other_preloads(others, sizeof(others));
	snprintf(preload, sizeof(preload), "%s%s%s", library, *others ? " " : "", others);
	return set("LD_PRELOAD", preload, context);
}
