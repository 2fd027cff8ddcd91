/*
 * Rings: where a thread's events go. A ring is a chain of 256 KiB chunks of PID-N.ring, written by one thread
 * at a time without any lock. The ring of a thread that has ended goes to the next one.
 *
 * Nobody tells that a thread has ended: a key of pthread_key_create would be one less for the program, and what else
 * libc offers takes locks or memory. So who needs a ring asks the kernel whether owners are still there.
 *
 * Threads have numbers. One that left nothing alive leaves its number, too, with the ring: a program may have a thread
 * for each request.
 */
#ifndef MT_TRACE_RING_H
#define MT_TRACE_RING_H

#include <stdint.h>

#include "format/format.h"
#include "shim/base/set.h"
#include "shim/trace/sample.h"
#include "shim/trace/young.h"

struct mt_ring {
	struct mt_event *slots; /* of the chunk being filled; NULL = none could be had */
	uint32_t used;          /* next slot */
	uint32_t ready;         /* slots whose pages are writable; 0 without a chunk */
	uint64_t ticks;         /* of its newest event; a forked child's copy is as of the fork: mt_ring_newest() */
	struct mt_chunk *chunk;
	uint32_t chunk_index;
	uint32_t index;    /* number of the ring */
	uint64_t seq;      /* of the next chunk */
	uint32_t owner;    /* tid of the thread that has it, or one of enum mt_owner; changed with a CAS */
	uint32_t thread;   /* number of the thread that was announced last */
	uint64_t lost;     /* events, since the last one that could be written */
	uint64_t retry_ns; /* CLOCK_MONOTONIC; no attempt to get a chunk is made before */
	struct mt_sample sample;
	struct mt_tally *tally;    /* MT_RECORD_SAMPLED: in the info file, or `own` */
	uint64_t goal;             /* what the tally's bytes are when the next of the smaller blocks is picked */
	struct mt_tally own_tally; /* where there is no room for it: what it counts is in mt_info, too */
	struct mt_young young;
	uint32_t captures;    /* of stacks, by the thread that has it */
	uint32_t stack_bytes; /* of struct mt_stack, rounded up */
	/* of the thread that has the ring to itself, or had it: */
	uint32_t number;     /* MT_NO_THREAD: none had it yet */
	uint32_t first_slot; /* its first event, in the chunk before the one with this seq */
	uint64_t first_seq;
	uint32_t lent;    /* it has events in other rings, too */
	char name[16];    /* as recorded */
	uint64_t name_at; /* where, in the log */
			  /* struct mt_stack and struct mt_python follow */
};

enum mt_owner { MT_OWNER_NONE, MT_OWNER_ANY = 1u << 31 /* somebody of whom nobody can tell whether he is there */ };

#define MT_NO_THREAD UINT32_MAX

/* A ring for the calling thread, which has none: that of one that has ended, or a new one. NULL if there is no memory.
 * It is the thread's until it ends. */
struct mt_ring *mt_ring_take(void);

/* What is done when a ring gets another thread: the one before has left. Its events are still of that one. */
struct mt_ring_left {
	void (*leave)(struct mt_ring *ring);
};
MT_SET(mt_ring_left);

/* What is done when a chunk is full. */
struct mt_ring_filled {
	void (*look)(void);
};
MT_SET(mt_ring_filled);

/* A ring borrowed for one event, as by a signal handler that interrupts the writing of another. What a thread borrows
 * next is the same ring, if it can be: an event may undo the one before it. */
struct mt_loan {
	struct mt_ring *ring;
	uint32_t out;    /* not returned yet */
	uint32_t number; /* plus 1, of a thread that has no ring to itself; 0 = none yet */
};

/* `own`: the thread's, or NULL. Nonzero if there is one, loan->ring. Async-signal-safe. */
int mt_ring_borrow(struct mt_loan *loan, struct mt_ring *own);
void mt_ring_return(struct mt_loan *loan);

/* The thread's last event was left in the middle: what is not published of it is dropped. */
void mt_ring_mend(struct mt_ring *ring);

/* Records the thread's name, if it has changed. */
void mt_ring_renamed(struct mt_ring *ring);

/* The rest of mt_ring_write: slots are about to cross `ready`. */
void mt_ring_write_on(struct mt_ring *ring, const struct mt_event *slots, uint32_t n);

/* Makes room for `n` slots in one chunk; 0 if there is none. `ticks` is now. */
int mt_ring_make_room(struct mt_ring *ring, uint32_t n, uint64_t ticks);
static inline int mt_ring_room(struct mt_ring *ring, uint32_t n, uint64_t ticks)
{
	return __builtin_expect(ring->used + n <= ring->ready, 1) || mt_ring_make_room(ring, n, ticks);
}

/* Of the next slot; what is published lies below. */
static inline uint64_t mt_ring_position(const struct mt_ring *ring)
{
	return ring->slots ? (ring->seq - 1) * MT_CHUNK_SLOTS + ring->used : ring->seq * MT_CHUNK_SLOTS;
}

/* Events from here on are those of the thread with that number. */
void mt_ring_announce(struct mt_ring *ring, uint32_t thread);

static inline void mt_ring_put(struct mt_ring *ring, const struct mt_event *slots, uint32_t n)
{
	ring->ticks = slots[0].ticks;
	ring->slots[ring->used++] = slots[0];
	if (n == 2)
		ring->slots[ring->used++] = slots[1];
	/* pairs with the reader's acquire: the slots below are whole */
	__atomic_store_n(&ring->chunk->used, ring->used, __ATOMIC_RELEASE);
}

/* Appends `n` (1 or 2) slots that belong together; they become visible at once. */
static inline void mt_ring_write(struct mt_ring *ring, const struct mt_event *slots, uint32_t n)
{
	if (__builtin_expect(ring->used + n <= ring->ready, 1))
		mt_ring_put(ring, slots, n);
	else
		mt_ring_write_on(ring, slots, n);
}

/* Memory of the ring's previous stack captures. */
static inline struct mt_stack *mt_ring_stack(struct mt_ring *ring)
{
	return (struct mt_stack *)(ring + 1);
}

static inline struct mt_python *mt_ring_python(struct mt_ring *ring)
{
	return (struct mt_python *)((char *)(ring + 1) + ring->stack_bytes);
}

/* In a forked child, before the reset: the tick of the newest event that was written in its parent before memory was
 * copied; 0 = none. */
uint64_t mt_ring_newest(void);

/* Start of an image or a forked child: forgets rings and mappings of the parent. */
void mt_ring_reset(void);

/* Makes a stock of chunks, which a recorder keeps emptying. `whole`: no more files can be had from now on, so nothing
 * is left for later. */
void mt_ring_reserve(uint32_t chunks, int whole);

/* Of chunks that the recorder has read and nobody has taken again. */
uint64_t mt_ring_free_bytes(void);

/* Makes so many idle rings, for threads that begin when there is no memory to be had. */
void mt_ring_stock(uint32_t n);

struct mt_tables;
void mt_ring_tables(struct mt_tables *t);

#endif
