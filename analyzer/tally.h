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

/* The sites of one process. Every stack that ever allocated keeps its number, and what tells it from others; figures have those that
 * hold something, or did at the latest peak. When a plain site (of the heap, neither split nor sampled) has nothing left its figures
 * are taken by the next one: most sites of a program hold one block for a moment. */
struct tally_sites {
	bool numbers_only;     /* they have no figures: model_query.changes_only */
	const struct tally_sites *known; /* who gives the numbers: model_query.numbers. NULL = these themselves */
	struct tally_origin {
		uint32_t node, node2;
		uint32_t figures;  /* in `sites`, plus 1; 0 = none. With TALLY_ODD: it is no plain site, and always has them */
		uint32_t temporary;
	} *origins;            /* by number */
	size_t count, room;
	struct model_site *sites; /* if numbers_only only the odd ones', for their keys */
	size_t site_count, site_room;
	uint32_t unused;       /* the first of `sites` that is free, plus 1; its `node` is the next one */
	uint64_t *oldest_ns;   /* see struct model_process */
	struct model_doubt *doubts;
	uint32_t *index;       /* by hash of the key: the site + 1, in slots of vec.h */
	size_t mask;
};

#define TALLY_ODD (1u << 31)
#define TALLY_AGAIN (1u << 30) /* it had figures before, or none of its blocks was seen */
#define TALLY_FIGURES (TALLY_AGAIN - 1)

/* The site's number, made if it is new (BLOCK_NO_SITE if others are to know it and do not); -MT_EMEMORY as an int64_t. Stamps of a
 * new one say "was empty at the peak". */
int64_t tally_site(struct tally_sites *t, const struct site_key *key, uint64_t number, uint64_t host_number);

/* NULL if it has none. */
static inline struct model_site *tally_figures(const struct tally_sites *t, uint32_t site)
{
	uint32_t figures = t->numbers_only ? 0 : t->origins[site].figures & TALLY_FIGURES;
	return figures ? &t->sites[figures - 1] : NULL;
}

/* The same, made if there are none; NULL also if there is no memory. */
struct model_site *tally_open(struct tally_sites *t, uint32_t process, uint32_t site, uint64_t number, uint64_t host_number);

/* Gives them back if there is nothing in them. They were touched. */
void tally_close(struct tally_sites *t, struct model_site *s);

/* Blocks of which nothing else is known came and went. */
static inline void tally_unseen(struct tally_sites *t, uint32_t site)
{
	struct model_site *s = tally_figures(t, site);
	if (s)
		s->allocations++;
	else if (!t->numbers_only)
		t->origins[site].figures |= TALLY_AGAIN;
}

static inline void tally_temporary(struct tally_sites *t, uint32_t site, uint32_t more)
{
	if (!t->numbers_only)
		t->origins[site].temporary += more;
}

/* Behind the pass: figures in the order of numbers, also of sites whose blocks were all temporary, and no others. */
int tally_settle_sites(struct tally_sites *t, uint32_t process);

/* When the peaks are known: figures that nothing is left of go. */
void tally_drop_empty(struct tally_sites *t);

struct site_key tally_key(const struct tally_sites *t, uint32_t site);

/* For loops over all figures; those of no site have kind MODEL_KINDS. */
static inline size_t tally_count(const struct tally_sites *t)
{
	return t->numbers_only ? 0 : t->site_count;
}

/* Bring what an allocation of the heap by these nodes needs into the cache: first its place in the index, then, some events
 * later, the site. A site that was split or sampled is missed; that costs time alone. */
void tally_prefetch(const struct tally_sites *t, uint32_t node, uint32_t node2);
void tally_prefetch_found(const struct tally_sites *t, uint32_t node, uint32_t node2);

static inline void tally_prefetch_site(const struct tally_sites *t, uint32_t site)
{
	const struct tally_origin *o = &(t->known ? t->known : t)->origins[site];
	const char *at = (const char *)(t->numbers_only ? NULL : tally_figures(t, site));
	__builtin_prefetch(o);
	for (size_t i = 0; at && i < sizeof(*t->sites); i += 64)
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
