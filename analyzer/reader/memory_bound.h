/*
 * How much memory reading a trace may take. A trace is somebody's: a few kilobytes of it can stand for gigabytes.
 *
 *   in all         seven eighths of what the machine, or this process's control group, has
 *   what it holds  nodes, records, symbols and blocks of events, decoded: ROOM_TIMES its size on disk, and some for
 *                  each process
 *
 * MEMTRACE_READ_MEMORY, a size, takes the place of both.
 */
#ifndef MT_READER_MEMORY_BOUND_H
#define MT_READER_MEMORY_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_BOUND_SETTING "MEMTRACE_READ_MEMORY"

/* The bound in all, in bytes. The setting is wrong usage if it is no size: then -MT_EUSAGE, else 0. */
int memory_bound_bytes(uint64_t *bytes);

/* From now on the process gets no more than that; where it asks for more it has -MT_EMEMORY, as on a full machine. Once
 * is enough. */
int memory_bound_enforce(void);

/* What a trace may hold decoded. Threads share it. */
struct memory_bound {
	uint64_t all;  /* memory_bound_bytes() */
	uint64_t most; /* bytes; no more than `all` */
	uint64_t taken;
	bool set; /* by MEMTRACE_READ_MEMORY */
};

/* For a trace of nothing so far. 0, or -MT_EUSAGE as memory_bound_bytes(). */
int memory_bound_make(struct memory_bound *);

/* It has so many more bytes on disk, of so many more processes. */
void memory_bound_widen(struct memory_bound *, uint64_t bytes, uint64_t processes);

/* Before so many bytes are decoded from `file`. 0, or -MT_ELARGE with the details set. Undone by memory_bound_give().
 * */
int memory_bound_take(struct memory_bound *, uint64_t bytes, const char *file, int64_t offset);
void memory_bound_give(struct memory_bound *, uint64_t bytes);

#endif
