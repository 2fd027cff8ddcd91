/*
 * A packed trace is a tar file, compressed by zstd, of one or several trace directories (memtrace pack, or tar --zstd).
 * It is read as if it were the directory: a path is ARCHIVE/FILE, or ARCHIVE/FOLDER/FILE where it holds several traces.
 * While the command runs its contents lie in an unnamed file in TMPDIR, so no name in an archive is ever opened.
 */
#ifndef MT_READER_FILES_PACKED_H
#define MT_READER_FILES_PACKED_H

#include <stddef.h>
#include <stdint.h>

struct packed_member {
	int fd; /* of the unnamed file; borrowed */
	uint64_t offset, bytes;
	uint64_t disk; /* its share of what the archive takes */
};

/* 1 with *out; 0: there is no such member; or an error: the archive is no packed trace, is damaged or too large, or
 * holds files that no trace has. May be called from several threads. */
int packed_find(const char *path, struct packed_member *out);

/* The name of file `number`, from 0, of ARCHIVE or ARCHIVE/FOLDER; NULL behind the last. Borrowed. */
const char *packed_file(const char *dir, size_t number);

/* How many traces the archive holds; 0 if `path` is no regular file; < 0: an error. The path of each, by number from 0;
 * borrowed. */
int packed_traces(const char *path);
const char *packed_trace(const char *path, int number);

#endif
