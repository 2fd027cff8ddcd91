/*
 * Findings of a command in the formats of CI systems. A format is one file, ci_NAME.c, and one row in ci.def.
 *
 * A command collects its findings, then prints them all at once. A finding fails the CI job if it is over the command's
 * `--fail-over`, or is a report's on a program that failed; others are remarks.
 *
 * Names in texts and paths are the trace's: they may hold anything. print() makes them harmless for terminals; what
 * means something in the format itself is the format's to replace.
 */
#ifndef MT_REPORT_CI_CI_H
#define MT_REPORT_CI_CI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ci_finding {
	char *rule; /* the kind of finding: "leak", "alive" */
	char *text; /* a sentence */
	char *file; /* source file that it is about, relative if below the working directory; NULL = none */
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
#include "analyzer/report/ci/ci.def"
#undef CI_FORMAT

/* "sarif"; NULL: there is no such format. */
const struct ci_format *ci_find(const char *name);

/* For a command whose --format has no other values. `name` is that value, or NULL: then ci->format is NULL too. `json`:
 * --json was given, which excludes a format. 0 or -MT_EUSAGE. */
int ci_init(struct ci *ci, const char *command, const char *name, bool json);

/* Adds a finding. Takes over `text`; if that is NULL there is no memory, and nothing is added from then on. `file` is
 * the path in the trace, or NULL; it is copied. Without a format nothing is added. */
void ci_add(struct ci *ci, bool fails, const char *rule, char *text, const char *file, uint32_t line);

/* Prints all findings, if there is a format, and does ci_fini(). 0 or -MT_E*. */
int ci_finish(struct ci *ci);
void ci_fini(struct ci *ci);

#endif
