/*
 * How much memory reading a trace may take. Traces come from anybody, and a few kilobytes of one can decode to
 * gigabytes. So there are two bounds:
 *
 *   on the process  seven eighths of the memory that the machine, or this process's control group, has
 *   on the trace    nodes, records, symbols and blocks of events that are held decoded: ROOM_TIMES its size on disk,
 *                   and some more for each process
 *
 * MEMTRACE_READ_MEMORY, a size, takes the place of both.
 */
#ifndef MT_READER_MEMORY_BOUND_H
#define MT_READER_MEMORY_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_BOUND_SETTING "MEMTRACE_READ_MEMORY"

/* The bound on the process, in bytes. 0, or -MT_EUSAGE where the setting is no size. */
int memory_bound_bytes(uint64_t *bytes);

/* From now on the kernel gives this process no more than that: allocations beyond it fail, as on a full machine, and
 * end in -MT_EMEMORY. Called once. */
int memory_bound_enforce(void);

/* The bound on a trace. Threads may share it. */
struct memory_bound {
	uint64_t all;  /* memory_bound_bytes() */
	uint64_t most; /* bytes that may be held decoded; at most `all` */
	uint64_t taken;
	bool set; /* `most` is MEMTRACE_READ_MEMORY's and does not widen */
};

/* For a trace of nothing so far. 0, or -MT_EUSAGE as memory_bound_bytes(). */
int memory_bound_make(struct memory_bound *);

/* Raises the bound for a trace that has so many more bytes on disk, and so many more processes. */
void memory_bound_widen(struct memory_bound *, uint64_t bytes, uint64_t processes);

/* Called before so many bytes are decoded from `file`. 0, or -MT_ELARGE, which names file and offset. Undone by
 * memory_bound_give(). */
int memory_bound_take(struct memory_bound *, uint64_t bytes, const char *file, int64_t offset);
void memory_bound_give(struct memory_bound *, uint64_t bytes);

#endif
