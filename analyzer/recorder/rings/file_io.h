/* Files of a trace, which the recorder reads and writes by position: all bytes or false. After false errno says why,
 * unless the file ended before. */
#ifndef MT_RECORDER_RINGS_FILE_IO_H
#define MT_RECORDER_RINGS_FILE_IO_H

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a regular file; with O_CREAT it gets mode 0600. Links are not followed, and a fifo is not waited for: both
 * fail, as does all else that is no regular file (errno ENOENT). The descriptor, or -1 with errno. */
int record_open(const char *path, int flags);

bool read_at(int fd, uint64_t offset, void *to, size_t bytes);
bool write_at(int fd, uint64_t offset, const void *data, size_t bytes);

/* Reads the header of the block at `offset` in a trace of `size` bytes. Returns the bytes of the whole block, header
 * included; 0 = no whole block is there. */
uint64_t read_block_header(int fd, uint64_t offset, uint64_t size, struct mt_block *header);

#endif
