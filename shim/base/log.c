#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/disk.h"
#include "shim/base/file.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/state.h"

#define MAX_SEGMENTS 1024u /* 64 MiB of records; more is counted as unwritten */

static uint8_t *segment[MAX_SEGMENTS];
static uint64_t capacity; /* bytes that are reserved; of the last segment that may be a part */

void mt_log_reset(void)
{
	for (uint32_t i = 0; i * (uint64_t)MT_LOG_STEP < capacity; i++) {
		mt_sys_unmap(segment[i], MT_LOG_STEP);
		segment[i] = NULL;
	}
	capacity = 0;
}

void mt_log_start(uint8_t *first)
{
	segment[0] = first;
	capacity = MT_LOG_START;
	mt_file_populate(first, MT_LOG_START);
}

static int add_segment(uint32_t i)
{
	if (i == MAX_SEGMENTS || mt_process_sandboxed() || !mt_disk_charge(MT_LOG_STEP, MT_CHARGE_KEPT))
		return 0;
	segment[i] = mt_disk_map("info", MT_INFO_LOG + capacity, MT_LOG_STEP, MT_LOG_STEP, MT_EXTEND);
	if (!segment[i])
		mt_disk_refund(MT_LOG_STEP);
	return segment[i] != NULL;
}

int mt_log_reserve(size_t bytes)
{
	uint64_t end = mt_process.info->log_bytes + bytes;

	while (capacity < end) {
		uint32_t part = capacity % MT_LOG_STEP, rest = MT_LOG_STEP - part;
		if (part ? !mt_disk_reserve("info", MT_INFO_LOG + capacity, rest,
					    segment[capacity / MT_LOG_STEP] + part)
			 : !add_segment((uint32_t)(capacity / MT_LOG_STEP)))
			return 0;
		capacity += rest;
	}
	return 1;
}

static uint64_t copy(uint64_t at, const void *data, size_t bytes)
{
	const uint8_t *from = data;

	while (bytes) {
		size_t room = MT_LOG_STEP - at % MT_LOG_STEP;
		size_t n = bytes < room ? bytes : room;
		memcpy(segment[at / MT_LOG_STEP] + at % MT_LOG_STEP, from, n);
		at += n;
		from += n;
		bytes -= n;
	}
	return at;
}

void mt_log_read(uint64_t at, void *to, size_t bytes)
{
	for (uint8_t *p = to; bytes; bytes--, at++)
		*p++ = segment[at / MT_LOG_STEP][at % MT_LOG_STEP];
}

uint64_t mt_log_write(uint16_t type, const struct mt_part *parts, int n)
{
	static const uint8_t padding[8];
	struct mt_record head = { .type = type, .ticks = mt_ticks() };
	size_t bytes = sizeof(head);
	uint64_t at = mt_process.info->log_bytes, start = at;

	for (int i = 0; i < n; i++)
		bytes += parts[i].bytes;
	head.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
	if (!mt_log_reserve(head.bytes)) {
		mt_count(&mt_process.info->unwritten_bytes, head.bytes);
		return MT_LOG_NONE;
	}
	at = copy(at, &head, sizeof(head));
	for (int i = 0; i < n; i++)
		at = copy(at, parts[i].data, parts[i].bytes);
	at = copy(at, padding, head.bytes - bytes);
	/* pairs with the reader's acquire: the bytes below are complete */
	__atomic_store_n(&mt_process.info->log_bytes, at, __ATOMIC_RELEASE);
	return start;
}

uint64_t mt_log_add(uint16_t type, const struct mt_part *parts, int n)
{
	uint64_t signals, at = MT_LOG_NONE;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		at = mt_log_write(type, parts, n);
		mt_lock_drop(&mt_process.lock);
	} else {
		mt_count(&mt_process.info->unwritten_bytes, sizeof(struct mt_record));
	}
	mt_sys_restore_signals(&signals);
	return at;
}

void mt_log_replace(uint64_t at, const struct mt_part *parts, int n)
{
	uint64_t signals;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		at += sizeof(struct mt_record);
		for (int i = 0; i < n; i++)
			at = copy(at, parts[i].data, parts[i].bytes);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
}
