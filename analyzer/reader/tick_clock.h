/* The clock of one boot: from ticks to nanoseconds of the merged trace. All processes of a boot that took their ticks
 * from the same source share one struct clock, so equal ticks are equal times, and order between processes is exact. */
#ifndef MT_READER_TICK_CLOCK_H
#define MT_READER_TICK_CLOCK_H

#include <stdint.h>

#define CLOCK_SHIFT 40

struct clock {
	unsigned host;                    /* index of struct reader_host */
	uint32_t kind;                    /* enum mt_clock */
	uint64_t first_ticks, first_mono; /* the earliest moment known in ticks and on CLOCK_MONOTONIC (ns) */
	uint64_t last_ticks, last_mono;   /* the latest such moment */
	uint64_t real_ns;                 /* wall clock at first_ticks, as the earliest sample has it */
	uint64_t mult;    /* nanoseconds a tick, times 2^CLOCK_SHIFT; strictly positive after clock_settle() */
	uint64_t zero_ns; /* first_ticks in nanoseconds since the merged trace's origin */
};

/* Adds a sample: one moment in ticks and on CLOCK_MONOTONIC; real_ns is the wall clock then, 0 = unknown. */
void clock_sample(struct clock *c, uint64_t ticks, uint64_t mono_ns, uint64_t real_ns);

/* Works out the length of a tick from all samples. Returns 0, or -1 if they contradict each other: then it is 1 ns. */
int clock_settle(struct clock *c);

/* Nanoseconds of the merged trace at a tick; 0 for ticks before its origin. */
static inline uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	if (ticks >= c->first_ticks)
		return c->zero_ns + (uint64_t)(((unsigned __int128)(ticks - c->first_ticks) * c->mult) >> CLOCK_SHIFT);
	uint64_t before = (uint64_t)(((unsigned __int128)(c->first_ticks - ticks) * c->mult) >> CLOCK_SHIFT);
	return before < c->zero_ns ? c->zero_ns - before : 0;
}

/* Wall clock at a tick, in ns since 1970. */
uint64_t clock_real_ns(const struct clock *c, uint64_t ticks);

/* CLOCK_MONOTONIC now, in ns. */
uint64_t clock_mono_ns(void);

/* Adds a sample of now, for a trace of the boot that we run in. All readers of a command use the same one: else one
 * tick would be different nanoseconds to each. */
void clock_sample_now(struct clock *c);

/* The tick at a moment of CLOCK_MONOTONIC. */
uint64_t clock_ticks_at(const struct clock *c, uint64_t mono_ns);

/* The tick `ns` ago, of a process that runs on this machine: by the clock itself, as the length of a tick is known
 * roughly while a process is young. */
uint64_t clock_ticks_ago(const struct clock *c, uint64_t ns);

#endif
