#include "analyzer/util/sampling_estimate.h"

#include <math.h>

double estimate_chance(uint64_t size, uint64_t mean)
{
	return mean ? -expm1(-(double)(size ? size : 1) / (double)mean) : 1;
}

uint64_t estimate_bytes_of(uint64_t size, uint64_t mean)
{
	return size < mean ? (uint64_t)llround((double)size / estimate_chance(size, mean)) : size;
}

uint64_t estimate_blocks_of(uint64_t size, uint64_t mean, uint64_t random)
{
	double blocks = size < mean ? 1 / estimate_chance(size, mean) : 1, whole = floor(blocks);
	random = (random ^ random >> 29) * 0x9E3779B97F4A7C15ull;
	random = (random ^ random >> 32) * 0xD6E8FEB86659FD93ull;
	return (uint64_t)whole + ((double)(random >> 11) / 9007199254740992.0 < blocks - whole);
}

static void add(struct estimate *e, double value, uint64_t n, double chance)
{
	e->sum += (double)n * value / chance;
	e->variance += (double)n * value * value * (1 - chance) / (chance * chance);
	e->seen += (double)n * value;
}

void estimate_add_bytes(struct estimate *e, uint64_t size, uint64_t n, uint64_t mean)
{
	add(e, (double)size, n, estimate_chance(size, mean));
}

void estimate_add_blocks(struct estimate *e, uint64_t size, uint64_t n, uint64_t mean)
{
	add(e, 1, n, estimate_chance(size, mean));
}

/* The two sums that the estimate is z of their standard deviations away from. */
static struct estimate_range solve(const struct estimate *e, double z)
{
	double spread = e->sum > 0 ? e->variance / e->sum : 0, half = z * z * spread / 2;
	double root = sqrt(e->sum * z * z * spread + half * half);
	return (struct estimate_range){ e->sum + half - root, e->sum + half + root };
}

struct estimate_range estimate_range(const struct estimate *e, double most)
{
	struct estimate_range r = solve(e, ESTIMATE_Z);
	r.low = fmax(r.low, e->seen);
	r.high = fmax(fmin(r.high, most), r.low);
	return r;
}

/* Beyond z lies at most exp(-z^2 / 2) / 2, and all looks together may miss in 2.5 %. */
struct estimate_range estimate_range_of_highest(const struct estimate *e, double looks)
{
	struct estimate_range r = estimate_range(e, INFINITY);
	r.low = fmax(solve(e, fmax(ESTIMATE_Z, sqrt(2 * log(20 * fmax(looks, 1))))).low, e->seen);
	return r;
}
