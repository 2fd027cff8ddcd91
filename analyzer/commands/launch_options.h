/* How to record: the options that `memtrace run` and `memtrace env` share. Each stands for an environment variable that
 * the shim reads (docs/VARIABLES.md). */
#ifndef MT_COMMANDS_LAUNCH_OPTIONS_H
#define MT_COMMANDS_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "analyzer/util/options.h"

/* Texts as they were typed; NULL = the option was not given. */
struct record_options {
	const char *output, *record, *stacks, *sample, *depth, *limit, *keep_free, *ring_dir, *children, *exclude;
	bool paused, python_allocators, reduce, holders, verbose;
	bool no_report;   /* of `memtrace run` alone */
	const char *html; /* of `memtrace run` alone */
	const char *pid;  /* of `memtrace run` alone */
};

#define RECORD_ROW(name, letter, argument, field, help) \
	{ name, letter, argument, OPTION_STRING, offsetof(struct record_options, field), help, 0 }
#define RECORD_ROWS \
	RECORD_ROW("output", 'o', "DIR", output, "trace directory; %n program %h host %p pid %r rank %j job"), \
		RECORD_ROW("record", 0, "MODE", record, "all, young, auto or sampled: which blocks [auto]"), \
		RECORD_ROW("stacks", 0, "MODE", stacks, "all, sample or none: of heap blocks [all]"), \
		RECORD_ROW("sample", 0, "BYTES", sample, "mean bytes between samples of blocks or stacks [512K]"), \
		RECORD_ROW("depth", 0, "FRAMES", depth, "frames kept, innermost first [1024]"), \
		RECORD_ROW("limit", 0, "BYTES", limit, "disk limit of the trace; 0 = none [4G]"), \
		RECORD_ROW("keep-free", 0, "BYTES", keep_free, "stop growing when the file system has less [1G]"), \
		RECORD_ROW("ring-dir", 0, "DIR", ring_dir, "where mapped files live [the trace, if it is local]"), \
		RECORD_ROW("children", 0, "0|1", children, "follow fork and exec [1]"), \
		RECORD_ROW("exclude", 0, "GLOBS", exclude, "program names not to record"), \
		{ "paused", \
		  0, \
		  NULL, \
		  OPTION_FLAG, \
		  offsetof(struct record_options, paused), \
		  "record from memtrace_start() on", \
		  0 }, \
		{ "python-allocators", \
		  0, \
		  NULL, \
		  OPTION_FLAG, \
		  offsetof(struct record_options, python_allocators), \
		  "see objects inside pymalloc too (PYTHONMALLOC=malloc)", \
		  0 }, \
		{ "reduce", 0, NULL, OPTION_FLAG, offsetof(struct record_options, reduce), "memtrace reduce at the end", \
		  0 }, \
		{ "holders", \
		  0, \
		  NULL, \
		  OPTION_FLAG, \
		  offsetof(struct record_options, holders), \
		  "note which object of Python keeps the memory", \
		  0 }, \
		{ "verbose", \
		  'v', \
		  NULL, \
		  OPTION_FLAG, \
		  offsetof(struct record_options, verbose), \
		  "what the shim does, on stderr", \
		  0 }

/* The variables that the options set, but for LD_PRELOAD; ends with NULL. */
extern const char *const record_variables[];

/* Warns on stderr of each MEMTRACE_* in the environment that is no setting, and names the one that may be meant. Only
 * the first call does. */
void record_unknown_variables(void);

/* The library's path: beside this program (build tree) or in ../lib (installed); "" if it is in neither. */
void record_library(char *path, size_t size);

/* The value of LD_PRELOAD without this library. */
void record_other_preloads(char *list, size_t size);

/* Calls set(NAME, VALUE, context) for every MEMTRACE_* that the options ask for, and for LD_PRELOAD, whose value begins
 * with the library. Returns 0 or an error: a value that makes no sense, no library beside the program, or what set()
 * returned. */
int launch_options_apply(const struct record_options *o, int (*set)(const char *, const char *, void *), void *context);

#endif
