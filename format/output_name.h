/* The name of a trace directory from MEMTRACE_OUTPUT, for the shim and for `memtrace run` alike. Allocates nothing. */
#ifndef MT_OUTPUT_NAME_H
#define MT_OUTPUT_NAME_H

#include <stddef.h>
#include <stdint.h>

#define MT_OUTPUT_DEFAULT "memtrace-%n-%h-%p"

/* Which variables say a process's rank in its job, and which job that is; the first that is set counts. Both end with
 * NULL. */
extern const char *const mt_rank_variables[];
extern const char *const mt_job_variables[];

/* Bounded string building; both return the end of the string in dst, which stays NUL-terminated below `end`. */
char *mt_put(char *at, char *end, const char *s);
char *mt_put_number(char *at, char *end, uint64_t n);

/* Prefixes the working directory if `path` is relative. */
char *mt_put_absolute(char *at, char *end, const char *path);

/* Expands %n program, %h host, %p pid, %r rank, %j job; absolute. Leaves room for a suffix like ".2". */
void mt_output_name(char *dst, size_t size, const char *pattern, const char *program, uint32_t pid);

/* Makes the directory dst, else dst.2, dst.3 ...; parents too. dst gets the name that was free. 0 or -errno. */
int mt_output_make(char *dst, size_t size);

/* What the names of raw files in a ring directory begin with: "memtrace-", the session's start_real_ns in hex, ".". It
 * is the session's own, whatever its directory is called now. */
#define MT_RAW_PREFIX 32
void mt_raw_prefix(char dst[MT_RAW_PREFIX], uint64_t start_real_ns);

/* The part of a path after its last slash. */
const char *mt_base_name(const char *path);

#endif
