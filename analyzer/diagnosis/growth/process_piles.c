#include "analyzer/diagnosis/growth/process_piles.h"

#include "analyzer/util/minmax.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>

/* Workers that are each sent a table start slowly, too: where most still work, PILE_BUSY_BATCHES must have come. */
enum { PILE_LEAST = 5, PILE_LEAST_BATCHES = 3, PILE_BUSY_BATCHES = 12 };

#define PILE_LEAST_BYTES (32ull << 20) /* together */
#define PILE_NOTABLE     0.05          /* of what who started them had itself */
#define PILE_LEAST_NS    1000000000ull /* from the first batch to the last */
#define PILE_ALIVE       0.66          /* of all that were started: some may have failed */
#define PILE_APART       0.4           /* of the largest distance of two that follow each other: there a batch ends */
#define PILE_ALIKE       3             /* times as far apart as usual: still alike */
#define PILE_OVERDUE     3             /* times the usual distance without another one */
#define PILE_ENDS        0.5 /* of how far apart they began: if their lifetimes differ by less, each ends by itself */

/* A process, whatever it has exec'ed. */
struct member {
	const struct process *starter, *first, *last;
	uint64_t start_ns, end_ns;
};

/* Who was killed said nothing, and may have done nothing for long before. */
static uint64_t end_of(const struct process *p, const struct samples *samples)
{
	const struct sample_subject *s =
		samples && p->exit_kind != MT_EXIT_CODE ? samples_of_process(samples, p) : NULL;
	return p->state == PROCESS_RUNNING ? UINT64_MAX
	       : s                         ? higher(p->end_ns, s->gone_ns == UINT64_MAX ? s->last_ns : s->gone_ns)
					   : p->end_ns;
}

/* Python's own, one for all that share memory or semaphores. */
static bool is_tracker(const struct process *p)
{
	for (unsigned i = 0; i < p->argc; i++)
		if (strstr(p->argv[i], "multiprocessing.resource_tracker"))
			return true;
	return false;
}

/* All that somebody started; their later images go with them. */
static size_t list_members(const struct reader *r, const struct samples *samples, struct member *list)
{
	const unsigned n = reader_processes(r);
	size_t count = 0, *of = calloc(n + 1ul, sizeof(*of));
	for (unsigned id = 0; of && id < n; id++) {
		const struct process *p = reader_process(r, id), *by = p->creator;
		bool same = by && by->pid == p->pid && by->host == p->host;
		of[id] = SIZE_MAX;
		if (same && of[by->id] != SIZE_MAX) {
			struct member *m = &list[of[id] = of[by->id]];
			m->last = p;
			m->end_ns = end_of(p, samples);
		} else if (by && !same && !is_tracker(p)) {
			list[of[id] = count++] = (struct member){ by, p, p, p->start_ns, end_of(p, samples) };
		}
	}
	free(of);
	return count;
}

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Which interpreter's loop ran a frame is no part of the place: CPython 3.13 and later specialize a call of a class
 * after some, and run the __init__() in the caller's loop from then on. */
static int compare_python(const struct process *p, const struct process *q)
{
	const struct mt_node *a, *b;
	uint32_t x = p->fork_node2, y = q->fork_node2; /* of their parent's tree: the same node has the same number */
	while (x != y && (a = process_node(p, x)) && (b = process_node(q, y))) {
		int c = by_number(a->pc & ~MT_PY_ENTRY, b->pc & ~MT_PY_ENTRY);
		if (c)
			return c;
		x = a->parent;
		y = b->parent;
	}
	return by_number(x, y);
}

/* Those of one call follow each other: of a fork it is known where, else what runs says which they are. */
static int compare_groups(const struct member *x, const struct member *y)
{
	int c = by_number(x->starter->id, y->starter->id);
	c = c ? c : compare_python(x->first, y->first);
	c = c || x->first->fork_node2 ? c : by_number(x->first->fork_node, y->first->fork_node);
	return c ? c : strcmp(x->last->name, y->last->name);
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int c = compare_groups(x, y);
	return c ? c : by_number(x->start_ns, y->start_ns);
}

static int compare_ns(const void *a, const void *b)
{
	return by_number(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* How many of them were started when the most were alive: *alive. */
static size_t at_most(const struct member *list, size_t n, size_t *alive)
{
	size_t ended = 0, at = 0;
	uint64_t *ends = malloc(n * sizeof(*ends));
	*alive = 0;
	for (size_t i = 0; ends && i < n; i++)
		ends[i] = list[i].end_ns;
	if (ends)
		qsort(ends, n, sizeof(*ends), compare_ns);
	for (size_t i = 0; ends && i < n; i++) {
		while (ended < n && ends[ended] < list[i].start_ns)
			ended++;
		if (i + 1 - ended < *alive)
			continue;
		*alive = i + 1 - ended;
		at = i + 1;
	}
	free(ends);
	return at;
}

/* Batches at like distances, of which the next is not overdue; 0 = they are not. *every is the usual distance. */
static unsigned batches_of(const struct member *list, size_t n, uint64_t end_ns, double *every)
{
	uint64_t apart = 0, last = list[0].start_ns, longest = 0, shortest = UINT64_MAX;
	unsigned batches = 1;
	for (size_t i = 1; i < n; i++)
		apart = higher(apart, list[i].start_ns - list[i - 1].start_ns);
	for (size_t i = 1; i < n; i++) {
		if ((double)(list[i].start_ns - list[i - 1].start_ns) <= PILE_APART * (double)apart)
			continue;
		longest = higher(longest, list[i].start_ns - last);
		shortest = lower(shortest, list[i].start_ns - last);
		last = list[i].start_ns;
		batches++;
	}
	if (batches < PILE_LEAST_BATCHES || last - list[0].start_ns < PILE_LEAST_NS)
		return 0;
	*every = (double)(last - list[0].start_ns) / (batches - 1);
	return (double)longest <= PILE_ALIKE * *every && PILE_ALIKE * (double)shortest >= *every &&
			       (double)less(end_ns, last) <= PILE_OVERDUE * *every
		       ? batches
		       : 0;
}

/* What it has, or had, of its own. Untouched mappings (threads' stacks) are none of it. A model of changes alone knows
 * no peaks: then what it had written to, when somebody looked, is as good. */
static uint64_t own_bytes(const struct member *m, const struct model *model, const struct samples *samples)
{
	const struct model_process *p = model_process(model, m->last->id);
	const struct sample_subject *s = samples ? samples_of_process(samples, m->last) : NULL;
	uint64_t bytes = higher(p->kind[MODEL_HEAP].peak_bytes, model_live(model, m->last->id, MODEL_HEAP)),
		 mapped = p->map[MAP_ANON].peak_bytes;
	if (s && !p->kind[MODEL_HEAP].peak_bytes && s->known >> MT_PROCESS_private_dirty & 1)
		return higher(bytes, s->most[MT_PROCESS_private_dirty].value);
	return s && s->known >> MT_PROCESS_rss_anon & 1
		       ? higher(bytes, lower(bytes + mapped, s->last[MT_PROCESS_rss_anon].value))
		       : bytes;
}

/* Each had work of its own, and ended after about as long: somebody who lets them wait ends all at once. */
static bool end_by_themselves(const struct member *list, size_t n, uint64_t at)
{
	const uint64_t starter_ends = list[0].starter->end_ns;
	uint64_t first = UINT64_MAX, last = 0, shortest = UINT64_MAX, longest = 0;
	for (size_t i = 0; i < n; i++) {
		const struct member *m = &list[i];
		if (m->end_ns < at)
			continue;
		if (m->end_ns >= starter_ends || m->last->exit_kind != MT_EXIT_CODE || m->last->exit_code)
			return false;
		first = lower(first, m->start_ns);
		last = higher(last, m->start_ns);
		shortest = lower(shortest, m->end_ns - m->start_ns);
		longest = higher(longest, m->end_ns - m->start_ns);
	}
	return (double)(longest - shortest) <= PILE_ENDS * (double)less(last, first);
}

/* Its heap was not at one level all the time between the two. */
static bool is_busy(const struct member *m, const struct model *model, uint64_t from_ns, uint64_t to_ns)
{
	const struct model_series *s = &model_process(model, m->last->id)->timeline[MODEL_HEAP];
	const uint64_t width = model_timeline_width_ns(model), begin = model_from_ns(model);
	for (uint32_t i = 0; i < s->count; i++)
		if (begin + (s->first + i) * width >= from_ns && begin + (s->first + i + 1) * width <= to_ns &&
		    s->buckets[i].low < s->buckets[i].high)
			return true;
	return false;
}

/* Those of the first half, once the last was there. */
static bool are_busy(const struct member *list, size_t n, const struct model *model, uint64_t at, uint64_t end)
{
	size_t alive = 0, busy = 0;
	for (size_t i = 0; i < n / 2; i++) {
		alive += list[i].end_ns >= at;
		busy += list[i].end_ns >= at && is_busy(&list[i], model, at, end);
	}
	return 2 * busy > alive;
}

static bool judge(struct pile *out, const struct member *list, size_t n, const struct model *model,
		  const struct samples *samples)
{
	size_t alive, most = n < PILE_LEAST ? 0 : at_most(list, n, &alive);
	double every;
	if (!most || alive < PILE_LEAST || (double)alive < PILE_ALIVE * (double)n)
		return false;
	uint64_t at = list[most - 1].start_ns, end = lower(end_of(list[0].starter, samples), model_end_ns(model));
	for (size_t i = 0; i < most; i++) /* what it does when it begins to end them is no concern */
		end = list[i].end_ns < at ? end : lower(end, list[i].end_ns);
	unsigned batches = end_by_themselves(list, most, at) ? 0 : batches_of(list, most, end, &every);
	if (!batches || (batches < PILE_BUSY_BATCHES && are_busy(list, most, model, at, end)))
		return false;
	*out = (struct pile){ .starter = list[0].starter,
			      .one = list[most - 1].last,
			      .forked = list[most - 1].first,
			      .batches = batches };
	out->node = out->forked->fork_node;
	out->node2 = out->forked->fork_node2;
	for (size_t i = 0; i < most; i++) {
		if (list[i].end_ns < at)
			continue;
		out->count++;
		out->bytes += own_bytes(&list[i], model, samples);
	}
	if (out->bytes < PILE_LEAST_BYTES ||
	    (double)out->bytes <
		    PILE_NOTABLE * (double)model_process(model, out->starter->id)->kind[MODEL_HEAP].peak_bytes)
		return false;
	out->per_second = (double)out->bytes / batches / (every / 1e9);
	return true;
}

bool process_piles_find(struct pile *out, const struct reader *r, const struct model *m, const struct samples *samples)
{
	struct member *list = calloc(reader_processes(r) + 1ul, sizeof(*list));
	size_t count = list ? list_members(r, samples, list) : 0;
	struct pile found;
	*out = (struct pile){ 0 };
	if (count)
		qsort(list, count, sizeof(*list), compare);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && !compare_groups(&list[from], &list[to]); to++)
			;
		if (judge(&found, list + from, to - from, m, samples) && found.bytes > out->bytes)
			*out = found;
	}
	free(list);
	return out->count > 0;
}
