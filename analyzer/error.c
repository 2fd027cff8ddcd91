#include "analyzer/error.h"

#include "analyzer/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
	const char *what, *advice;
	int status;
} rows[] = {
	[MT_OK] = { "no error", "nothing", 0 },
#define X(code, status, what, advice) [code] = { what, advice, status },
	ERROR_MAP(X)
#undef X
};

static _Thread_local struct error latest;
static const char *command;

static const struct row *row_of(int code)
{
	if (code < 0)
		code = -code;
	return &rows[code < MT_ECODES ? code : MT_EFORMAT];
}

int error_exit_status(int code) { return row_of(code)->status; }
const struct error *error_get(void) { return &latest; }

int error_set(int code, const char *file, int64_t offset, const char *format, ...)
{
	latest.code = code;
	latest.offset = offset;
	snprintf(latest.file, sizeof(latest.file), "%s", file ? file : "");
	snprintf(latest.why, sizeof(latest.why), "%s", row_of(code)->what);
	if (format) {
		va_list args;
		va_start(args, format);
		vsnprintf(latest.why, sizeof(latest.why), format, args);
		va_end(args);
	}
	return -code;
}

int error_errno(int code, const char *file, int64_t offset)
{
	return error_set(code, file, offset, "%s: %s", row_of(code)->what, strerror(errno));
}

void error_command(const char *name)
{
	command = name;
}

/* Names in there may be the trace's, or what somebody typed. */
static void print_clean(const char *text)
{
	char *clean = output_clean(text);
	fputs(clean ? clean : "", stderr);
	free(clean);
}

void error_print(void)
{
	size_t n = strlen(latest.why);
	fprintf(stderr, "memtrace: ");
	if (*latest.file) {
		print_clean(latest.file);
		fprintf(stderr, ": ");
	}
	if (latest.offset != ERROR_NO_OFFSET)
		fprintf(stderr, "offset %" PRId64 ": ", latest.offset);
	print_clean(latest.why);
	if (n && latest.why[n - 1] == '?') /* what to do is in there */
		fprintf(stderr, "\n");
	else if (latest.code == MT_EUSAGE && command)
		fprintf(stderr, "; see memtrace %s --help\n", command);
	else
		fprintf(stderr, "; %s\n", row_of(latest.code)->advice);
}
