/*
 * Options: one table per command whose rows are parsing and help at once.
 *
 *   struct leaks_options { struct options common; uint64_t fail_over; };      common must come first
 *   static const struct option_row rows[] = {
 *           OPTIONS_ROW_JSON, OPTIONS_ROW_FORCE,                              those of the common ones that it uses
 *           { "fail-over", 0, "BYTES", OPTION_BYTES, offsetof(struct leaks_options, fail_over), "exit 1 above that", 0
 *           }, OPTIONS_END
 *   };
 *   const struct option_spec cmd_leaks_spec = { "memtrace leaks [options] [DIR...]", "what it says", rows, 0,
 *   "examples", NULL };
 *
 *   struct leaks_options o = { 0 };
 *   int e = options_parse(&cmd_leaks_spec, &o, argc, argv);       0 = go on; 1 = --help was printed, return 0; < 0 =
 *   wrong usage ...
 *   options_free(&o.common);
 */
#ifndef MT_UTIL_OPTIONS_H
#define MT_UTIL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A moment as the user named it. */
enum when_kind { WHEN_UNSET = 0, WHEN_SECONDS, WHEN_WALL, WHEN_PEAK, WHEN_END, WHEN_OOM, WHEN_PHASE, WHEN_STEP };
struct when {
	enum when_kind kind;
	int64_t ns;       /* WHEN_SECONDS: since the trace's start; WHEN_WALL: since 1970 */
	uint64_t number;  /* WHEN_OOM (0 = the last), WHEN_STEP */
	const char *text; /* as written */
};

enum by {
	BY_UNSET = 0,
	BY_STACK,
	BY_SITE,
	BY_FUNCTION,
	BY_FILE,
	BY_LIBRARY,
	BY_CATEGORY,
	BY_THREAD,
	BY_PROCESS,
	BY_SIZE,
	BY_PHASE,
	BY_STEP,
	BY_HOLDER,
	BY_END /* above the last */
};

/* Of a command's options those that several commands have, and where the directories go. All zero is the default. */
struct options {
	bool json;
	bool csv; /* of a timeline */
	bool quiet;
	const char *process; /* PID or NAME */
	const char *device;
	struct when from, to, at;
	uint64_t rows; /* 0 = the command's default, OPTIONS_ALL_ROWS = all */
	enum by by;
	const char *filter;
	const char *rules; /* file of categories' rules */
	bool no_python, no_native, all_frames;
	bool no_debug_files;
	bool force;
	const char **dirs; /* what was left on the command line, or the newest directory; owned */
	int ndirs;
	char *newest; /* owned storage of that */
	/* what screens call the directories, where these are gone when they are read; NULL = as they are called */
	const char *shown;
};

#define OPTIONS_ALL_ROWS UINT64_MAX

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_STRING,   /* const char *, borrowed from argv */
	OPTION_NUMBER,   /* uint64_t */
	OPTION_ROWS,     /* uint64_t; 0 and all are OPTIONS_ALL_ROWS */
	OPTION_BYTES,    /* uint64_t, K M G T are binary */
	OPTION_DURATION, /* uint64_t ns */
	OPTION_SWITCH,   /* int from 0 or 1 */
	OPTION_WHEN,     /* struct when */
	OPTION_BY,       /* enum by */
};

/* What the command does not use it has no row for: an option without effect is wrong usage. */
struct option_row {
	const char *name; /* long name without dashes */
	char letter;      /* or 0 */
	/* its name in the help; NULL = takes none. Optional as in --x=Y only for OPTION_SWITCH */
	const char *argument;
	enum option_type type;
	size_t offset; /* of the value in the command's struct */
	const char *help;
	unsigned keys; /* OPTION_BY: 1 << enum by of those that the command knows */
};

#define OPTIONS_END { NULL, 0, NULL, OPTION_FLAG, 0, NULL, 0 }
#define OPTIONS_ROW(name, letter, argument, type, field, help) \
	{ name, letter, argument, type, offsetof(struct options, field), help, 0 }
#define OPTIONS_ROW_JSON \
	OPTIONS_ROW("json", 0, NULL, OPTION_FLAG, json, "print JSON; docs/JSON.md has its keys and units")
#define OPTIONS_ROW_CSV   OPTIONS_ROW("csv", 0, NULL, OPTION_FLAG, csv, "print CSV: each stretch of time a row")
#define OPTIONS_ROW_FORCE OPTIONS_ROW("force", 0, NULL, OPTION_FLAG, force, "read what is intact of a damaged trace")
#define OPTIONS_ROW_QUIET OPTIONS_ROW("quiet", 'q', NULL, OPTION_FLAG, quiet, "don't show on stderr how far reading is")
#define OPTIONS_ROW_ROWS \
	OPTIONS_ROW("rows", 'n', "ROWS", OPTION_ROWS, rows, "so many rows of each list; 0 or all: all of them")
#define OPTIONS_ROW_PROCESS \
	OPTIONS_ROW("process", 0, "PID|NAME", OPTION_STRING, process, "only this process; rank:N: those of it")
#define OPTIONS_ROW_DEVICE \
	OPTIONS_ROW("device", 0, "DEVICE", OPTION_STRING, device, "host, map, pinned, cuda:N, hip:N, npu:N or UUID")
#define OPTIONS_ROW_AT OPTIONS_ROW("at", 0, "TIME", OPTION_WHEN, at, "that moment: as --from, or peak, end, oom[:N]")
#define OPTIONS_ROW_FILTER \
	OPTIONS_ROW("filter", 0, "REGEX", OPTION_STRING, filter, "only stacks with a frame that matches")
#define OPTIONS_ROW_RULES \
	OPTIONS_ROW("rules", 0, "FILE", OPTION_STRING, rules, "more rules for categories (MEMTRACE_RULES)")
#define OPTIONS_ROW_TIMES \
	OPTIONS_ROW("from", 0, "TIME", OPTION_WHEN, from, "from then on: 12.5, an ISO time, step:N or phase:NAME"), \
		OPTIONS_ROW("to", 0, "TIME", OPTION_WHEN, to, "until then")
#define OPTIONS_ROW_FRAMES \
	OPTIONS_ROW("no-python", 0, NULL, OPTION_FLAG, no_python, "without Python frames"), \
		OPTIONS_ROW("no-native", 0, NULL, OPTION_FLAG, no_native, "without native frames"), \
		OPTIONS_ROW("all-frames", 0, NULL, OPTION_FLAG, all_frames, "also frames that say little"), \
		OPTIONS_ROW("no-debug-files", 0, NULL, OPTION_FLAG, no_debug_files, \
			    "open no file outside the trace for names")
#define OPTIONS_ROW_BY(keys) { "by", 0, "KEY", OPTION_BY, offsetof(struct options, by), "one row for each", keys }

/* What owners can be added up by. */
#define OPTIONS_BY_OWNERS \
	(1u << BY_STACK | 1u << BY_SITE | 1u << BY_FUNCTION | 1u << BY_FILE | 1u << BY_LIBRARY | 1u << BY_CATEGORY | \
	 1u << BY_THREAD | 1u << BY_PROCESS | 1u << BY_SIZE)

enum option_spec_flag {
	OPTIONS_STOP = 1,    /* the first word that is no option ends the options (memtrace run CMD ...) */
	OPTIONS_NO_DIRS = 2, /* the value struct does not begin with struct options: words are not kept in it */
	OPTIONS_TEXT = 4,    /* what it prints is for programs even without --json, and stays as it is */
	/* it looks at the trace by analysis_run() or selection_run() first: what these find may be kept */
	OPTIONS_INDEX = 8
};

struct option_spec {
	const char *usage;             /* "memtrace peak [options] [DIR...]" */
	const char *what;              /* a sentence or several lines for --help, of 80 columns */
	const struct option_row *rows; /* the most used ones first */
	unsigned flags;
	const char *examples; /* lines: a command, "# what it shows" */
	const char *more;     /* what to read; may be NULL */
};

/* A command as main knows it. */
struct option_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* one line; "" = not listed */
	const struct option_spec *spec;
};

/* Where to look for what was meant by a wrong option; ended by a name that is NULL. Borrowed. */
void options_set_commands(const struct option_command *commands);

/* Fills `values`. Returns 0; 1 when --help was printed; or a negative error. Without OPTIONS_NO_DIRS, `values` begins
 * with a struct options, its dirs are what is left, with room for one more, and options_free() releases it. */
int options_parse(const struct option_spec *spec, void *values, int argc, char **argv);

/* Same, and *rest is the index in argv of the first word that is no option (argc if none), with OPTIONS_STOP. */
int options_parse_rest(const struct option_spec *spec, void *values, int argc, char **argv, int *rest);
void options_free(struct options *o);

/* Prints what --help says. */
void options_help(const struct option_spec *spec);

/* What --help says of one option, its keys included, into the caller's buffer; returns it. 1024 bytes suffice. */
const char *options_row_help(const struct option_row *row, char *help, size_t size);

/* "site" */
const char *options_by_name(enum by by);

/* What a command that is shown names as directory i. */
static inline const char *options_shown(const struct options *o, int i)
{
	return o->shown ? o->shown : o->dirs[i];
}

/* "90%" or "90"; 0 or -MT_EUSAGE. */
int options_percent(const char *text, double *percent);

#endif
