/* The record log of PID-N.info: records of facts that are not events. Only the holder of mt_process.lock writes. */
#ifndef MT_BASE_LOG_H
#define MT_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

struct mt_part {
	const void *data;
	size_t bytes;
};

/* In a forked child: forgets the mapping of the parent's log. */
void mt_log_reset(void);

/* Begins the log. Its first segment, at `first`, is mapped together with the head of the file. MT_LOG_START bytes of it
 * are reserved on disk, enough for what every process writes: hooks and modules. */
#define MT_LOG_START 16384u
void mt_log_start(uint8_t *first);

/* Makes room for `bytes` more, so that writing them needs no system call. Nonzero if it worked. */
int mt_log_reserve(size_t bytes);

#define MT_LOG_NONE UINT64_MAX

/* Appends one record made of `n` parts. Returns its offset in the log, or MT_LOG_NONE. The caller holds mt_process.lock
 * with signals blocked. */
uint64_t mt_log_write(uint16_t type, const struct mt_part *parts, int n);

/* The same, taking the lock. */
uint64_t mt_log_add(uint16_t type, const struct mt_part *parts, int n);

/* Writes parts of the same sizes over those of the record at `at`, taking the lock. A reader may see a part of each. */
void mt_log_replace(uint64_t at, const struct mt_part *parts, int n);

/* Reads from a record that was written: `at` is an offset in the log. */
void mt_log_read(uint64_t at, void *to, size_t bytes);

#endif
