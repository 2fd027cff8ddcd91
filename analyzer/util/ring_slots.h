/* Where slots lie in PID-N.ring, for all who read it: docs/FORMAT.md. */
#ifndef MT_UTIL_RING_SLOTS_H
#define MT_UTIL_RING_SLOTS_H

#include "format/format.h"

#include <stdint.h>

#define RING_MAX_SEQ (1ull << 40) /* of a chunk in its ring: no program gets so far */

/* In the file, of the chunk with that index. */
static inline uint64_t ring_chunk_offset(uint32_t index)
{
	return (uint64_t)index * MT_CHUNK_BYTES;
}

static inline uint64_t ring_slot_offset(uint32_t index, uint32_t slot)
{
	return ring_chunk_offset(index) + sizeof(struct mt_chunk) + (uint64_t)slot * sizeof(struct mt_event);
}

/* The position in the ring of a chunk's first slot. */
static inline uint64_t ring_chunk_start(uint64_t seq)
{
	return seq * MT_CHUNK_SLOTS;
}

/* Events of several rings stand in the order of these. Of one tick what gives back memory comes before what takes it:
 * it was stamped before the real call, the other one after. A tick is below 2^63. */
static inline uint64_t ring_order(const struct mt_event *event)
{
	return event->ticks << 1 | !mt_gives_back(event->kind);
}

/* Chunks stand by ring, then by their place in it: as a comparison of qsort(). */
static inline int ring_compare_chunks(uint32_t ring_a, uint64_t seq_a, uint32_t ring_b, uint64_t seq_b)
{
	if (ring_a != ring_b)
		return ring_a < ring_b ? -1 : 1;
	return (seq_a > seq_b) - (seq_a < seq_b);
}

#endif
