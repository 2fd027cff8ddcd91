/*
 * Does a series of live bytes grow, and how? An answer in plain terms from few, coarse windows; where they say too
 * little the answer is "none" or a low certainty.
 */
#ifndef MT_ANALYZER_GROWTH_H
#define MT_ANALYZER_GROWTH_H

#include <stddef.h>
#include <stdint.h>

enum growth_kind { GROWTH_NONE, GROWTH_LINEAR, GROWTH_ACCELERATING, GROWTH_SATURATING, GROWTH_JUMP };
enum growth_certainty { CERTAINTY_LOW, CERTAINTY_MEDIUM, CERTAINTY_HIGH };

struct growth {
	enum growth_kind kind;
	enum growth_certainty certainty;
	double bytes_per_s;  /* over the second half, where a leak shows and a warm-up doesn't */
	double acceleration; /* bytes per second squared; 0 unless accelerating */
	uint64_t bytes;      /* from the first window to the last */
};

/* `values` are the lowest live bytes of equal, consecutive windows. */
struct growth growth_of(const uint64_t *values, size_t count, double window_s);

const char *growth_name(enum growth_kind kind);
const char *certainty_name(enum growth_certainty certainty);

#endif
