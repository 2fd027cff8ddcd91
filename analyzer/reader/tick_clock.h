/* From ticks to nanoseconds of the merged trace. All processes of one boot that used the same clock share one struct
 * clock, so that equal ticks are equal times and order between processes is exact. */
#ifndef MT_READER_TICK_CLOCK_H
#define MT_READER_TICK_CLOCK_H

#include <stdint.h>

#define CLOCK_SHIFT 40

struct clock {
	unsigned host;                    /* index of struct reader_host */
	uint32_t kind;                    /* enum mt_clock */
	uint64_t first_ticks, first_mono; /* the earliest and the latest moment known on both clocks */
	uint64_t last_ticks, last_mono;
	uint64_t real_ns; /* wall clock at first_ticks, as the earliest sample says */
	uint64_t mult;    /* nanoseconds a tick, times 2^CLOCK_SHIFT; strictly positive after clock_settle() */
	uint64_t zero_ns; /* time of first_ticks since the merged trace's origin */
};

/* One moment on both clocks; real_ns 0 = wall clock unknown. */
void clock_sample(struct clock *c, uint64_t ticks, uint64_t mono_ns, uint64_t real_ns);

/* All samples are in: the length of a tick. Returns 0, or -1 if the samples contradict each other (then 1 ns). */
int clock_settle(struct clock *c);

static inline uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	if (ticks >= c->first_ticks)
		return c->zero_ns + (uint64_t)(((unsigned __int128)(ticks - c->first_ticks) * c->mult) >> CLOCK_SHIFT);
	uint64_t before = (uint64_t)(((unsigned __int128)(c->first_ticks - ticks) * c->mult) >> CLOCK_SHIFT);
	return before < c->zero_ns ? c->zero_ns - before : 0;
}

/* Wall clock at a tick. */
uint64_t clock_real_ns(const struct clock *c, uint64_t ticks);

/* CLOCK_MONOTONIC now. */
uint64_t clock_mono_ns(void);

/* Adds this moment as a sample: for traces of the boot we run in. All readers of a command get the same one, or the
 * same tick would be another nanosecond to each. */
void clock_sample_now(struct clock *c);

/* The tick at a moment of CLOCK_MONOTONIC. */
uint64_t clock_ticks_at(const struct clock *c, uint64_t mono_ns);

#endif
