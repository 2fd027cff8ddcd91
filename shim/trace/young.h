/*
 * Young blocks (MEMTRACE_RECORD=young): a small block waits in a table of its process, in a mapped file. A free that
 * finds it there takes it out and adds to a sum; what stays becomes an event, late, with the time of its allocation.
 * docs/design/young.md tells why this is exact, and what a crash leaves.
 *
 * All threads use one table: so a free finds its block whoever allocated it, and a signal handler's or another thread's
 * change is a compare-and-swap of one word. Nobody ever waits. Sums are a ring's, with one writer as its slots have.
 */
#ifndef MT_TRACE_YOUNG_H
#define MT_TRACE_YOUNG_H

#include <stdint.h>

#include "format/format.h"

struct mt_ring;

/* Of a ring. */
struct mt_young {
	struct mt_young_area *area;  /* NULL = none: its thread puts nothing into the table */
	uint32_t index;              /* of the area */
	uint32_t windows;            /* that have ended */
	struct mt_young_block *held; /* an entry that is being filled; NULL = none */
	uint64_t due;                /* ticks: then sums are told, and old blocks leave the table */
	uint32_t put;                /* blocks of it may be there */
	uint32_t sums;               /* in the area: so many have begun */
	int64_t bytes;               /* put less taken out, by this ring's threads */
	int64_t most;                /* of that, as counted in mt_info.young_bytes */
	uint64_t retry_ns;           /* CLOCK_MONOTONIC: no attempt to get an area is made before */
};

/* A block that a realloc has taken out. */
struct mt_young_taken {
	struct mt_young_block *entry; /* NULL = none */
	uint64_t addr;
	uint32_t temporary; /* it was its thread's latest allocation */
};

extern struct mt_young_block *mt_young_table; /* NULL = none */

/* Acquire pairs with the release of who makes it: who sees it sees what is in it. */
static inline int mt_young_is_used(void)
{
	return __atomic_load_n(&mt_young_table, __ATOMIC_ACQUIRE) != 0;
}

extern uint32_t mt_young_on; /* MT_RECORD_AUTO: blocks are put there, or once were */

/* Puts a block there. Nonzero if that is all; else its event is to be written. To be called of every heap block that
 * the ring's thread gets: one that has the address of another ends that. */
int mt_young_put(struct mt_ring *ring, const struct mt_event *alloc);

/* A free. Nonzero if that is all; else its allocation is published, or nobody saw it: the event of the free is to be
 * written, with a stamp that is read now. */
int mt_young_free(struct mt_ring *ring, uint64_t addr);

/* The same in two steps, around the call of a realloc: it takes the block out, and it is freed then, or there is none.
 * In between *taken is nobody else's. */
int mt_young_take(uint64_t addr, struct mt_young_taken *taken);
void mt_young_freed(struct mt_ring *ring, const struct mt_young_taken *taken);
void mt_young_kept(const struct mt_young_taken *taken);

/* Of a free that is recorded: others were allocated by this thread since it got the block. */
int mt_young_is_older(const struct mt_ring *ring, uint64_t addr);

/* Before a fork: all that is in the table becomes events, by the caller's ring, and nothing is put there until
 * mt_young_after_fork(). The child has its parent's blocks from these. */
void mt_young_before_fork(struct mt_ring *ring);
void mt_young_after_fork(void);

/* As mt_ring_mend(), which was called before. */
void mt_young_mend(struct mt_ring *ring);

/* Start of a forked child. */
void mt_young_reset(void);

struct mt_tables;
void mt_young_tables(struct mt_tables *t);

#endif
