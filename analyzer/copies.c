/*
 * How: blocks in order of allocation belong to every call (node of the merged tree) on the way out of their stack. A call
 * whose blocks are fewer than its caller's is a candidate: something was made there. Candidates of which neither called
 * the other are compared, the largest first; parts of what is already known to be a copy are not looked at again.
 */
#include "analyzer/copies.h"

#include "analyzer/error.h"
#include "analyzer/vec.h"

#define LEAST_BLOCKS 6      /* in a copy: fewer are a coincidence */
#define LEAST_SIZES 3       /* different ones among them */
#define LEAST_PERIOD 24     /* blocks; a layer has fewer */
#define LOOK_AHEAD 8        /* blocks that one copy may have more than the other, at one place */
#define ALIKE 0.95          /* of the bytes */
#define ROUNDING 1024u      /* a pool's, twice */
#define MOST_CANDIDATES 96
#define MOST_BLOCKS 100000

struct candidate {
	uint32_t node;
	uint32_t space;
	uint64_t bytes;
	uint64_t *sizes;
	uint32_t *blocks; /* their indices */
	size_t count;
	bool taken;       /* it is in a set, or a part of one that is */
};

struct search {
	struct stacks *stacks;
	struct copy_block *blocks;
	size_t count;
	uint64_t least_bytes;
	struct candidate candidates[MOST_CANDIDATES];
	size_t candidate_count;
	struct copies *out;
	size_t room;
};

/* ---- comparing --------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const uint64_t *sizes, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += sizes[i];
	return sum;
}

/* 2: b is about twice a; 1: as large; 0: neither. */
static unsigned factor_of(uint64_t a, uint64_t b)
{
	double ratio = a ? (double)b / (double)a : 0;
	return ratio > 0.93 && ratio < 1.08 ? 1 : ratio > 1.85 && ratio < 2.16 ? 2 : 0;
}

static bool same_size(uint64_t a, uint64_t b, unsigned factor)
{
	uint64_t scaled = a * factor, off = scaled > b ? scaled - b : b - scaled;
	return off == 0 || (off < ROUNDING && off * 8 < b);
}

/* How far on in `list` something matches `wanted`; LOOK_AHEAD = nowhere near. */
static size_t ahead(const uint64_t *list, size_t n, uint64_t wanted, unsigned factor, bool list_is_b)
{
	size_t most = n < LOOK_AHEAD ? n : LOOK_AHEAD;
	for (size_t k = 0; k < most; k++)
		if (list_is_b ? same_size(wanted, list[k], factor) : same_size(list[k], wanted, factor))
			return k;
	return LOOK_AHEAD;
}

/* Different sizes among those that matched, as far as it matters. */
struct variety { uint64_t sizes[LEAST_SIZES]; size_t count; };

static void note_size(struct variety *v, uint64_t size)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->sizes[i] == size)
			return;
	if (v->count < LEAST_SIZES)
		v->sizes[v->count++] = size;
}

static struct copy_match same_in_order(const uint64_t *a, size_t na, const uint64_t *b, size_t nb, unsigned factor)
{
	struct variety variety = { .count = 0 };
	struct copy_match m = { .factor = factor };
	size_t i = 0, k = 0;
	while (i < na && k < nb) {
		size_t in_b = ahead(b + k, nb - k, a[i], factor, true), in_a = ahead(a + i, na - i, b[k], factor, false);
		if (in_b == LOOK_AHEAD && in_a == LOOK_AHEAD) {
			i++;
			k++;
			continue;
		}
		if (in_b <= in_a)
			k += in_b;
		else
			i += in_a;
		m.bytes += a[i];
		m.blocks++;
		note_size(&variety, a[i]);
		i++;
		k++;
	}
	bool same = m.blocks >= LEAST_BLOCKS && variety.count >= LEAST_SIZES && (double)m.bytes >= ALIKE * (double)sum_of(a, na) &&
		    (double)(m.bytes * factor) >= ALIKE * (double)sum_of(b, nb);
	return same ? m : (struct copy_match){ 0 };
}

struct copy_match copies_match(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
	uint64_t sa = sum_of(a, a_count), sb = sum_of(b, b_count);
	if (sa > sb)
		return copies_match(b, b_count, a, a_count);
	unsigned factor = factor_of(sa, sb);
	return factor ? same_in_order(a, a_count, b, b_count, factor) : (struct copy_match){ 0 };
}

/* Knuth, Morris, Pratt: the smallest period of a text is its length less its longest border. */
size_t copies_period(const uint64_t *sizes, size_t count)
{
	size_t *border = count ? calloc(count, sizeof(*border)) : NULL;
	struct variety variety = { .count = 0 };
	if (!border)
		return 0;
	for (size_t i = 1, k = 0; i < count; i++) {
		while (k && sizes[i] != sizes[k])
			k = border[k - 1];
		k += sizes[i] == sizes[k];
		border[i] = k;
	}
	size_t period = count - border[count - 1];
	free(border);
	for (size_t i = 0; i < period; i++)
		note_size(&variety, sizes[i]);
	bool whole = period < count && count % period == 0;
	return whole && period >= LEAST_PERIOD && variety.count >= LEAST_SIZES && count / period <= COPY_OWNERS ? period : 0;
}

/* ---- candidates -------------------------------------------------------------------------------------------- */

static int by_order(const void *a, const void *b)
{
	const struct copy_block *x = a, *y = b;
	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int by_size(const void *a, const void *b)
{
	const struct copy_block *x = a, *y = b;
	return (x->size < y->size) - (x->size > y->size);
}

struct weight { uint64_t bytes; uint32_t blocks; };

static bool is_within(const struct search *s, uint32_t stack, uint32_t node)
{
	for (; stack; stack = stacks_outer(s->stacks, stack))
		if (stack == node)
			return true;
	return false;
}

static int larger_candidate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Keeps the largest ones. */
static void offer(struct search *s, const struct candidate *c)
{
	size_t at = s->candidate_count;
	if (at == MOST_CANDIDATES) {
		if (larger_candidate(&s->candidates[at - 1], c) < 0)
			return;
		at--;
	} else {
		s->candidate_count++;
	}
	for (; at > 0 && larger_candidate(c, &s->candidates[at - 1]) < 0; at--)
		s->candidates[at] = s->candidates[at - 1];
	s->candidates[at] = *c;
}

/* Of the blocks [from, to), which are of one space. `weights` is zero, and is so again afterwards. */
static void find_candidates(struct search *s, struct weight *weights, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		for (uint32_t n = s->blocks[i].stack; n; n = stacks_outer(s->stacks, n)) {
			weights[n].bytes += s->blocks[i].size;
			weights[n].blocks++;
		}
	for (size_t i = from; i < to; i++)
		for (uint32_t n = s->blocks[i].stack; n && weights[n].blocks; n = stacks_outer(s->stacks, n)) {
			uint32_t outer = stacks_outer(s->stacks, n);
			struct weight w = weights[n];
			if (w.blocks == UINT32_MAX)
				break;
			weights[n].blocks = UINT32_MAX; /* looked at */
			if (w.blocks >= LEAST_BLOCKS && w.bytes >= s->least_bytes &&
			    (!outer || weights[outer].bytes != w.bytes))
				offer(s, &(struct candidate){ .node = n, .space = s->blocks[i].space, .bytes = w.bytes });
		}
	for (size_t i = from; i < to; i++)
		for (uint32_t n = s->blocks[i].stack; n && weights[n].blocks; n = stacks_outer(s->stacks, n))
			weights[n] = (struct weight){ 0, 0 };
}

static int fill_candidate(struct search *s, struct candidate *c)
{
	size_t n = 0;
	c->sizes = malloc((s->count + 1) * sizeof(*c->sizes));
	c->blocks = malloc((s->count + 1) * sizeof(*c->blocks));
	if (!c->sizes || !c->blocks)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0; i < s->count; i++)
		if (s->blocks[i].space == c->space && is_within(s, s->blocks[i].stack, c->node)) {
			c->sizes[n] = s->blocks[i].size;
			c->blocks[n++] = (uint32_t)i;
		}
	c->count = n;
	return 0;
}

/* ---- sets -------------------------------------------------------------------------------------------------- */

static struct copy_owner owner_of(const struct search *s, const struct candidate *c, size_t from, size_t to)
{
	struct copy_owner o = { .stack = c->node, .blocks = (unsigned)(to - from) };
	uint64_t largest = 0, of[CATEGORIES] = { 0 };
	for (size_t i = from; i < to; i++) {
		o.bytes += c->sizes[i];
		of[s->blocks[c->blocks[i]].category] += c->sizes[i];
		if (c->sizes[i] > largest) {
			largest = c->sizes[i];
			o.largest = s->blocks[c->blocks[i]].stack;
		}
	}
	for (int i = 0; i < CATEGORIES; i++)
		o.category = of[i] > of[o.category] ? (enum category)i : o.category;
	o.unknown_bytes = of[CATEGORY_unknown];
	return o;
}

static void add_owner(struct copy_set *set, const struct copy_owner *o)
{
	unsigned at = set->count;
	if (at == COPY_OWNERS)
		return;
	for (; at > 0 && set->owners[at - 1].bytes < o->bytes; at--)
		set->owners[at] = set->owners[at - 1];
	set->owners[at] = *o;
	set->count++;
	set->bytes += o->bytes;
	set->extra_bytes = set->bytes - set->owners[0].bytes;
}

static int keep_set(struct search *s, const struct copy_set *set)
{
	int e = vec_reserve(s->out->sets, s->room, s->out->count + 1);
	if (e == 0)
		s->out->sets[s->out->count++] = *set;
	return e;
}

static void note_match(struct copy_set *set, struct copy_match m)
{
	set->cast = set->cast || m.factor > 1;
	set->blocks = set->each && set->blocks < m.blocks ? set->blocks : m.blocks;
	set->each = set->each && set->each < m.bytes ? set->each : m.bytes;
}

static bool nested(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	return a->space == b->space && (is_within(s, a->node, b->node) || is_within(s, b->node, a->node));
}

/* Parts of what was taken, and what it is a part of, are no further copies. */
static void take(struct search *s, struct candidate *c)
{
	c->taken = true;
	for (size_t i = 0; i < s->candidate_count; i++)
		if (nested(s, &s->candidates[i], c))
			s->candidates[i].taken = true;
}

static int find_twins(struct search *s, size_t index)
{
	struct candidate *c = &s->candidates[index];
	struct copy_set set = { .space = c->space };
	for (size_t i = index + 1; i < s->candidate_count; i++) {
		struct candidate *other = &s->candidates[i];
		if (other->taken || other->space != c->space || nested(s, other, c))
			continue;
		struct copy_match m = copies_match(c->sizes, c->count, other->sizes, other->count);
		if (!m.blocks)
			continue;
		note_match(&set, m);
		struct copy_owner o = owner_of(s, other, 0, other->count);
		add_owner(&set, &o);
		take(s, other);
	}
	if (!set.count)
		return 0;
	struct copy_owner o = owner_of(s, c, 0, c->count);
	add_owner(&set, &o);
	take(s, c);
	return keep_set(s, &set);
}

/* The same call made it again and again. */
static int find_repeats(struct search *s, struct candidate *c)
{
	size_t period = c->taken ? 0 : copies_period(c->sizes, c->count);
	struct copy_set set = { .space = c->space, .blocks = (unsigned)period, .each = sum_of(c->sizes, period) };
	if (!period || set.each < s->least_bytes)
		return 0;
	for (size_t from = 0; from < c->count; from += period) {
		struct copy_owner o = owner_of(s, c, from, from + period);
		add_owner(&set, &o);
	}
	take(s, c);
	return keep_set(s, &set);
}

static int larger_set(const void *a, const void *b)
{
	const struct copy_set *x = a, *y = b;
	return (x->extra_bytes < y->extra_bytes) - (x->extra_bytes > y->extra_bytes);
}

static int search(struct search *s)
{
	struct weight *weights = calloc(stacks_count(s->stacks) + 1, sizeof(*weights));
	int e = weights ? 0 : error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	for (size_t i = 0, n; weights && i < s->count; i += n) {
		for (n = 1; i + n < s->count && s->blocks[i + n].space == s->blocks[i].space; n++)
			;
		find_candidates(s, weights, i, i + n);
	}
	free(weights);
	for (size_t i = 0; e == 0 && i < s->candidate_count; i++)
		e = fill_candidate(s, &s->candidates[i]);
	for (size_t i = 0; e == 0 && i < s->candidate_count; i++)
		if (!s->candidates[i].taken)
			e = find_twins(s, i);
	for (size_t i = 0; e == 0 && i < s->candidate_count; i++)
		e = find_repeats(s, &s->candidates[i]);
	for (size_t i = 0; i < s->candidate_count; i++) {
		free(s->candidates[i].sizes);
		free(s->candidates[i].blocks);
	}
	return e;
}

static void leave(struct copies *c, const struct copy_block *b)
{
	c->left_blocks++;
	c->left_bytes += b->size;
}

int copies_find(struct copies *c, struct stacks *stacks, struct copy_block *blocks, size_t count, uint64_t least_block,
		uint64_t least_bytes)
{
	size_t n = 0;
	*c = (struct copies){ 0 };
	for (size_t i = 0; i < count; i++)
		if (blocks[i].size >= least_block && blocks[i].stack)
			blocks[n++] = blocks[i];
		else
			leave(c, &blocks[i]);
	if (n > MOST_BLOCKS) {
		qsort(blocks, n, sizeof(*blocks), by_size);
		for (; n > MOST_BLOCKS; n--)
			leave(c, &blocks[n - 1]);
	}
	if (n == 0)
		return 0;
	qsort(blocks, n, sizeof(*blocks), by_order);
	struct search *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(MT_EMEMORY, NULL, ERROR_NO_OFFSET, NULL);
	*s = (struct search){ .stacks = stacks, .blocks = blocks, .count = n, .least_bytes = least_bytes ? least_bytes : 1, .out = c };
	int e = search(s);
	free(s);
	if (e < 0)
		copies_fini(c);
	else if (c->count)
		qsort(c->sets, c->count, sizeof(*c->sets), larger_set);
	return e;
}

void copies_fini(struct copies *c)
{
	free(c->sets);
	*c = (struct copies){ 0 };
}
