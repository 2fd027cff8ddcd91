/*
 * Rings: where a thread's events go. A ring is a chain of 256 KiB chunks of PID-N.ring, written by one thread
 * at a time without any lock; a thread that ends leaves its ring to the next one.
 */
#ifndef MT_RING_H
#define MT_RING_H

#include <stdint.h>

#include "format/format.h"
#include "shim/sample.h"

#define MT_PENDING 64 /* slots kept for signal handlers that interrupt us; more are counted as lost */

struct mt_ring {
	struct mt_event *slots; /* of the chunk being filled; NULL = none could be had */
	uint32_t used;          /* next slot */
	uint32_t ready;         /* slots whose pages are writable; 0 without a chunk */
	struct mt_chunk *chunk;
	uint32_t chunk_index;
	uint32_t index;    /* number of the ring */
	uint64_t seq;      /* of the next chunk */
	uint32_t owner;    /* 1 while a thread has it; taken with a CAS */
	uint32_t thread;   /* index of the thread that has it */
	uint64_t lost;     /* events, since the last one that could be written */
	uint64_t retry_ns; /* CLOCK_MONOTONIC; no attempt to get a chunk is made before */
	struct mt_sample sample;
	uint32_t captures;    /* of stacks, by the thread that has it */
	uint32_t stack_bytes; /* of struct mt_stack, rounded up */
	uint32_t pending_count;
	char name[16];            /* the thread's, as last recorded */
	struct mt_event *pending; /* MT_PENDING of them, behind all that follows here: they are rarely touched */
				  /* struct mt_stack and struct mt_python follow */
};

/* Takes an idle ring or makes one, and announces the calling thread in it: a new one, or one that has left its
 * ring and comes back (its exit handlers free). NULL if there is no memory. */
#define MT_NEW_THREAD UINT32_MAX
struct mt_ring *mt_ring_take(uint32_t thread);

/* Leaves the ring to whoever comes next; `ends`: the thread is about to end. */
void mt_ring_leave(struct mt_ring *ring, int ends);

/* Records the thread's name, if it has changed. */
void mt_ring_renamed(struct mt_ring *ring);

/* The rest of mt_ring_write: slots are about to cross `ready`. */
void mt_ring_write_on(struct mt_ring *ring, const struct mt_event *slots, uint32_t n);

static inline void mt_ring_put(struct mt_ring *ring, const struct mt_event *slots, uint32_t n)
{
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

/* Start of an image or a forked child: forgets rings and mappings of the parent. */
void mt_ring_reset(void);

/* Makes a stock of chunks, which a recorder keeps emptying. `whole`: no more files can be had from now on, so nothing
 * is left for later. */
void mt_ring_reserve(uint32_t chunks, int whole);

/* Makes so many idle rings, for threads that begin when there is no memory to be had. */
void mt_ring_stock(uint32_t n);

#endif
