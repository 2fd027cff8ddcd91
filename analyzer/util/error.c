#include "analyzer/util/error.h"

#include "analyzer/util/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct row {
	const char *what, *advice;
	int status;
} rows[] = { [MT_OK] = { "no error", "nothing", 0 },
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

int error_exit_status(int code)
{
	return row_of(code)->status;
}
const struct error *error_get(void)
{
	return &latest;
}

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

int error_memory(void)
{
	return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
}

int error_errno(int code, const char *file, int64_t offset)
{
	return error_set(code, file, offset, "%s: %s", row_of(code)->what, strerror(errno));
}

void error_command(const char *name)
{
	command = name;
}

void error_print(void)
{
	const char *file = latest.file;
	size_t n = strlen(latest.why);
	/* what to do is in there */
	bool usage = latest.code == MT_EUSAGE && command, advised = n && latest.why[n - 1] == '?';
	char offset[32] = "", advice[128] = "";
	if (latest.offset != ERROR_NO_OFFSET)
		snprintf(offset, sizeof(offset), "offset %" PRId64 ": ", latest.offset);
	if (!advised && usage)
		snprintf(advice, sizeof(advice), "; see memtrace %s --help", command);
	else if (!advised)
		snprintf(advice, sizeof(advice), "; %s", row_of(latest.code)->advice);
	print_error("memtrace: %s%s%s%s%s\n", file, *file ? ": " : "", offset, latest.why, advice);
}
