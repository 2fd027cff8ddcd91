/*
 * Sums with a peak, and the sites that share in them.
 *
 * A peak is only counted when a drop follows it: until then the live value itself is the highest. Its number tells
 * sites whether what they saved belongs to the latest peak (see model.h).
 */
#ifndef MT_MODEL_SITE_TABLE_H
#define MT_MODEL_SITE_TABLE_H

#include "analyzer/model/model.h"
#include "analyzer/model/series.h"
#include "analyzer/util/blocks.h"
#include "analyzer/util/hash_index.h"

/* A live sum. `totals` holds live and peak values, the rest is how they come about. */
struct peak_sum {
	struct model_totals totals;
	uint64_t number;  /* of the latest counted peak */
	uint64_t rise_ns; /* when it last grew */
};

/* Call before anything gets smaller, and at the end. */
static inline void peak_sum_settle(struct peak_sum *t)
{
	if (t->totals.live_bytes <= t->totals.peak_bytes)
		return;
	t->totals.peak_bytes = t->totals.live_bytes;
	t->totals.peak_blocks = t->totals.live_blocks;
	t->totals.peak_ns = t->rise_ns;
	t->number++;
}

static inline void peak_sum_rise(struct peak_sum *t, uint64_t bytes, uint64_t ns)
{
	t->totals.live_bytes += bytes;
	t->rise_ns = bytes ? ns : t->rise_ns;
}

static inline void peak_sum_drop(struct peak_sum *t, uint64_t bytes)
{
	peak_sum_settle(t);
	t->totals.live_bytes -= bytes;
}

/* Forgets peak and counts, keeps what is live: figures begin here. */
void peak_sum_restart(struct peak_sum *t, uint64_t ns);

/* What tells sites apart. */
struct site_key {
	uint32_t process, node, node2, split, kind, device; /* as in struct model_site */
	uint64_t sampled;
};

/* Adds counts and live memory to a sum; the sum's peak is only known from a pass. */
void peak_sum_add(struct model_totals *to, const struct model_totals *t);

/* The sites of one process. Every stack that ever allocated keeps its number, and what tells it from others; figures
 * have those that hold something, or did at the latest peak. When a plain site (of the heap, neither split nor sampled)
 * has nothing left its figures are taken by the next one: most sites of a program hold one block for a moment. */
struct site_table {
	bool numbers_only;              /* they have no figures: model_query.changes_only */
	const struct site_table *known; /* who gives the numbers: model_query.numbers. NULL = these themselves */
	struct site_origin {
		uint32_t node, node2;
		/* in `sites`, plus 1; 0 = none. With SITE_ODD: it is no plain site, and always has them */
		uint32_t figures;
		uint32_t temporary;
	} *origins; /* by number */
	size_t count, room;
	struct model_site *sites; /* if numbers_only only the odd ones', for their keys */
	size_t site_count, site_room;
	uint32_t unused;     /* the first of `sites` that is free, plus 1; its `node` is the next one */
	uint64_t *oldest_ns; /* see struct model_process */
	struct model_doubt *doubts;
	struct hash_index index;    /* by hash of the key: the site + 1 */
	struct site_recent *recent; /* SITE_RECENT; NULL = not yet worth it, or over */
	uint32_t looks;             /* for plain sites, until there is `recent` */
};

/* Plain sites that were asked for lately: most allocations are by a stack that allocated just before. */
struct site_recent {
	uint32_t node, node2;
	uint32_t site; /* the site + 1; 0 = none */
};

enum { SITE_RECENT = 1024 };

#define SITE_ODD     (1u << 31)
#define SITE_AGAIN   (1u << 30) /* it had figures before, or none of its blocks was seen */
#define SITE_FIGURES (SITE_AGAIN - 1)

/* The site's number, made if it is new (BLOCK_NO_SITE if others are to know it and do not); -MT_EMEMORY as an int64_t.
 * Stamps of a new one say "was empty at the peak". */
int64_t site_table_site(struct site_table *t, const struct site_key *key, uint64_t number, uint64_t host_number);

/* The same of a site of the heap that is neither split nor sampled. */
int64_t site_table_plain_anew(struct site_table *t, uint32_t process, uint32_t node, uint32_t node2);

static inline int64_t site_table_plain(struct site_table *t, uint32_t process, uint32_t node, uint32_t node2)
{
	const uint32_t mixed = (node ^ node2 * 0x85EBCA6Bu) * 0x9E3779B1u;
	struct site_recent *r = t->recent ? &t->recent[mixed >> 22] : NULL;
	if (r && r->site && r->node == node && r->node2 == node2)
		return r->site - 1;
	int64_t site = site_table_plain_anew(t, process, node, node2);
	if (r && site >= 0 && site != BLOCK_NO_SITE)
		*r = (struct site_recent){ node, node2, (uint32_t)site + 1 };
	return site;
}

/* No more sites will be asked for, as far as is known. */
void site_table_rest(struct site_table *t);

/* NULL if it has none. */
static inline struct model_site *site_table_figures(const struct site_table *t, uint32_t site)
{
	uint32_t figures = t->numbers_only ? 0 : t->origins[site].figures & SITE_FIGURES;
	return figures ? &t->sites[figures - 1] : NULL;
}

struct model_site *site_table_open_new(struct site_table *t, uint32_t process, uint32_t site, uint64_t number,
				       uint64_t host_number);

/* The same, made if there are none; NULL also if there is no memory. */
static inline struct model_site *site_table_open(struct site_table *t, uint32_t process, uint32_t site, uint64_t number,
						 uint64_t host_number)
{
	struct model_site *s = site_table_figures(t, site);
	return s || t->numbers_only ? s : site_table_open_new(t, process, site, number, host_number);
}

void site_table_close_plain(struct site_table *t, struct model_site *s);

/* Gives them back if there is nothing in them. They were touched. */
static inline void site_table_close(struct site_table *t, struct model_site *s)
{
	if (!(s->live_blocks | s->live_bytes | s->peak_blocks | s->host_peak_blocks))
		site_table_close_plain(t, s);
}

/* Blocks of which nothing else is known came and went. */
static inline void site_table_unseen(struct site_table *t, uint32_t site)
{
	struct model_site *s = site_table_figures(t, site);
	if (s)
		s->allocations++;
	else if (!t->numbers_only)
		t->origins[site].figures |= SITE_AGAIN;
}

static inline void site_table_temporary(struct site_table *t, uint32_t site, uint32_t more)
{
	if (!t->numbers_only)
		t->origins[site].temporary += more;
}

/* Behind the pass: figures in the order of numbers, also of sites whose blocks were all temporary, and no others. */
int site_table_settle(struct site_table *t, uint32_t process);

/* When the peaks are known: figures that nothing is left of go. */
void site_table_drop_empty(struct site_table *t);

/* The same of its stack alone. */
static inline const struct site_origin *site_table_origin(const struct site_table *t, uint32_t site)
{
	return &(t->known ? t->known : t)->origins[site];
}

struct site_key site_table_key(const struct site_table *t, uint32_t site);

/* For loops over all figures; those of no site have kind MODEL_KINDS. */
static inline size_t site_table_count(const struct site_table *t)
{
	return t->numbers_only ? 0 : t->site_count;
}

/* So few that they are in the cache anyway. */
static inline bool site_table_is_small(const struct site_table *t)
{
	return (t->known ? t->known : t)->count < 1024;
}

/* Bring what an allocation of the heap by these nodes needs into the cache: first its place in the index, then, some
 * events later, the site. A site that was split or sampled is missed; that costs time alone. */
void site_table_prefetch(const struct site_table *t, uint32_t node, uint32_t node2);
void site_table_prefetch_found(const struct site_table *t, uint32_t node, uint32_t node2);

static inline void site_table_prefetch_site(const struct site_table *t, uint32_t site)
{
	const struct site_origin *o = &(t->known ? t->known : t)->origins[site];
	const char *at = (const char *)(t->numbers_only ? NULL : site_table_figures(t, site));
	__builtin_prefetch(o);
	for (size_t i = 0; at && i < sizeof(*t->sites); i += 64)
		__builtin_prefetch(at + i, 1);
}

/* Before the live value of a site changes. */
static inline void site_table_touch(struct model_site *s, uint64_t number, uint64_t host_number)
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

void site_table_fini(struct site_table *t);

#endif
