/*
 * Which blocks have a stack in sample mode: those that a Poisson process over the bytes of a thread's allocations hits,
 * one hit in `mean` bytes. So a block of n bytes has one with probability 1 - exp(-n / mean), independently of all
 * others, and the analyzer can let it stand for n / that many bytes without bias (analyzer/util/sampling_estimate.h).
 *
 * `left` is the byte that is hit next, counted from 1. It is 1 + floor(E) with E exponential, thus geometric, and what
 * is left of it after a block that was not hit is geometric again: the chance is exact for every block, the first one
 * included. Once a block is hit the rest of its bytes don't count, and the distance is drawn anew from its end.
 */
#ifndef MT_TRACE_SAMPLE_H
#define MT_TRACE_SAMPLE_H

#include <stdint.h>

struct mt_sample {
	uint64_t left;
	uint64_t random; /* state of the generator */
};

/* `seed`: any number, not the same for two threads. */
void mt_sample_start(struct mt_sample *s, uint64_t seed, uint64_t mean);

/* Draws the next distance. */
void mt_sample_next(struct mt_sample *s, uint64_t mean);

/* Whether a block of so many bytes (0 counts as 1) is hit. */
static inline int mt_sample_hits(struct mt_sample *s, uint64_t bytes, uint64_t mean)
{
	bytes += bytes == 0;
	if (s->left > bytes) {
		s->left -= bytes;
		return 0;
	}
	mt_sample_next(s, mean);
	return 1;
}

#endif
