/*
 * Packed traces: a tar file, compressed by zstd, of one or several trace directories (memtrace pack, or tar --zstd).
 * One is read as if it were the directory: what is in it lies in a file without a name in TMPDIR while the command
 * runs, and no name in it is ever opened. A path is ARCHIVE/FILE, or ARCHIVE/FOLDER/FILE where several traces are in it.
 */
#ifndef MT_READER_PACKED_H
#define MT_READER_PACKED_H

#include <stddef.h>
#include <stdint.h>

struct packed_member {
	int fd;
	uint64_t offset, bytes;
	uint64_t disk; /* its share of what the archive takes */
};

/* 1 and *out, 0 if there is no such member, or an error: no packed trace, or one that is damaged, too large, or holds
 * what no trace does. Fine from several threads. */
int packed_find(const char *path, struct packed_member *out);

/* Names of the files of ARCHIVE or ARCHIVE/FOLDER by number; NULL behind the last. Borrowed. */
const char *packed_file(const char *dir, size_t number);

/* How many traces are in it; 0 if `path` is no regular file. The path of each by number, borrowed. */
int packed_traces(const char *path);
const char *packed_trace(const char *path, int number);

#endif
