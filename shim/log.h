/* The record log of PID-N.info: facts that are not events. Written under mt_process.lock, read by anyone. */
#ifndef MT_LOG_H
#define MT_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

struct mt_part {
	const void *data;
	size_t bytes;
};

/* Forgets the mapping of a parent's log. */
void mt_log_reset(void);

/* The first segment is mapped with the head of the file, and so much of it reserved: what every process writes, hooks
 * and modules. */
#define MT_LOG_START 16384u
void mt_log_start(uint8_t *first);

/* Makes room for `bytes` more, so that writing needs no system call. */
int mt_log_reserve(size_t bytes);

#define MT_LOG_NONE UINT64_MAX

/* Appends one record made of `n` parts. Its place, or MT_LOG_NONE. The caller holds mt_process.lock with signals
 * blocked. */
uint64_t mt_log_write(uint16_t type, const struct mt_part *parts, int n);

/* The same, taking the lock. */
uint64_t mt_log_add(uint16_t type, const struct mt_part *parts, int n);

/* Part of a record that was written. */
void mt_log_read(uint64_t at, void *to, size_t bytes);

#endif
