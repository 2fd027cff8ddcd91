#include "shim/trace/sample.h"

/* splitmix64: neighbouring seeds give unrelated sequences, which shifts and xors alone don't. */
static uint64_t draw(struct mt_sample *s)
{
	uint64_t x = s->random += 0x9E3779B97F4A7C15ull;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

/* -ln(u): without libm. Halvings until u is in [0.5, 1), there a series in (1-u)/(1+u) with an error below 1e-9. */
static double minus_log(double u)
{
	double e = 0, y, z;

	for (; u < 0.5; u *= 2)
		e += 0.693147180559945309;
	y = (1 - u) / (1 + u);
	z = y * y;
	return e + 2 * y *
			   (1 + z * (1.0 / 3 +
				     z * (1.0 / 5 +
					  z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z / 15)))))));
}

void mt_sample_next(struct mt_sample *s, uint64_t mean)
{
	double u = (double)((draw(s) >> 11) + 1) / 9007199254740992.0; /* (0, 1] */

	s->left = 1 + (uint64_t)(minus_log(u) * (double)mean);
}

void mt_sample_start(struct mt_sample *s, uint64_t seed, uint64_t mean)
{
	s->random = seed;
	mt_sample_next(s, mean);
}
