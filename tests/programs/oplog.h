/* A program's own log of what it allocated and freed, in a shared file that no hook sees: tests/lib/oplog.py reads it.
 * An operation is written after its call returned, so whatever the log holds when the program is killed must be in the
 * trace. One log has one writer at a time. */
#ifndef MT_OPLOG_H
#define MT_OPLOG_H

#include "test.h"

#include <stdatomic.h>

enum op { OP_ALLOC = 1, OP_FREE, OP_REALLOC, OP_FAIL, OP_MAP, OP_UNMAP, OP_REMAP, OP_BARRIER };

struct op_record {
	uint32_t op, tid;
	uint64_t addr, size, old, old_size;
};

#define LOG_RECORDS 131000
#define LOGS 64

struct oplog {
	_Atomic uint64_t count;
	uint64_t pid;
	struct op_record record[LOG_RECORDS];
};

static struct oplog *oplogs;
static __thread struct oplog *oplog;
static __thread uint32_t oplog_tid;

static inline int oplog_full(void)
{
	return atomic_load_explicit(&oplog->count, memory_order_relaxed) > LOG_RECORDS - 1000;
}

static void oplog_use(unsigned index)
{
	oplog = &oplogs[index];
	oplog->pid = getpid();
	oplog_tid = syscall(SYS_gettid);
}

static void oplog_add(enum op op, const void *addr, uint64_t size, const void *old, uint64_t old_size)
{
	uint64_t n = atomic_load_explicit(&oplog->count, memory_order_relaxed);
	if (n >= LOG_RECORDS)
		_exit(96);
	oplog->record[n] = (struct op_record){ op, oplog_tid, (uint64_t)addr, size, (uint64_t)old, old_size };
	atomic_store_explicit(&oplog->count, n + 1, memory_order_release);
}

static void oplog_open(const char *path)
{
	oplogs = raw_map(path, LOGS * sizeof(struct oplog));
	oplog_use(0);
}

#endif
