/* What a program did, by the terms of the command line's documentation: printed at the end as `TALLY name value ...`, which the
 * case compares with the report. Wrap each call: T_FREE(p), p = T_ALLOC(malloc(n), n). */
#ifndef MT_TALLY_H
#define MT_TALLY_H

#include "test.h"

static struct tally {
	uint64_t allocations, frees, allocated_bytes, live_bytes, live_blocks, failed;
} tally;

#define TALLY_ADD(field, n) __atomic_add_fetch(&tally.field, (n), __ATOMIC_RELAXED)

__attribute__((unused)) static void *tally_alloc(void *p, uint64_t size)
{
	if (p) {
		TALLY_ADD(allocations, 1);
		TALLY_ADD(allocated_bytes, size);
		TALLY_ADD(live_bytes, size);
		TALLY_ADD(live_blocks, 1);
	} else {
		TALLY_ADD(failed, 1);
	}
	return opaque(p);
}

__attribute__((unused)) static void tally_free(uint64_t size)
{
	TALLY_ADD(frees, 1);
	TALLY_ADD(live_bytes, -size);
	TALLY_ADD(live_blocks, -1);
}

__attribute__((unused)) static void *tally_realloc(void *p, uint64_t size, void *old, uint64_t old_size)
{
	if (p && old)
		tally_free(old_size);
	return tally_alloc(p, size);
}

__attribute__((unused)) static void tally_say(void)
{
	say("TALLY allocations %lu frees %lu allocated_bytes %lu live_bytes %lu live_blocks %lu failed %lu\n",
	    tally.allocations, tally.frees, tally.allocated_bytes, tally.live_bytes, tally.live_blocks, tally.failed);
}

#endif
