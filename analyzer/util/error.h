/*
 * What can go wrong in the analyzer. Functions return 0 or a negative -MT_E*; who finds the trouble calls error_set()
 * once with the details, everybody above passes the code on, and main prints the one line and picks the exit status.
 *
 *   return error_set(MT_EFORMAT, path, offset, "block length %" PRIu64 " is beyond the end of the file", n);
 */
#ifndef MT_UTIL_ERROR_H
#define MT_UTIL_ERROR_H

#include <stdint.h>

/* code, exit status, what is wrong (when error_set got no text), what to do */
/* clang-format off */
#define ERROR_MAP(X)                                                                                              \
	X(MT_EUSAGE,    2, "wrong usage",                        "see memtrace --help")                           \
	X(MT_ENOTRACE,  3, "no trace here",                      "name a directory that memtrace wrote")          \
	X(MT_ENOPROCESS, 3, "holds no process",                  "memtrace run --verbose says what was in the way") \
	X(MT_EIO,       3, "can't be read",                      "check the path and its permissions")            \
	X(MT_EMEMORY,   3, "not enough memory",                  "use a larger machine, or raise MEMTRACE_READ_MEMORY")\
	X(MT_ELARGE,    3, "would take too much memory",         "set MEMTRACE_READ_MEMORY=SIZE to have it read") \
	X(MT_EEMPTY,    3, "is empty",                           "copy it again, or use --force for the rest")    \
	X(MT_ECUT,      3, "is cut off",                         "copy it again, or use --force for the rest")    \
	X(MT_EMAGIC,    3, "is not a memtrace file",             "copy it again, or use --force for the rest")    \
	X(MT_EVERSION,  3, "was written by another version",     "read it with that version of memtrace")         \
	X(MT_EFORMAT,   3, "is damaged",                         "copy it again, or use --force for the rest")    \
	X(MT_ECHECKSUM, 3, "has a block with a wrong checksum",  "copy it again, or use --force for the rest")    \
	X(MT_ECHANGED,  3, "changed while it was being read",    "try again")                                     \
	X(MT_ERUN,      3, "can't be run",                       "check the command")                             \
	X(MT_EDENIED, 126, "can't be run",                       "check the command, and its permissions")        \
	X(MT_ENOPROGRAM, 127, "can't be run",                    "check the command, and PATH")                   \
	X(MT_EATTACH,   3, "can't be attached to",               "docs/start.md says what can")                   \
	X(MT_EREPLAY,   3, "can't be replayed",                  "docs/whatif.md says what can")                  \
	X(MT_EOUTPUT,   3, "can't be written",                   "check the disk and the permissions")
/* clang-format on */

enum error_code {
	MT_OK = 0,
#define X(code, status, what, advice) code,
	ERROR_MAP(X)
#undef X
		MT_ECODES
};

#define ERROR_NO_OFFSET (-1)

/* The error being passed up. */
struct error {
	int code;
	int64_t offset;  /* in the file, or ERROR_NO_OFFSET */
	char file[1024]; /* or option or command; may be empty */
	char why[512];
};

/* Remembers the details and returns -code. `file` may be NULL; `format` may be NULL for the map's own text. The latest
 * call wins. Also fine from a second thread: the details are per thread, see error_get(). */
int error_set(int code, const char *file, int64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The one for which there is nothing more to say: no memory. Returns -MT_EMEMORY. */
int error_memory(void);

/* Same with errno's text appended. */
int error_errno(int code, const char *file, int64_t offset);

/* The calling thread's latest error, borrowed. */
const struct error *error_get(void);

int error_exit_status(int code);

/* Prints `memtrace: FILE: offset N: what is wrong; what to do` on stderr, for main only. */
void error_print(void);

/* Whose --help wrong usage is told to see; borrowed. */
void error_command(const char *name);

#endif
