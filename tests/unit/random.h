/* The tests' random numbers: xorshift64 (Marsaglia 2003), the same ones everywhere. The state must not be 0. */
#ifndef MT_TEST_RANDOM_H
#define MT_TEST_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* In (0, 1). */
static inline double random_uniform(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;
}

/* Mean 0, deviation 1 (Box and Muller 1958). */
static inline double random_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(random_uniform(state)));
	return radius * cos(6.283185307179586 * random_uniform(state));
}

#endif
