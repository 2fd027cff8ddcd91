/*
 * The protocol between memtrace and its child that makes the calls of a heap again (heap_player.c), over one socket.
 * memtrace sends a struct heap_orders, then operations: each is a byte (enum heap_op) and the numbers that stand in its
 * comment below, as varints. At the end the child answers with a struct heap_answer and a struct heap_seen for each
 * point.
 */
#ifndef MT_REPLAY_HEAP_HEAP_WIRE_H
#define MT_REPLAY_HEAP_HEAP_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

enum heap_op {
	HEAP_OP_START,   /* worker. Its thread ends, if it has one, and a new one begins */
	HEAP_OP_STOP,    /* worker. Its thread ends, if it has one */
	HEAP_OP_TURN,    /* worker. It makes the calls from here on */
	HEAP_OP_MALLOC,  /* block, size, touch: how many bytes are written to */
	HEAP_OP_CALLOC,  /* block, size, touch */
	HEAP_OP_ALIGNED, /* block, size, touch, log2 of the alignment */
	HEAP_OP_REALLOC, /* block, size, touch, bytes at the beginning that were touched before */
	HEAP_OP_FREE,    /* block */
	HEAP_OP_TIME,    /* nanoseconds that have gone by */
	HEAP_OP_POINT,   /* no number. Memory is measured */
	HEAP_OP_TRIM,    /* no number. malloc_trim(0) */
	HEAP_OP_END,     /* no number. The answer is sent; HEAP_OP_BYTES zeros follow */
};
enum { HEAP_OP_BYTES = 64 }; /* no operation is longer */

#define HEAP_MAIN 0u /* the worker that is the child's first thread, the one with glibc's main arena */

struct heap_orders {
	uint64_t most_bytes; /* of anonymous memory; the child gives up where more is needed */
	uint64_t step;       /* memory is measured again after at most so many bytes were written to */
	uint32_t blocks;     /* how many numbers of blocks there are */
	uint32_t workers, points;
	uint32_t parent;    /* pid of memtrace */
	char library[1024]; /* file name of the library that malloc must come from; "" = the C library */
};

enum heap_end {
	HEAP_END_WELL = 1,
	HEAP_END_REFUSED,      /* the allocator refused `bytes` in call `calls` */
	HEAP_END_FULL,         /* more than most_bytes were needed at call `calls` */
	HEAP_END_NO_THREAD,    /* a thread could not be made */
	HEAP_END_NO_ALLOCATOR, /* malloc is not that of `library` */
	HEAP_END_NO_MEMORY,    /* for the child's own tables */
	HEAP_END_NO_TRIM,      /* the C library has none, or another allocator is there */
	HEAP_END_SLOW,         /* it was stopped: the parent's word, the child never says it */
};

struct heap_answer {
	uint32_t end;    /* enum heap_end */
	uint32_t points; /* how many struct heap_seen follow */
	uint64_t calls, bytes;
	uint64_t call_ns; /* time in the calls alone, without writing to blocks */
};

/* Resident anonymous memory at a point, in bytes. */
struct heap_seen {
	uint64_t now, most; /* most: since the point before */
};

/* Reads exactly so many bytes; false if the other side has gone before. */
static inline bool heap_wire_read(int socket, void *data, size_t bytes)
{
	for (size_t had = 0; had < bytes;) {
		const ssize_t n = read(socket, (char *)data + had, bytes - had);
		if (n > 0)
			had += (size_t)n;
		else if (n == 0 || errno != EINTR)
			return false;
	}
	return true;
}

#endif
