/* Files of a trace as the recorder reads and writes them, by position. All or nothing: false has errno, or the file
 * ended. */
#ifndef MT_RECORDER_FILE_IO_H
#define MT_RECORDER_FILE_IO_H

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file, 0600 if it is made. Neither a link is followed nor anybody waited for; what is there and no regular
 * file is ENOENT. */
int record_open(const char *path, int flags);

bool read_at(int fd, uint64_t offset, void *to, size_t bytes);
bool write_at(int fd, uint64_t offset, const void *data, size_t bytes);

/* The bytes of the block at `offset` of a trace of `size`, and its header; 0 = there is no whole one. */
uint64_t read_block_header(int fd, uint64_t offset, uint64_t size, struct mt_block *header);

#endif
