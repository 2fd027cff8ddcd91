/*
 * What goes between memtrace and its child that makes the calls of a heap again (heap_player.c), over one socket: first
 * a struct heap_orders, then operations: a byte, and behind it the numbers that the list names, as varints. At the end
 * the child answers with a struct heap_answer and a struct heap_seen for each point.
 */
#ifndef MT_REPLAY_HEAP_WIRE_H
#define MT_REPLAY_HEAP_WIRE_H

#include <stdint.h>

enum heap_op {
	/* the worker's thread ends, if it has one, and a new one begins */
	HEAP_OP_START,
	HEAP_OP_TURN,    /* worker: it makes the calls from here on */
	HEAP_OP_MALLOC,  /* block, size, touch */
	HEAP_OP_CALLOC,  /* block, size, touch */
	HEAP_OP_ALIGNED, /* block, size, touch, log2 of the alignment */
	HEAP_OP_REALLOC, /* block, size, touch, bytes at the beginning that were touched before */
	HEAP_OP_FREE,    /* block */
	HEAP_OP_TIME,    /* nanoseconds that have gone by */
	HEAP_OP_POINT,   /* : a look at the memory */
	HEAP_OP_TRIM,    /* : malloc_trim(0) */
	HEAP_OP_END,     /* : the answer is wanted. HEAP_OP_BYTES zeros follow */
};
enum { HEAP_OP_BYTES = 64 }; /* none is longer */

#define HEAP_MAIN 0u /* the worker that is the child's first thread, as glibc's main arena is that one's */

struct heap_orders {
	uint64_t most_bytes; /* of anonymous memory, or it gives up */
	uint64_t step;       /* bytes touched from one look at the memory to the next, at the most */
	uint32_t blocks;     /* numbers are below */
	uint32_t workers, points;
	uint32_t parent;    /* pid */
	char library[1024]; /* file name of where malloc must be from; "" = the C library */
};

enum heap_end {
	HEAP_END_WELL = 1,
	HEAP_END_REFUSED,   /* the allocator refused `bytes` in call `calls` */
	HEAP_END_FULL,      /* more than most_bytes were needed at call `calls` */
	HEAP_END_NO_THREAD, /* one could not be made */
	HEAP_END_NO_ALLOCATOR,
	HEAP_END_NO_MEMORY, /* for its tables */
	HEAP_END_NO_TRIM,   /* the C library has none, or another allocator is there */
};

struct heap_answer {
	uint32_t end;
	uint32_t points; /* that follow */
	uint64_t calls, bytes;
	uint64_t call_ns; /* in the calls alone, without touching */
};

/* Anonymous memory that is resident, in bytes. */
struct heap_seen {
	uint64_t now, most; /* most: since the point before */
};

#endif
