/*
 * The calls that a process made to its heap, worked out from its events. Blocks have numbers, which are used again
 * after a free. So to make the calls once more only a table of live blocks is needed, and no addresses.
 */
#ifndef MT_REPLAY_HEAP_HEAP_CALLS_H
#define MT_REPLAY_HEAP_HEAP_CALLS_H

#include "analyzer/reader/reader.h"

enum heap_what { HEAP_MALLOC, HEAP_CALLOC, HEAP_ALIGNED, HEAP_REALLOC, HEAP_FREE };

struct heap_call {
	enum heap_what what;
	uint32_t ring, thread; /* thread: index of the one that owns the ring */
	uint32_t block;        /* number; REALLOC does not change it */
	uint64_t size;         /* asked for */
	uint64_t old_size;     /* REALLOC */
	uint64_t addr;         /* where it lay */
	uint64_t old_addr;     /* REALLOC: where it had lain */
	uint64_t ticks;
	uint32_t hook, node; /* function that was called, native stack */
};

/* Called for each call; returns 0 to go on. */
typedef int heap_call_function(void *arg, const struct heap_call *c);

struct heap_calls;

struct heap_calls *heap_calls_new(const struct process *p, heap_call_function *f, void *arg); /* NULL: no memory */
void heap_calls_free(struct heap_calls *h);

/* Takes the next event of the process, in the reader's order. 0, what f returned, or -MT_E*. */
int heap_calls_event(struct heap_calls *h, const struct mt_event *s, uint32_t ring, uint32_t thread);

struct heap_calls_counts {
	uint64_t events;  /* of the heap */
	uint64_t calls;   /* that f got */
	uint64_t unknown; /* frees of blocks whose allocation is not in the trace; f does not get them */
	uint64_t missed;  /* blocks whose free is not in the trace; f gets one when their address is used again */
	uint64_t live;    /* bytes */
	uint32_t blocks;  /* one more than the highest number so far */
};
const struct heap_calls_counts *heap_calls_counts(const struct heap_calls *h);

#endif
