/*
 * Options: one table per command whose rows are parsing and help at once.
 *
 *   struct leaks_options { struct options common; uint64_t fail_over; };      common must come first
 *   static const struct option_row rows[] = {
 *           OPTIONS_READ,                                                     the common ones of every reading command
 *           { "fail-over", 0, "BYTES", OPTION_BYTES, offsetof(struct leaks_options, fail_over), "exit 1 above that" },
 *           OPTIONS_END
 *   };
 *   static const struct option_spec spec = { "memtrace leaks [options] [DIR...]", "what it says", rows, 0 };
 *
 *   struct leaks_options o = { 0 };
 *   int e = options_parse(&spec, &o, argc, argv);       0 = go on; 1 = --help was printed, return 0; < 0 = wrong usage
 *   ...
 *   options_free(&o.common);
 */
#ifndef MT_OPTIONS_H
#define MT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef MEMTRACE_VERSION
#define MEMTRACE_VERSION "0.1"
#endif

struct reader;

/* A moment as the user named it. */
enum when_kind { WHEN_UNSET = 0, WHEN_SECONDS, WHEN_WALL, WHEN_PEAK, WHEN_END, WHEN_OOM, WHEN_PHASE, WHEN_STEP };
struct when {
	enum when_kind kind;
	int64_t ns;       /* WHEN_SECONDS: since the trace's start; WHEN_WALL: since 1970 */
	uint64_t number;  /* WHEN_OOM (0 = the last), WHEN_STEP */
	const char *text; /* as written */
};

enum by {
	BY_UNSET = 0, BY_STACK, BY_SITE, BY_FUNCTION, BY_FILE, BY_LIBRARY, BY_CATEGORY, BY_THREAD, BY_PROCESS, BY_SIZE,
	BY_PHASE, BY_STEP
};

/* Values of OPTIONS_READ, and where the directories go. All zero is the default. */
struct options {
	bool json;
	const char *process; /* PID or NAME */
	const char *device;
	struct when from, to, at;
	uint64_t rows;       /* 0 = the command's default */
	enum by by;
	const char *filter;
	const char *rules;   /* file of categories' rules */
	bool no_python, no_native, all_frames;
	bool force;
	const char **dirs;   /* what was left on the command line, or the newest directory; owned */
	int ndirs;
	char *newest;        /* owned storage of that */
};

enum option_type {
	OPTION_FLAG,    /* bool */
	OPTION_STRING,  /* const char *, borrowed from argv */
	OPTION_NUMBER,  /* uint64_t */
	OPTION_BYTES,   /* uint64_t, K M G T are binary */
	OPTION_SWITCH,  /* int from 0 or 1 */
	OPTION_WHEN,    /* struct when */
	OPTION_BY,      /* enum by */
};

struct option_row {
	const char *name;      /* long name without dashes */
	char letter;           /* or 0 */
	const char *argument;  /* its name in the help; NULL = takes none. Optional as in --x=Y only for OPTION_SWITCH */
	enum option_type type;
	size_t offset;         /* of the value in the command's struct */
	const char *help;
};

#define OPTIONS_END { NULL, 0, NULL, OPTION_FLAG, 0, NULL }
#define OPTIONS_ROW_JSON  { "json", 0, NULL, OPTION_FLAG, offsetof(struct options, json), "print JSON (integers in bytes and nanoseconds or seconds)" }
#define OPTIONS_ROW_FORCE { "force", 0, NULL, OPTION_FLAG, offsetof(struct options, force), "read what is intact of a damaged trace" }
#define OPTIONS_ROW_ROWS  { "rows", 'n', "ROWS", OPTION_NUMBER, offsetof(struct options, rows), "rows to print" }
#define OPTIONS_ROW_PROCESS \
	{ "process", 0, "PID|NAME", OPTION_STRING, offsetof(struct options, process), "only this process" }
#define OPTIONS_ROW_TIMES \
	{ "from", 0, "TIME", OPTION_WHEN, offsetof(struct options, from), "from then on: seconds, ISO time, step:N, phase:NAME" }, \
	{ "to", 0, "TIME", OPTION_WHEN, offsetof(struct options, to), "until then" }
#define OPTIONS_READ \
	OPTIONS_ROW_JSON, OPTIONS_ROW_PROCESS, \
	{ "device", 0, "DEVICE", OPTION_STRING, offsetof(struct options, device), "host, map, pinned, cuda:N, npu:N, UUID" }, \
	OPTIONS_ROW_TIMES, \
	{ "at", 0, "TIME", OPTION_WHEN, offsetof(struct options, at), "that moment: seconds, ISO time, peak, end, oom[:N], step:N, phase:NAME" }, \
	OPTIONS_ROW_ROWS, \
	{ "by", 0, "KEY", OPTION_BY, offsetof(struct options, by), \
	  "stack, site, function, file, library, category, thread, process, size; a timeline: process, step, phase" }, \
	{ "filter", 0, "REGEX", OPTION_STRING, offsetof(struct options, filter), "only stacks that match" }, \
	{ "rules", 0, "FILE", OPTION_STRING, offsetof(struct options, rules), "more rules for categories (MEMTRACE_RULES)" }, \
	{ "no-python", 0, NULL, OPTION_FLAG, offsetof(struct options, no_python), "without Python frames" }, \
	{ "no-native", 0, NULL, OPTION_FLAG, offsetof(struct options, no_native), "without native frames" }, \
	{ "all-frames", 0, NULL, OPTION_FLAG, offsetof(struct options, all_frames), "also frames that say little" }, \
	OPTIONS_ROW_FORCE

enum option_spec_flag {
	OPTIONS_STOP = 1,   /* the first word that is no option ends the options (memtrace run CMD ...) */
	OPTIONS_NO_DIRS = 2 /* the value struct does not begin with struct options: words are not kept in it */
};

struct option_spec {
	const char *usage;  /* "memtrace peak [options] [DIR...]" */
	const char *what;   /* a sentence or several lines for --help */
	const struct option_row *rows;
	unsigned flags;
};

/* Fills `values`. Returns 0; 1 when --help was printed; or a negative error. Without OPTIONS_NO_DIRS, `values` begins
 * with a struct options, its dirs are what is left (or the newest trace directory), and options_free() releases it. */
int options_parse(const struct option_spec *spec, void *values, int argc, char **argv);

/* Same, and *rest is the index in argv of the first word that is no option (argc if none), with OPTIONS_STOP. */
int options_parse_rest(const struct option_spec *spec, void *values, int argc, char **argv, int *rest);
void options_free(struct options *o);

/* "512K" -> 524288; returns 0 or -MT_EUSAGE. Also for environment variables. */
int options_bytes(const char *text, uint64_t *bytes);

/* The moment in nanoseconds since the trace's start. WHEN_UNSET leaves *ns alone; WHEN_END is UINT64_MAX; WHEN_PEAK is
 * the command's business; others are errors as long as traces hold no such marks. */
int options_resolve(const struct when *w, const struct reader *r, uint64_t *ns);

#endif
