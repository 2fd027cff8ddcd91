#include "analyzer/replay/pool/least.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"

#include <stdlib.h>

#define STEP 2097152ull

enum { PROBES = 7, LEAST_MOST_PASSES = 24, LEAST_ENOUGH = 1024, LARGER = 4 };

/* Between what is too small and what is enough; high 0 = not found yet, UINT64_MAX = there is none. */
struct bracket {
	uint64_t low, high;
};

struct probe {
	const struct replay *replay;
	const struct bracket *brackets; /* of this case; one of each pool, `stride` apart */
	size_t stride, pools;           /* pools: that have one */
	unsigned number;
};

static uint64_t step_of(const struct bracket *b)
{
	uint64_t step = (b->high ? b->high : b->low) / LEAST_ENOUGH / STEP * STEP;
	return step > STEP ? step : STEP;
}

static bool is_found(const struct bracket *b)
{
	return b->high && (b->high == UINT64_MAX || b->high - b->low <= step_of(b));
}

/* As far as nothing is known to be enough they double, then they divide what is left. */
static uint64_t size_of(const struct bracket *b, unsigned number)
{
	if (!b->high)
		return b->low << (number + 1);
	const uint64_t size = b->low + (b->high - b->low) / (PROBES + 1) * (number + 1);
	return size / STEP * STEP;
}

static uint64_t probe_card(void *arg, const struct replay_track *t)
{
	const struct probe *p = arg;
	const size_t pool = (size_t)(t - p->replay->tracks);
	return pool < p->pools ? size_of(&p->brackets[pool * p->stride], p->number) : STEP;
}

static bool fits(const struct replay_track *t, const struct replay_outcome *o)
{
	return !o->refused.request && o->granted_count == t->refused;
}

static void narrow(struct bracket *b, const struct replay_track *t, const struct replay_outcome *outcomes)
{
	uint64_t low = b->low, high = b->high;
	for (unsigned k = 0; k < PROBES; k++) {
		const uint64_t size = size_of(b, k);
		if (fits(t, &outcomes[k])) {
			high = size > low ? size : high;
			break;
		}
		low = size > low ? size : low;
	}
	if (!high && low > (1ull << 46))
		high = UINT64_MAX;
	if (low == b->low && high == b->high) /* nothing lies between that is a whole step */
		low = less(high, step_of(b));
	*b = (struct bracket){ low, high };
}

static bool all_found(const struct replay *r, const struct bracket *brackets, size_t count)
{
	for (size_t i = 0; i < r->count * count; i++)
		if (!is_found(&brackets[i]))
			return false;
	return true;
}

static int probe_all(struct replay *r, const struct reader *first, const struct replay_query *q, size_t count,
		     struct bracket *brackets)
{
	struct replay_case *cases = calloc(count * PROBES, sizeof(*cases));
	struct probe *probes = calloc(count * PROBES, sizeof(*probes));
	struct replay_query more = *q;
	int e = cases && probes ? 0 : error_memory();
	for (size_t i = 0; i < count * PROBES && !e; i++) {
		cases[i] = q->cases[i / PROBES];
		probes[i] = (struct probe){ r, &brackets[i / PROBES], count, r->count, i % PROBES };
		cases[i].card = probe_card;
		cases[i].card_arg = &probes[i];
	}
	more.cases = cases;
	more.case_count = count * PROBES;
	more.failure_ns = 0;
	for (int pass = 0; pass < LEAST_MOST_PASSES && !e && !all_found(r, brackets, count); pass++) {
		e = replay_more(r, first, &more);
		for (size_t i = 0; i < r->count * count && !e; i++)
			if (!is_found(&brackets[i]))
				narrow(&brackets[i], &r->tracks[i / count],
				       &r->tracks[i / count].outcomes[i % count * PROBES]);
	}
	free(cases);
	free(probes);
	return e;
}

int replay_least(struct replay *r, const struct reader *first, const struct replay_query *q, size_t count,
		 uint64_t *least)
{
	struct bracket *brackets = calloc(r->count * count + 1, sizeof(*brackets));
	if (!brackets)
		return error_memory();
	for (size_t i = 0; i < r->count * count; i++) {
		const struct replay_track *t = &r->tracks[i / count];
		const uint64_t used = (t->run.figures.most_used + t->outside) / LARGER / STEP * STEP;
		brackets[i].low = used > STEP ? used : STEP;
		if (t->unmodelled || t->differs.request)
			brackets[i].high = UINT64_MAX;
	}
	int e = probe_all(r, first, q, count, brackets);
	for (size_t i = 0; i < r->count * count && !e; i++)
		least[i] = is_found(&brackets[i]) && brackets[i].high != UINT64_MAX ? brackets[i].high : 0;
	free(brackets);
	return e;
}
