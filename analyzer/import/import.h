/* memtrace import: a trace directory of what another program recorded. */
#ifndef MT_IMPORT_IMPORT_H
#define MT_IMPORT_IMPORT_H

#include <stdint.h>

struct imported {
	const char *what; /* "a memory snapshot of PyTorch's"; static */
	uint64_t events;  /* of its history */
	uint64_t odd;     /* that do not fit what was before them */
	uint64_t untimed; /* events without a time */
	char remark[256]; /* what is to be known of it; "" = nothing */
};

/* Makes the directory `dir` from the file `path`, whosever it is. 0 or an error, and then there is no directory. */
int import_file(const char *path, const char *dir, struct imported *out);

/* The same of one kind. */
int import_torch(const char *path, const char *dir, struct imported *out);
int import_heaptrack(const char *path, const char *dir, struct imported *out);
int import_memray(const char *path, const char *dir, struct imported *out);
int import_pprof(const char *path, const char *dir, struct imported *out);

#endif
