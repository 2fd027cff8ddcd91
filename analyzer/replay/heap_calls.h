/*
 * What a process asked its heap for, call by call, out of its events. Blocks get numbers, which are used again: so who
 * makes the calls once more needs a table of what is alive, and no addresses.
 */
#ifndef MT_REPLAY_HEAP_CALLS_H
#define MT_REPLAY_HEAP_CALLS_H

#include "analyzer/reader/reader.h"

enum heap_what { HEAP_MALLOC, HEAP_CALLOC, HEAP_ALIGNED, HEAP_REALLOC, HEAP_FREE };

struct heap_call {
	enum heap_what what;
	uint32_t ring, thread; /* thread: its index; it has the ring until another one's call comes by it */
	uint32_t block;        /* the number; that of REALLOC stays */
	uint64_t size;         /* asked for */
	uint64_t old_size;     /* REALLOC */
	uint64_t addr;         /* where it lay */
	uint64_t old_addr;     /* REALLOC: where it had lain */
	uint64_t ticks;
	uint32_t hook, node; /* who asked */
};

/* 0 to go on. */
typedef int heap_call_function(void *arg, const struct heap_call *c);

struct heap_calls;

struct heap_calls *heap_calls_new(const struct process *p, heap_call_function *f, void *arg); /* NULL: no memory */
void heap_calls_free(struct heap_calls *h);

/* The next event of that process, in the order of the reader. 0, or what f returned. */
int heap_calls_event(struct heap_calls *h, const struct mt_event *s, uint32_t ring, uint32_t thread);

struct heap_calls_counts {
	uint64_t events;  /* that are about the heap */
	uint64_t calls;   /* handed out */
	uint64_t unknown; /* frees of blocks that nobody saw allocated; not handed out */
	uint64_t missed;  /* blocks that had gone without a word; their frees are handed out when that is noticed */
	uint64_t live;    /* bytes */
	uint32_t blocks;  /* numbers in use are below, so far */
};
const struct heap_calls_counts *heap_calls_counts(const struct heap_calls *h);

#endif
