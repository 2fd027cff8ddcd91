/*
 * What blocks with sampled stacks say about all blocks (docs/design/model.md, "Sampled stacks").
 *
 * In sample mode a block of s bytes below the sampling size S has a stack with probability p = 1 - exp(-s/S),
 * independently of all others (shim/trace/sample.h). So each one that has stands for s/p bytes in 1/p blocks (Horvitz
 * and Thompson): the sum is unbiased for whatever is summed up. Its variance is (sum over all blocks) * spread, spread
 * being s(1-p)/p for one size and estimated from the sample for a mixture. The interval holds the sums Y that the
 * estimate y is within 1.96 of their own standard deviations of, (y - Y)^2 <= 1.96^2 * spread * Y: unlike y +- 1.96
 * sqrt(variance of y) it is right from a handful of samples on, and never below 0.
 */
#ifndef MT_UTIL_SAMPLING_ESTIMATE_H
#define MT_UTIL_SAMPLING_ESTIMATE_H

#include <stdint.h>

#define ESTIMATE_Z 1.959963984540054 /* of the normal distribution, 95 % lie within */

struct estimate {
	double sum;      /* estimated */
	double variance; /* of it, estimated */
	double seen;     /* really there: the sampled blocks themselves */
};

struct estimate_range {
	double low, high; /* with 95 % certainty */
};

/* The chance of a block of so many bytes (0 counts as 1). */
double estimate_chance(uint64_t size, uint64_t mean);

/* The bytes and blocks that one sampled block stands for; one of `mean` bytes or more stands for itself. Whole numbers,
 * so that sums of them are again zero when the last one has gone: of blocks one of the two next to 1 / chance, by
 * `random`, which makes them right on average. */
uint64_t estimate_bytes_of(uint64_t size, uint64_t mean);
uint64_t estimate_blocks_of(uint64_t size, uint64_t mean, uint64_t random);

/* Adds n sampled blocks of one size: to a sum of bytes, or to one of blocks. */
void estimate_add_bytes(struct estimate *e, uint64_t size, uint64_t n, uint64_t mean);
void estimate_add_blocks(struct estimate *e, uint64_t size, uint64_t n, uint64_t mean);

/* `most`: what there was in all, sampled or not; it can't be more. */
struct estimate_range estimate_range(const struct estimate *e, double most);

/* The same where the estimate is the highest of at most so many, one after each event: chance has raised it. The lower
 * bound holds at all of these moments at once; above the usual one there is no more than at other moments. */
struct estimate_range estimate_range_of_highest(const struct estimate *e, double looks);

#endif
