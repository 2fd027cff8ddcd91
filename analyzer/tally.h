/*
 * Sums with a peak, and the sites that share in them.
 *
 * A peak is only counted when a drop follows it: until then the live value itself is the highest. Its number tells sites
 * whether what they saved belongs to the latest peak (see model.h).
 */
#ifndef MT_TALLY_H
#define MT_TALLY_H

#include "analyzer/model.h"
#include "analyzer/series.h"

/* A live sum. `totals` holds live and peak values, the rest is how they come about. */
struct tally {
	struct model_totals totals;
	uint64_t number;       /* of the latest counted peak */
	uint64_t rise_ns;      /* when it last grew */
};

/* Call before anything gets smaller, and at the end. */
static inline void tally_settle(struct tally *t)
{
	if (t->totals.live_bytes <= t->totals.peak_bytes)
		return;
	t->totals.peak_bytes = t->totals.live_bytes;
	t->totals.peak_blocks = t->totals.live_blocks;
	t->totals.peak_ns = t->rise_ns;
	t->number++;
}

static inline void tally_rise(struct tally *t, uint64_t bytes, uint64_t ns)
{
	t->totals.live_bytes += bytes;
	t->rise_ns = bytes ? ns : t->rise_ns;
}

static inline void tally_drop(struct tally *t, uint64_t bytes)
{
	tally_settle(t);
	t->totals.live_bytes -= bytes;
}

/* Forgets peak and counts, keeps what is live: figures begin here. */
void tally_restart(struct tally *t, uint64_t ns);

/* What tells sites apart. */
struct site_key {
	uint32_t process, node, node2, split, kind, device; /* as in struct model_site */
	uint64_t sampled;
};

/* Adds counts and live memory to a sum; the sum's peak is only known from a pass. */
void tally_add(struct model_totals *to, const struct model_totals *t);

/* The sites of one process. */
struct tally_sites {
	bool numbers_only;     /* they have no figures: model_query.changes_only */
	const struct tally_sites *known; /* who gives the numbers: model_query.numbers. NULL = these themselves */
	struct model_site *sites; /* NULL if numbers_only ... */
	struct site_key *keys; /* ... and else this */
	uint64_t *oldest_ns;   /* see struct model_process */
	size_t count, room;
	struct tally_place { uint32_t number, tag; } *index; /* by hash of the key: the site + 1, and more of the hash */
	size_t mask;
};

/* The site's number, made if it is new (BLOCK_NO_SITE if others are to know it and do not); -MT_EMEMORY as an int64_t. Stamps of a
 * new one say "was empty at the peak". */
int64_t tally_site(struct tally_sites *t, const struct site_key *key, uint64_t number, uint64_t host_number);

/* NULL if sites have none. */
static inline struct model_site *tally_figures(const struct tally_sites *t, uint32_t site)
{
	return t->numbers_only ? NULL : &t->sites[site];
}

static inline struct site_key tally_key(const struct tally_sites *t, uint32_t site)
{
	if (t->known)
		return tally_key(t->known, site);
	if (t->numbers_only)
		return t->keys[site];
	const struct model_site *s = &t->sites[site];
	return (struct site_key){ s->process, s->node, s->node2, s->split, s->kind, s->device, s->sampled };
}

/* For loops over all of them. */
static inline size_t tally_count(const struct tally_sites *t)
{
	return t->numbers_only ? 0 : t->count;
}

/* Bring what an allocation of the heap by these nodes needs into the cache: first its place in the index, then, some events
 * later, the site. A site that was split or sampled is missed; that costs time alone. */
void tally_prefetch(const struct tally_sites *t, uint32_t node, uint32_t node2);
void tally_prefetch_found(const struct tally_sites *t, uint32_t node, uint32_t node2);

static inline void tally_prefetch_site(const struct tally_sites *t, uint32_t site)
{
	if (t->numbers_only) {
		const struct tally_sites *of = t->known ? t->known : t;
		__builtin_prefetch(of->sites ? (const void *)&of->sites[site] : &of->keys[site]);
		return;
	}
	const char *at = (const char *)&t->sites[site];
	for (size_t i = 0; i < sizeof(*t->sites); i += 64)
		__builtin_prefetch(at + i, 1);
}

/* Before the live value of a site changes. */
static inline void tally_touch(struct model_site *s, uint64_t number, uint64_t host_number)
{
	if (s->peak_stamp != (uint32_t)number) {
		s->peak_stamp = (uint32_t)number;
		s->peak_bytes = s->live_bytes;
		s->peak_blocks = s->live_blocks;
	}
	if (s->host_stamp != (uint32_t)host_number) {
		s->host_stamp = (uint32_t)host_number;
		s->host_peak_bytes = s->live_bytes;
		s->host_peak_blocks = s->live_blocks;
	}
}

void tally_sites_fini(struct tally_sites *t);

#endif
