/*
 * Heap blocks of which only picked ones leave events (MEMTRACE_RECORD=sampled): docs/design/shim.md, "Always on".
 *
 * sample.h says which are picked: each of at least mt_config.sample_bytes, of smaller ones those that a Poisson process
 * over bytes hits. A thread counts its calls and bytes in the tally of its ring, which is in the info file: so they
 * survive the process. No block that ends before `next` is picked: it costs one comparison and two additions, without
 * stamp, lock or call.
 *
 * Addresses of picked blocks that are alive are in one table for all threads. Before it a filter is asked, a byte for
 * some addresses that counts those of them in the table: most frees end there. Both are private memory, which a forked
 * child has a copy of: it inherits the blocks, too.
 */
#ifndef MT_TRACE_SAMPLED_H
#define MT_TRACE_SAMPLED_H

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "shim/base/state.h"

struct mt_ring;

/* What the thread's hooks may count in by themselves. NULL: they ask record.h, which sees whether there is more to do.
 * Initial-exec TLS, as all of the shim's. */
extern __thread struct mt_tally *mt_tally __attribute__((visibility("hidden")));

/* The same, for hooks that do nothing else: NULL also where calls of the allocator may nest (host/heap.h). */
extern __thread struct mt_tally *mt_tally_alone __attribute__((visibility("hidden")));

extern uint8_t *mt_sampled_filter __attribute__((visibility("hidden"))); /* NULL = in another mode */

enum { MT_FILTER = 1 << 17 };

static inline int mt_sampled_is_on(void)
{
	return __builtin_expect(mt_sampled_filter != NULL, 0);
}

/* Neighbours in memory are neighbours here, a byte for 128 of theirs: what a thread frees was in its cache, and so is
 * this. Heaps of threads begin at multiples of 64 MiB. */
static inline uint32_t mt_sampled_place(uintptr_t addr)
{
	return (uint32_t)(addr >> 7 ^ addr >> 20) & (MT_FILTER - 1);
}

/* Whether a block is surely not picked: hooks may count, and the next byte that is picked lies behind it. A block of 0
 * bytes counts as 1. */
static inline __attribute__((always_inline)) int mt_sampled_is_small(const struct mt_tally *t, size_t bytes)
{
	return __builtin_expect(t != NULL, 1) && mt_process_state() == MT_STATE_ACTIVE && bytes &&
	       __builtin_expect((int64_t)(t->next - t->bytes) > (int64_t)bytes, 1);
}

static inline __attribute__((always_inline)) void mt_sampled_count(struct mt_tally *t, size_t bytes)
{
	t->bytes += bytes;
	t->calls++;
}

static inline __attribute__((always_inline)) int mt_sampled_passes(size_t bytes)
{
	struct mt_tally *t = mt_tally;
	int is = mt_sampled_is_small(t, bytes);

	if (is)
		mt_sampled_count(t, bytes);
	return is;
}

/* Counts a free that needs no event; 0 if it may need one, or hooks may not count. What memtrace start or stop have
 * asked for is seen where a thread has to look closer, as it does after each mt_config.sample_bytes. */
static inline __attribute__((always_inline)) int mt_sampled_passes_free(struct mt_tally *t, const void *p)
{
	if (__builtin_expect(!t || mt_process_state() != MT_STATE_ACTIVE ||
				     __atomic_load_n(&mt_sampled_filter[mt_sampled_place((uintptr_t)p)],
						     __ATOMIC_RELAXED),
			     0))
		return 0;
	t->frees++;
	return 1;
}

/* Counts a block of the ring's thread. Nonzero if it is picked: then it is in the table. */
int mt_sampled_pick(struct mt_ring *ring, uint64_t addr, uint64_t bytes);

/* Counts so many frees; `ring` may be NULL. */
void mt_sampled_count_free(struct mt_ring *ring, uint64_t n);

/* Puts an address into the table, if there is one; 0 if there is no room. Takes it out; nonzero if it was there. */
int mt_sampled_put(uintptr_t addr);
int mt_sampled_take(uintptr_t addr);
int mt_sampled_has(uintptr_t addr);

/* The ring's tally, if hooks may count in it; else NULL. */
struct mt_tally *mt_sampled_tally(struct mt_ring *ring);

/* Start of a forked child. */
void mt_sampled_reset(void);

struct mt_tables;
void mt_sampled_tables(struct mt_tables *t);

#endif
