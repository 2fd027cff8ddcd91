#include "analyzer/reader/tick_clock.h"

#include "format/format.h"

#include <time.h>

void clock_sample(struct clock *c, uint64_t ticks, uint64_t mono_ns, uint64_t real_ns)
{
	if (!ticks)
		return;
	if (!c->first_ticks || ticks < c->first_ticks) {
		c->first_ticks = ticks;
		c->first_mono = mono_ns;
		if (real_ns)
			c->real_ns = real_ns;
	}
	if (ticks > c->last_ticks) {
		c->last_ticks = ticks;
		c->last_mono = mono_ns;
	}
}

int clock_settle(struct clock *c)
{
	c->mult = 1ull << CLOCK_SHIFT;
	if (c->kind == MT_CLOCK_MONOTONIC || c->last_ticks <= c->first_ticks)
		return 0;
	if (c->last_mono <= c->first_mono)
		return -1;
	double tick = (double)(c->last_mono - c->first_mono) / (double)(c->last_ticks - c->first_ticks);
	if (!(tick > 0.01 && tick < 1e4)) /* 100 GHz to 100 kHz */
		return -1;
	c->mult = (uint64_t)(tick * (double)(1ull << CLOCK_SHIFT));
	return 0;
}

uint64_t clock_real_ns(const struct clock *c, uint64_t ticks)
{
	struct clock at = *c;
	at.zero_ns = c->real_ns;
	return clock_ns(&at, ticks);
}

uint64_t clock_ticks_at(const struct clock *c, uint64_t mono_ns)
{
	if (mono_ns < c->first_mono)
		return c->first_ticks;
	return c->first_ticks + (uint64_t)(((unsigned __int128)(mono_ns - c->first_mono) << CLOCK_SHIFT) / c->mult);
}

uint64_t clock_mono_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* 0 where it can't be read. */
static uint64_t clock_now(uint32_t kind)
{
	if (kind == MT_CLOCK_MONOTONIC)
		return clock_mono_ns();
#if defined(__x86_64__)
	if (kind == MT_CLOCK_TSC)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;
	if (kind == MT_CLOCK_CNTVCT) {
		__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	return 0;
}

uint64_t clock_ticks_ago(const struct clock *c, uint64_t ns)
{
	uint64_t now = clock_now(c->kind);
	return now ? now - (uint64_t)(((unsigned __int128)ns << CLOCK_SHIFT) / c->mult)
		   : clock_ticks_at(c, clock_mono_ns() - ns);
}

void clock_sample_now(struct clock *c)
{
	static struct {
		uint64_t ticks, mono_ns;
	} kept[8];
	if (c->kind >= sizeof(kept) / sizeof(*kept))
		return;
	if (!kept[c->kind].ticks || kept[c->kind].ticks < c->last_ticks) { /* or of before that trace */
		kept[c->kind].ticks = clock_now(c->kind);
		kept[c->kind].mono_ns = clock_mono_ns();
	}
	clock_sample(c, kept[c->kind].ticks, kept[c->kind].mono_ns, 0);
}
