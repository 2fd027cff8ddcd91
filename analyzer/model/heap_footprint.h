/*
 * The address space in which blocks of a process's heap ever lay, in whole MiB: no more of what it freed can be an
 * allocator's. What allocators map for one block alone (glibc: from 128 KiB on, 16 bytes behind the beginning of a
 * page, or as many as it is aligned to) goes back with it and is left out.
 */
#ifndef MT_MODEL_HEAP_FOOTPRINT_H
#define MT_MODEL_HEAP_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_footprint {
	struct heap_footprint_part {
		uint64_t key, mask;
	} *parts;           /* a hash table: 64 MiB, and which of these */
	size_t mask, count; /* parts: mask + 1; 0 = none */
	uint64_t last;      /* number of the MiB that was added last, and 1 */
	uint64_t bytes;
	uint64_t live; /* of the blocks in it that are alive, inherited ones too */
	bool unknown;  /* more than is kept; or no memory */
};

static inline bool heap_footprint_own_mapping(uint64_t addr, uint64_t size)
{
	const uint64_t behind = addr % 4096;
	return size >= 128u << 10 && behind >= 16 && !(behind & (behind - 1));
}

void heap_footprint_add(struct heap_footprint *f, uint64_t addr, uint64_t size);

/* A block begins or ends (delta 1, -1). */
static inline void heap_footprint_move(struct heap_footprint *f, uint64_t addr, uint64_t size, int64_t delta)
{
	const uint64_t first = addr >> 20, end = (addr + size) >> 20;
	if (heap_footprint_own_mapping(addr, size))
		return;
	f->live += (uint64_t)(delta * (int64_t)size);
	if (delta > 0 && (first + 1 != f->last || end != first))
		heap_footprint_add(f, addr, size);
}

/* Of a forked child. */
void heap_footprint_copy(struct heap_footprint *to, const struct heap_footprint *from);
void heap_footprint_fini(struct heap_footprint *f);

#endif
