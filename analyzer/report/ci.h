/*
 * What a command has to complain of, in the words of CI systems. A format is one file, ci_NAME.c, and one row in
 * ci.def.
 *
 * A command collects findings, then prints them all at once. A finding that fails is what `--fail-over` makes of it, or
 * what a report says of a program that failed; others are remarks.
 *
 * Names in texts and paths are the trace's: they may hold anything. print() makes them harmless for terminals; what
 * means something in the format itself is the format's to replace.
 */
#ifndef MT_REPORT_CI_H
#define MT_REPORT_CI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ci_finding {
	char *rule; /* "leak", "alive": the same for findings of one kind */
	char *text; /* a sentence */
	char *file; /* of the line that it is about, relative if it lies below the working directory; NULL = none */
	uint32_t line;
	bool fails;
};

struct ci_format;

struct ci {
	const struct ci_format *format; /* NULL: nothing is collected or printed */
	const char *command;            /* "leaks" */
	struct ci_finding *findings;
	size_t count;
};

struct ci_format {
	const char *name;
	void (*print)(const struct ci *);
};

#define CI_FORMAT(format) extern const struct ci_format ci_##format;
#include "analyzer/report/ci.def"
#undef CI_FORMAT

/* "sarif"; NULL: there is no such format. */
const struct ci_format *ci_find(const char *name);

/* For a command that has no other formats: 0, or wrong usage. `name` may be NULL: then ci->format is. */
int ci_init(struct ci *ci, const char *command, const char *name, bool json);

/* Takes `text`, which may be NULL when there is no memory. `file` is as the trace has it, or NULL. Does nothing without
 * a format, or after memory ended. */
void ci_add(struct ci *ci, bool fails, const char *rule, char *text, const char *file, uint32_t line);

/* Prints, if there is a format, and releases. 0 or -MT_E*. */
int ci_finish(struct ci *ci);
void ci_fini(struct ci *ci);

#endif
