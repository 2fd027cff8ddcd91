#include "analyzer/model/sampling_estimate.h"

#include <math.h>

#define Z 1.959963984540054 /* of the normal distribution, 95 % lie within */

double estimate_chance(uint64_t size, uint64_t mean)
{
	return mean ? -expm1(-(double)(size ? size : 1) / (double)mean) : 1;
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

struct estimate_range estimate_range(const struct estimate *e, double most)
{
	double spread = e->sum > 0 ? e->variance / e->sum : 0, half = Z * Z * spread / 2;
	double root = sqrt(e->sum * Z * Z * spread + half * half);
	struct estimate_range r = { fmax(e->sum + half - root, e->seen), fmin(e->sum + half + root, most) };
	r.high = fmax(r.high, r.low);
	return r;
}
