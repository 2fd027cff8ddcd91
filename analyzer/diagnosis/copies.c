/*
 * How: blocks in order of allocation belong to every call (node of the merged tree) on the way out of their stack. A
 * call whose blocks are fewer than its caller's is a candidate: something was made there. Candidates of which neither
 * called the other are compared, the largest first; parts of what is already known to be a copy are not looked at
 * again. Parameters that each of several threads made are candidates, too: one thread makes the equal layers of a
 * model, so fewer different sizes are enough where two made them by the same line. What the call that failed had made
 * by then may be the beginning of one more copy.
 */
#include "analyzer/diagnosis/copies.h"

#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#define LEAST_BLOCKS    6    /* in a copy: fewer are a coincidence */
#define LEAST_SIZES     3    /* different ones among them */
#define LEAST_OF_THREAD 2    /* the same, where several threads made parameters by one line */
#define LEAST_PERIOD    24   /* blocks that one call makes again; a layer has fewer, */
#define LARGE_BLOCKS    5    /* so many will do for both where they are large: */
#define LARGE           10   /* times least_bytes */
#define BEGINNING       3    /* blocks of a copy in its order, with the one that failed */
#define ALIKE           0.95 /* of the bytes */
#define ALIKE_BLOCKS    0.9  /* of the blocks, where one has a fraction of the other's sizes: */
#define MOST_SHARDS     16
#define MOST_TIMES      4          /* a checkpoint has the same sizes: a model, its average, an optimizer's states */
#define ROUNDING        1024u      /* a pool's, twice */
#define UNSPLIT         (1u << 20) /* a pool leaves a large block so much larger than it was asked for */
#define EXACT           2 / 3      /* of the blocks: not many are */
#define MOST_TRIES      64         /* for each block, at finding a period */
#define SIDE_BY_SIDE    8          /* turns in which both of two got blocks, and half of all that either got some in */
#define MOST_CANDIDATES 96
#define MOST_OF_THREADS COPY_OWNERS /* candidates beside them */
#define MOST_BLOCKS     100000

struct candidate {
	uint32_t node;
	uint32_t thread; /* only its blocks; COPY_NO_THREAD = all threads' */
	uint32_t space;
	uint64_t bytes;
	uint64_t *sizes;
	uint64_t *sorted;   /* of the first `unit` ones */
	uint32_t *blocks;   /* their indices */
	size_t count, unit; /* of one copy, where the same call made several */
	bool taken;         /* it is in a set, or a part of one that is */
};

struct search {
	struct stacks *stacks;
	struct copy_block *blocks;
	size_t count;
	uint64_t least_bytes;
	const struct copy_request *requests;
	size_t request_count;
	struct candidate candidates[MOST_CANDIDATES + MOST_OF_THREADS];
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

/* How many times a b is: 1, 2 (a cast), or as many as shards may be; 0: neither. */
static unsigned factor_of(uint64_t a, uint64_t b)
{
	double ratio = a ? (double)b / (double)a : 0;
	unsigned n = ratio < MOST_SHARDS + 0.5 ? (unsigned)(ratio + 0.5) : 0;
	return n && ratio > 0.925 * n && ratio < 1.08 * n ? n : 0;
}

/* 2: the same size; 1: where the pool did not split one of them; 0: another. */
static unsigned alike(uint64_t a, uint64_t b, unsigned factor)
{
	uint64_t scaled = a * factor, off = scaled > b ? scaled - b : b - scaled;
	if (off == 0 || (off < ROUNDING * (factor > 2 ? factor : 1) && off * 8 < b))
		return 2;
	return a > UNSPLIT && b > UNSPLIT && off <= (uint64_t)UNSPLIT * factor && off * 3 <= b;
}

static bool same_size(uint64_t a, uint64_t b, unsigned factor)
{
	return alike(a, b, factor) > 0;
}

/* Different sizes among those that matched, as far as it matters. */
struct variety {
	uint64_t sizes[LEAST_SIZES];
	size_t count;
};

static void note_size(struct variety *v, uint64_t size)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->sizes[i] == size)
			return;
	if (v->count < LEAST_SIZES)
		v->sizes[v->count++] = size;
}

/* What two have in common, the other one in `bytes`; `rest` is what each of them has beside it. */
struct common {
	struct copy_match match;
	uint64_t bytes;
	struct variety variety;
	uint64_t *rest[2];
	size_t rests[2];
};

/* Pairs of sorted sizes that are at least `how` alike; of the first time what is left over is kept. */
static unsigned pair_up(struct common *c, const uint64_t *a, size_t na, const uint64_t *b, size_t nb, unsigned how)
{
	unsigned pairs = 0, factor = c->match.factor;
	bool keep = c->rest[0] && c->rest[1] && how > 1;
	for (size_t i = 0, k = 0; i < na || k < nb;) {
		bool in_a = i < na && (k == nb || a[i] * factor < b[k]);
		if (i < na && k < nb && alike(a[i], b[k], factor) >= how) {
			note_size(&c->variety, a[i]);
			c->match.bytes += a[i++];
			c->bytes += b[k++];
			pairs++;
		} else if (keep) {
			c->rest[!in_a][c->rests[!in_a]++] = in_a ? a[i++] : b[k++];
		} else {
			in_a ? i++ : k++;
		}
	}
	return pairs;
}

/* What two must have in common at least. */
struct least {
	unsigned blocks, sizes;
};

static const struct least usual = { LEAST_BLOCKS, LEAST_SIZES };

/* Of sorted sizes. */
static struct copy_match same_sizes(const uint64_t *a, size_t na, const uint64_t *b, size_t nb, unsigned factor,
				    struct least least)
{
	struct common c = { .match = { .factor = factor },
			    .rest = { malloc((na + 1) * sizeof(*a)), malloc((nb + 1) * sizeof(*b)) } };
	unsigned exact = pair_up(&c, a, na, b, nb, 2);
	c.match.blocks = exact + pair_up(&c, c.rest[0], c.rests[0], c.rest[1], c.rests[1], 1);
	const struct copy_match m = c.match;
	bool same = m.blocks >= least.blocks && exact >= m.blocks * EXACT && c.variety.count >= least.sizes &&
		    (double)m.bytes >= ALIKE * (double)sum_of(a, na) &&
		    (double)c.bytes >= ALIKE * (double)sum_of(b, nb);
	if (factor > 2)
		same = same && m.blocks >= ALIKE_BLOCKS * (double)na && m.blocks >= ALIKE_BLOCKS * (double)nb;
	free(c.rest[0]);
	free(c.rest[1]);
	return same ? m : (struct copy_match){ 0 };
}

static struct copy_match match_sorted(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count,
				      struct least least)
{
	uint64_t sa = sum_of(a, a_count), sb = sum_of(b, b_count);
	if (sa > sb)
		return match_sorted(b, b_count, a, a_count, least);
	unsigned factor = factor_of(sa, sb);
	return factor ? same_sizes(a, a_count, b, b_count, factor, least) : (struct copy_match){ 0 };
}

static int smaller(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* NULL: there is no memory. */
static uint64_t *sorted(const uint64_t *sizes, size_t count)
{
	uint64_t *copy = malloc((count + 1) * sizeof(*copy));
	if (copy && count) {
		memcpy(copy, sizes, count * sizeof(*copy));
		qsort(copy, count, sizeof(*copy), smaller);
	}
	return copy;
}

struct copy_match copies_match(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
	uint64_t *x = sorted(a, a_count), *y = sorted(b, b_count);
	struct copy_match m = x && y ? match_sorted(x, a_count, y, b_count, usual) : (struct copy_match){ 0 };
	free(x);
	free(y);
	return m;
}

/* The same for blocks of which the pool may not have split one: then they may have been of one size. */
static void note_other(struct variety *v, uint64_t size)
{
	for (size_t i = 0; i < v->count; i++)
		if (same_size(v->sizes[i], size, 1))
			return;
	note_size(v, size);
}

/* What was made, and the request that failed: the beginning of a copy of `of`, in its order. */
static bool is_beginning(const uint64_t *made, size_t count, uint64_t request, const uint64_t *of, size_t of_count)
{
	struct variety variety = { .count = 0 };
	if (count + 1 < BEGINNING || count >= of_count || !same_size(request, of[count], 1))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!same_size(made[i], of[i], 1))
			return false;
		note_other(&variety, of[i]);
	}
	note_other(&variety, of[count]);
	return variety.count > 1;
}

/* The same sizes as a part of `of`, whose sizes are `factor` times, or 1/`part` of these; all sorted. */
static bool is_part(const uint64_t *made, size_t count, uint64_t request, const uint64_t *of, size_t of_count,
		    unsigned factor, unsigned part)
{
	struct variety variety = { .count = 0 };
	uint64_t bytes = 0;
	size_t blocks = 0;
	bool wanted = false;
	for (size_t i = 0, k = 0; k < of_count; k++) {
		while (i < count && made[i] * part < of[k] * factor && !same_size(of[k], made[i] * part, factor))
			i++;
		if (i < count && same_size(of[k], made[i] * part, factor)) {
			note_other(&variety, of[k]);
			bytes += made[i++];
			blocks++;
		} else if (same_size(of[k], request * part, factor)) {
			note_other(&variety, of[k]);
			wanted = true;
		}
	}
	return wanted && blocks + 1 >= LEAST_BLOCKS && variety.count >= LEAST_SIZES &&
	       (double)bytes >= ALIKE * (double)sum_of(made, count) &&
	       (factor <= 2 || (double)blocks >= ALIKE_BLOCKS * (double)count);
}

/* As alike(); of blocks at the same place of a period only how the pool cut them may differ, however small they are. */
static unsigned alike_in_place(uint64_t a, uint64_t b)
{
	const bool unsplit = a > UNSPLIT && b > UNSPLIT && (a > b ? a - b : b - a) <= UNSPLIT;
	const unsigned how = alike(a, b, 1);
	return how ? how : unsplit;
}

/* How far sizes are those `period` blocks before them; 0: too few exactly. */
static size_t repeats(const uint64_t *sizes, size_t count, size_t period)
{
	size_t i = period, exact = 0;
	for (unsigned how; i < count && (how = alike_in_place(sizes[i - period], sizes[i])) > 0; i++)
		exact += how > 1;
	return i < count || exact >= (count - period) * EXACT ? i : 0;
}

size_t copies_period(const uint64_t *sizes, size_t count, uint64_t large, bool cut)
{
	struct variety variety = { .count = 0 };
	size_t period = 1, tries = 0;
	for (size_t to; period < count && (to = repeats(sizes, count, period)) < count && tries < MOST_TRIES * count;
	     period++)
		tries += to ? to - period : count - period;
	size_t rest = period < count ? count % period : 0;
	for (size_t i = 0; i < period && period < count; i++)
		note_size(&variety, sizes[i]);
	bool again = period < count && tries < MOST_TRIES * count &&
		     (!rest || (cut && (count >= 2 * period || rest >= LEAST_BLOCKS)));
	return again && period >= (large && sum_of(sizes, period) >= large ? LARGE_BLOCKS : LEAST_PERIOD) &&
			       variety.count >= LEAST_SIZES && count / period <= COPY_OWNERS
		       ? period
		       : 0;
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

struct weight {
	uint64_t bytes;
	uint32_t blocks;
	bool within; /* a call that it made made nearly all of it */
	bool seen;
};

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
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Keeps the largest ones of those behind `first`. */
static void offer(struct search *s, const struct candidate *c, size_t first, size_t most)
{
	size_t at = s->candidate_count;
	if (at == first + most) {
		if (larger_candidate(&s->candidates[at - 1], c) < 0)
			return;
		at--;
	} else {
		s->candidate_count++;
	}
	for (; at > first && larger_candidate(c, &s->candidates[at - 1]) < 0; at--)
		s->candidates[at] = s->candidates[at - 1];
	s->candidates[at] = *c;
}

static bool is_nearly_all(const struct weight *some, const struct weight *all)
{
	return (double)some->bytes >= ALIKE * (double)all->bytes && some->blocks >= ALIKE_BLOCKS * (double)all->blocks;
}

/* Whether the call is one to compare: the outermost that made these blocks. One that made all the thread did has no
 * caller that tells it apart: then it is the innermost, and so it is where each thread is one to compare. `root` is the
 * outermost call of its stacks. */
static bool is_call(const struct search *s, const struct weight *weights, uint32_t n, uint32_t root, bool of_thread)
{
	const uint32_t outer = stacks_outer(s->stacks, n);
	if (of_thread || is_nearly_all(&weights[n], &weights[root]))
		return !weights[n].within;
	return weights[outer].bytes != weights[n].bytes;
}

/* Of these blocks, which are of one space, and of `of`'s thread. `weights` has no bytes, nor does it afterwards. */
static void find_candidates(struct search *s, struct weight *weights, const uint32_t *blocks, size_t count,
			    struct candidate of, size_t first, size_t most)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t n = s->blocks[blocks[i]].stack; n; n = stacks_outer(s->stacks, n)) {
			weights[n].bytes += s->blocks[blocks[i]].size;
			weights[n].blocks++;
		}
	for (size_t i = 0; i < count; i++)
		for (uint32_t n = s->blocks[blocks[i]].stack, outer; n && (outer = stacks_outer(s->stacks, n));
		     n = outer)
			if (is_nearly_all(&weights[n], &weights[outer]))
				weights[outer].within = true;
	for (size_t i = 0; i < count; i++) {
		const uint32_t stack = s->blocks[blocks[i]].stack;
		uint32_t root = stack;
		while (root && !weights[stack].seen && stacks_outer(s->stacks, root))
			root = stacks_outer(s->stacks, root);
		for (uint32_t n = stack; n && !weights[n].seen; n = stacks_outer(s->stacks, n)) {
			of.node = n;
			of.bytes = weights[n].bytes;
			if (weights[n].blocks >= LARGE_BLOCKS && of.bytes >= s->least_bytes &&
			    is_call(s, weights, n, root, of.thread != COPY_NO_THREAD))
				offer(s, &of, first, most);
			weights[n].seen = true;
		}
	}
	for (size_t i = 0; i < count; i++)
		for (uint32_t n = s->blocks[blocks[i]].stack; n && weights[n].blocks; n = stacks_outer(s->stacks, n))
			weights[n] = (struct weight){ 0 };
}

/* Of the blocks [from, to), which are of one space, what each of several threads made. */
static int find_of_threads(struct search *s, struct weight *weights, size_t from, size_t to, size_t first)
{
	const size_t n = to - from;
	uint64_t *keys = malloc(n * sizeof(*keys));
	uint32_t *blocks = malloc(n * sizeof(*blocks));
	for (size_t i = 0; keys && i < n; i++)
		keys[i] = (uint64_t)s->blocks[from + i].thread << 32 | (from + i);
	if (keys)
		qsort(keys, n, sizeof(*keys), smaller);
	for (size_t i = 0; keys && blocks && i < n; i++)
		blocks[i] = (uint32_t)keys[i];
	const bool several = keys && keys[0] >> 32 != keys[n - 1] >> 32;
	for (size_t i = 0, of; several && blocks && i < n; i += of) {
		const uint32_t thread = s->blocks[blocks[i]].thread;
		for (of = 1; i + of < n && s->blocks[blocks[i + of]].thread == thread; of++)
			;
		if (thread != COPY_NO_THREAD)
			find_candidates(s, weights, blocks + i, of,
					(struct candidate){ .space = s->blocks[from].space, .thread = thread }, first,
					MOST_OF_THREADS);
	}
	const int e = keys && blocks ? 0 : error_memory();
	free(keys);
	free(blocks);
	return e;
}

static int find_of_all(struct search *s, struct weight *weights, size_t from, size_t to)
{
	uint32_t *blocks = malloc((to - from) * sizeof(*blocks));
	for (size_t i = from; blocks && i < to; i++)
		blocks[i - from] = (uint32_t)i;
	if (blocks)
		find_candidates(s, weights, blocks, to - from,
				(struct candidate){ .space = s->blocks[from].space, .thread = COPY_NO_THREAD }, 0,
				MOST_CANDIDATES);
	const int e = blocks ? 0 : error_memory();
	free(blocks);
	return e;
}

static int find_all_candidates(struct search *s)
{
	struct weight *weights = calloc(stacks_count(s->stacks) + 1, sizeof(*weights));
	int e = weights ? 0 : error_memory();
	for (int threads = 0; threads < 2; threads++) {
		const size_t first = s->candidate_count;
		for (size_t i = 0, n; e == 0 && i < s->count; i += n) {
			for (n = 1; i + n < s->count && s->blocks[i + n].space == s->blocks[i].space; n++)
				;
			e = threads ? find_of_threads(s, weights, i, i + n, first) : find_of_all(s, weights, i, i + n);
		}
	}
	free(weights);
	return e;
}

/* ---- whose calls --------------------------------------------------------------------------------------------- */

/* Whether a frame of the stack, from `from` outwards up to the node `to`, has a name with one of these words in it. */
static bool is_named(const struct search *s, uint32_t from, uint32_t to, const char *const *words)
{
	for (uint32_t n = from; n && n != to; n = stacks_outer(s->stacks, n)) {
		const struct frame *frames;
		size_t count = stacks_frames(s->stacks, n, &frames);
		for (size_t i = 0; i < count; i++)
			for (const char *const *w = words; *w && frames[i].name; w++)
				if (strstr(frames[i].name, *w))
					return true;
	}
	return false;
}

static const char *const constructors[] = { "__init__", NULL };

/* A line of the program itself, and not what a library called again and again for it, such as for each layer. */
static bool is_own(const struct search *s, uint32_t node)
{
	const struct frame *frames, *site = stacks_site(s->stacks, node, 0).frame;
	size_t count = stacks_frames(s->stacks, node, &frames);
	for (size_t i = 0; i < count; i++)
		if (&frames[i] == site && frame_classify(site) == FRAME_PLAIN)
			return true;
	return false;
}

/* Made by what copies, moves or loads a whole model, however that is made up. */
static bool is_made_whole(const struct search *s, const struct candidate *c)
{
	static const char *const words[] = { "deepcopy", "_apply", "load", NULL };
	return is_named(s, s->blocks[c->blocks[0]].stack, c->node, words);
}

/* The line of the program that made its largest block. */
static const struct frame *line_of(const struct search *s, const struct candidate *c)
{
	size_t most = 0;
	for (size_t i = 1; i < c->count; i++)
		most = c->sizes[i] > c->sizes[most] ? i : most;
	return c->count ? stacks_site(s->stacks, s->blocks[c->blocks[most]].stack, 0).frame : NULL;
}

static bool is_same_line(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	const struct frame *x = line_of(s, a), *y = line_of(s, b);
	return x && y && x->function == y->function && x->file == y->file && x->line == y->line;
}

static bool fails_within(const struct search *s, uint32_t space, uint32_t node)
{
	for (size_t i = 0; i < s->request_count; i++)
		if (s->requests[i].space == space && is_within(s, s->requests[i].stack, node))
			return true;
	return false;
}

/* One line of the program makes both, with other sizes, and a request failed in there: batches of 64 and of 32. Who
 * casts does so elsewhere, and a model's own lines may build it in either type. */
static bool is_other_batch(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	if (!fails_within(s, a->space, a->node) && !fails_within(s, b->space, b->node))
		return false;
	return is_same_line(s, a, b) && frame_classify(line_of(s, a)) == FRAME_PLAIN && !is_made_whole(s, a) &&
	       !is_made_whole(s, b) && !is_named(s, s->blocks[a->blocks[0]].stack, 0, constructors);
}

/* The outermost frame of the call within what both have in common. */
static const char *called_by(const struct search *s, uint32_t node, uint32_t common)
{
	const struct frame *frames;
	while (node && stacks_outer(s->stacks, node) != common)
		node = stacks_outer(s->stacks, node);
	size_t count = node ? stacks_frames(s->stacks, node, &frames) : 0;
	return count ? frames[count - 1].name : NULL;
}

/* Both are made for one object: towers, or an encoder and a decoder, of one model. */
static bool are_parts(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	uint32_t common = a->node;
	while (common && !is_within(s, b->node, common))
		common = stacks_outer(s->stacks, common);
	const char *one = called_by(s, a->node, common), *other = called_by(s, b->node, common);
	bool constructor = one && other && strcmp(one, other) == 0 && strstr(one, constructors[0]);
	return (constructor || is_named(s, common, 0, constructors)) && !is_made_whole(s, a) && !is_made_whole(s, b);
}

/* ---- filling them -------------------------------------------------------------------------------------------- */

static void free_candidate(struct candidate *c)
{
	free(c->sizes);
	free(c->sorted);
	free(c->blocks);
}

static bool is_of(const struct copy_block *b, const struct candidate *c)
{
	return b->space == c->space && (c->thread == COPY_NO_THREAD || b->thread == c->thread);
}

/* The innermost line of the program at the call or outside of it that made no more. The call itself if there is none,
 * or if constructors made some: what one makes again are parts of one object. Where nothing else is in a space, the
 * innermost call that made it all may be a library's. */
static uint32_t own_call(const struct search *s, const struct candidate *c)
{
	uint64_t bytes = 0;
	uint32_t call = c->node;
	while (call && !is_own(s, call))
		call = stacks_outer(s->stacks, call);
	if (!call || call == c->node)
		return c->node;
	for (size_t i = 0; i < s->count; i++) {
		const struct copy_block *b = &s->blocks[i];
		if (!is_of(b, c) || !is_within(s, b->stack, call))
			continue;
		if (is_named(s, b->stack, call, constructors))
			return c->node;
		bytes += b->size;
	}
	return ALIKE * (double)bytes >= (double)c->bytes ? c->node : call;
}

static int fill_candidate(struct search *s, struct candidate *c)
{
	size_t n = 0;
	c->node = own_call(s, c);
	c->sizes = malloc((s->count + 1) * sizeof(*c->sizes));
	c->blocks = malloc((s->count + 1) * sizeof(*c->blocks));
	for (size_t i = 0; c->sizes && c->blocks && i < s->count; i++)
		if (is_of(&s->blocks[i], c) && is_within(s, s->blocks[i].stack, c->node)) {
			c->sizes[n] = s->blocks[i].size;
			c->blocks[n++] = (uint32_t)i;
		}
	c->count = n;
	size_t period = n && is_own(s, c->node) && !is_named(s, c->node, 0, constructors)
				? copies_period(c->sizes, n, LARGE * s->least_bytes, fails_within(s, c->space, c->node))
				: 0;
	if (period && sum_of(c->sizes, period) < s->least_bytes)
		period = 0;
	c->unit = period ? period : n;
	c->sorted = c->sizes && c->blocks ? sorted(c->sizes, c->unit) : NULL;
	return c->sorted ? 0 : error_memory();
}

/* Of the blocks from `i` on, the first one of another turn. */
static size_t next_turn(const struct search *s, const struct candidate *c, size_t i)
{
	const uint32_t turn = s->blocks[c->blocks[i]].turn;
	while (i < c->count && s->blocks[c->blocks[i]].turn == turn)
		i++;
	return i;
}

/* Both got their blocks in the same turns of a loop: neither is a copy of the other. What a call makes as a whole, time
 * and again, is another matter. */
static bool grow_side_by_side(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	size_t i = 0, k = 0, both = 0, either = 0;
	if (a->unit != a->count || b->unit != b->count)
		return false;
	while (i < a->count || k < b->count) {
		const uint32_t x = i < a->count ? s->blocks[a->blocks[i]].turn : UINT32_MAX,
			       y = k < b->count ? s->blocks[b->blocks[k]].turn : UINT32_MAX;
		if (x <= y)
			i = next_turn(s, a, i);
		if (y <= x)
			k = next_turn(s, b, k);
		both += x == y && x;
		either++;
	}
	return both >= SIDE_BY_SIDE && 2 * both >= either;
}

/* ---- sets -------------------------------------------------------------------------------------------------- */

static struct copy_owner owner_of(const struct search *s, const struct candidate *c, size_t from, size_t to)
{
	struct copy_owner o = { .stack = c->node, .largest = c->node, .blocks = (unsigned)(to - from) };
	uint64_t largest = 0, of[CATEGORIES] = { 0 };
	o.thread = from < to ? s->blocks[c->blocks[from]].thread : COPY_NO_THREAD;
	for (size_t i = from; i < to; i++) {
		if (s->blocks[c->blocks[i]].thread != o.thread)
			o.thread = COPY_NO_THREAD;
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
}

/* All that a candidate has made: whole copies, and the beginning of one; `cut`: even if it has no block yet. */
static void add_owners(const struct search *s, struct copy_set *set, const struct candidate *c, size_t unit, bool cut)
{
	size_t all = c->count / unit * unit;
	for (size_t from = 0; from < all; from += unit) {
		struct copy_owner o = owner_of(s, c, from, from + unit);
		add_owner(set, &o);
	}
	struct copy_owner o = owner_of(s, c, all, c->count);
	o.cut = true;
	if (cut || all < c->count)
		add_owner(set, &o);
}

/* Of several the one that the program works with; of shards and what was put together from them the shards. */
static const struct copy_owner *that_stays(const struct copy_set *set)
{
	const struct copy_owner *best = NULL;
	for (unsigned i = 0; i < set->count; i++) {
		const struct copy_owner *o = &set->owners[i];
		bool parameters = o->category == CATEGORY_parameters,
		     better = !best || (parameters && best->category != CATEGORY_parameters);
		if (!o->cut && (better || (set->several && o->bytes < best->bytes)))
			best = o;
	}
	return best ? best : &set->owners[0];
}

static int keep_set(struct search *s, struct copy_set *set)
{
	int e = vec_reserve(s->out->sets, s->room, s->out->count + 1);
	set->stays = (unsigned)(that_stays(set) - set->owners);
	set->extra_bytes = set->bytes - set->owners[set->stays].bytes;
	if (e == 0)
		s->out->sets[s->out->count++] = *set;
	return e;
}

static void note_match(struct copy_set *set, struct copy_match m)
{
	set->cast = set->cast || m.factor == 2;
	set->several = set->several || m.factor > 2 || m.several;
	set->blocks = set->each && set->blocks < m.blocks ? set->blocks : m.blocks;
	set->each = set->each && set->each < m.bytes ? set->each : m.bytes;
}

static bool nested(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	if (a->thread != b->thread && a->thread != COPY_NO_THREAD && b->thread != COPY_NO_THREAD)
		return false;
	return a->space == b->space && (is_within(s, a->node, b->node) || is_within(s, b->node, a->node));
}

/* Parts of what was taken, and what it is a part of, are no further copies. */
static void mark_taken(struct search *s, struct candidate *c)
{
	c->taken = true;
	for (size_t i = 0; i < s->candidate_count; i++)
		if (nested(s, &s->candidates[i], c))
			s->candidates[i].taken = true;
}

/* A checkpoint that has the sizes of `part` several times: every n-th of them is one of the part's. */
static struct copy_match match_times(const struct search *s, const struct candidate *part,
				     const struct candidate *whole)
{
	struct copy_match m = { 0 };
	size_t times = (whole->unit + part->unit / 2) / part->unit, n = 0;
	if (times < 2 || times > MOST_TIMES || owner_of(s, whole, 0, whole->unit).category != CATEGORY_checkpoint)
		return m;
	uint64_t *some = malloc((whole->unit / times + 1) * sizeof(*some));
	for (size_t i = times / 2; some && i < whole->unit; i += times)
		some[n++] = whole->sorted[i];
	if (some && factor_of(sum_of(part->sorted, part->unit), sum_of(some, n)) == 1)
		m = match_sorted(part->sorted, part->unit, some, n, usual);
	m.several = m.blocks > 0;
	free(some);
	return m;
}

/* What each thread works with; a model is not. */
static bool is_threads_work(const struct search *s, const struct candidate *c)
{
	return c->thread != COPY_NO_THREAD && owner_of(s, c, 0, c->count).category != CATEGORY_parameters;
}

/* Two threads' parameters, by the same line. */
static bool are_threads_models(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	return (a->thread != COPY_NO_THREAD || b->thread != COPY_NO_THREAD) && is_same_line(s, a, b) &&
	       s->blocks[a->blocks[0]].thread != s->blocks[b->blocks[0]].thread;
}

static struct copy_match match_candidates(const struct search *s, const struct candidate *a, const struct candidate *b)
{
	struct copy_match m = match_times(s, a, b);
	if (!m.blocks)
		m = match_times(s, b, a);
	const struct least least = { sum_of(a->sorted, a->unit) >= LARGE * s->least_bytes ? LARGE_BLOCKS : LEAST_BLOCKS,
				     are_threads_models(s, a, b) ? LEAST_OF_THREAD : LEAST_SIZES };
	return m.blocks ? m : match_sorted(a->sorted, a->unit, b->sorted, b->unit, least);
}

/*
 * All that is like `c`; `alone`: or what it made itself again and again. `begun`: what the call that failed has made,
 * with so many blocks a copy; NULL = nothing.
 */
static int find_set(struct search *s, struct candidate *c, bool alone, const struct candidate *begun,
		    struct copy_set *set)
{
	for (size_t i = 0; i < s->candidate_count; i++) {
		struct candidate *other = &s->candidates[i];
		if (other == c || other->taken || other->space != c->space || nested(s, other, c) ||
		    (other->thread == c->thread && (are_parts(s, c, other) || grow_side_by_side(s, c, other))))
			continue;
		struct copy_match m = match_candidates(s, c, other);
		if (!m.blocks || (m.factor != 1 && is_other_batch(s, c, other)))
			continue;
		note_match(set, m);
		add_owners(s, set, other, other->unit, false);
		mark_taken(s, other);
	}
	if (begun)
		add_owners(s, set, begun, c->unit, true);
	if (!set->count && (!alone || c->unit == c->count))
		return 0;
	if (!set->each)
		note_match(set, (struct copy_match){
					.blocks = (unsigned)c->unit, .factor = 1, .bytes = sum_of(c->sizes, c->unit) });
	add_owners(s, set, c, c->unit, false);
	if (!set->missing_bytes && c->count % c->unit)
		set->missing_bytes =
			sum_of(c->sizes, c->unit) - sum_of(c->sizes + c->count / c->unit * c->unit, c->count % c->unit);
	mark_taken(s, c);
	return keep_set(s, set);
}

/* ---- the one that was cut off -------------------------------------------------------------------------------- */

/* Whether the last blocks of `begun` and the request begin a copy of `c`: so many times as large, or 1/so many, is what
 * factor and part say. */
static bool begins(const struct candidate *c, const struct candidate *begun, uint64_t request, unsigned *factor,
		   unsigned *part)
{
	size_t whole = begun->count / c->unit * c->unit, rest = begun->count - whole;
	uint64_t *made = rest ? sorted(begun->sizes + whole, rest) : NULL;
	bool found = rest ? made && is_beginning(begun->sizes + whole, rest, request, c->sizes, c->unit)
			  : whole && same_size(request, c->sizes[0], 1);
	*factor = *part = 1;
	if (made && !found) {
		found = is_part(made, rest, request, c->sorted, c->unit, 1, *part = 2);
		for (*part = found ? 2 : 1, *factor = found ? 1 : 0; !found && ++*factor <= MOST_SHARDS;)
			found = is_part(made, rest, request, c->sorted, c->unit, *factor, 1);
	}
	free(made);
	for (size_t from = 0; found && from < whole; from += c->unit) {
		struct copy_match m = copies_match(begun->sizes + from, c->unit, c->sizes, c->unit);
		found = m.blocks && m.factor == 1 && *factor == 1 && *part == 1;
	}
	return found;
}

/* Its first block failed, and what asked for it does nothing but copy. */
static bool begins_with_nothing(const struct search *s, const struct candidate *c, const struct candidate *begun,
				uint64_t request)
{
	static const char *const words[] = { "deepcopy", NULL };
	return c->unit >= LEAST_BLOCKS && same_size(request, c->sizes[0], 1) && is_named(s, begun->node, 0, words);
}

static struct candidate *begun_copy(struct search *s, struct candidate *begun, uint64_t request, struct copy_set *set)
{
	for (size_t i = 0; i < s->candidate_count; i++) {
		struct candidate *c = &s->candidates[i];
		unsigned factor = 1, part = 1;
		if (c->taken || c->space != begun->space || nested(s, c, begun) ||
		    (begun->count && are_parts(s, c, begun)) ||
		    !(begun->count ? begins(c, begun, request, &factor, &part)
				   : begins_with_nothing(s, c, begun, request)) ||
		    (begun->count && (factor != 1 || part != 1) && is_other_batch(s, c, begun)))
			continue;
		size_t whole = begun->count / c->unit * c->unit;
		uint64_t bytes = sum_of(c->sizes, c->unit), there = sum_of(begun->sizes + whole, begun->count - whole);
		note_match(set, (struct copy_match){ .blocks = (unsigned)c->unit,
						     .factor = factor > part ? factor : part,
						     .bytes = bytes / part });
		set->missing_bytes = less(bytes * factor / part, there);
		return c;
	}
	return NULL;
}

enum { APART, ON_THE_WAY, MET };

/* Calls on the way to the failure that made blocks which those further in did not; NULL: there is no memory. */
static unsigned char *calls_to(const struct search *s, const struct copy_request *r)
{
	unsigned char *calls = calloc(stacks_count(s->stacks) + 1, 1);
	for (uint32_t n = calls ? r->stack : 0; n; n = stacks_outer(s->stacks, n))
		calls[n] = ON_THE_WAY;
	for (size_t i = 0; calls && i < s->count; i++) {
		uint32_t n = s->blocks[i].space == r->space ? s->blocks[i].stack : 0;
		while (n && calls[n] == APART)
			n = stacks_outer(s->stacks, n);
		calls[n] = n ? MET : APART;
	}
	return calls;
}

/* The outermost of them that had begun a copy. */
static int find_begun(struct search *s, const struct copy_request *r)
{
	struct candidate best = { 0 }, *of = NULL;
	struct copy_set set = { 0 };
	unsigned char *calls = calls_to(s, r);
	int e = calls ? 0 : error_memory();
	for (uint32_t n = r->stack; e == 0 && n; n = stacks_outer(s->stacks, n)) {
		struct candidate begun = { .node = n, .thread = COPY_NO_THREAD, .space = r->space };
		struct copy_set found = { .space = r->space };
		if (calls[n] != MET && n != r->stack)
			continue;
		e = fill_candidate(s, &begun);
		struct candidate *c = e == 0 ? begun_copy(s, &begun, r->bytes, &found) : NULL;
		if (c) {
			free_candidate(&best);
			best = begun;
			set = found;
			of = c;
		} else {
			free_candidate(&begun);
		}
	}
	if (of) {
		mark_taken(s, &best);
		e = find_set(s, of, true, &best, &set);
	}
	free_candidate(&best);
	free(calls);
	return e;
}

static int larger_set(const void *a, const void *b)
{
	const struct copy_set *x = a, *y = b;
	return (x->extra_bytes < y->extra_bytes) - (x->extra_bytes > y->extra_bytes);
}

static int search(struct search *s)
{
	int e = find_all_candidates(s);
	for (size_t i = 0; e == 0 && i < s->candidate_count; i++) {
		e = fill_candidate(s, &s->candidates[i]);
		s->candidates[i].taken = e == 0 && is_threads_work(s, &s->candidates[i]);
	}
	for (size_t i = 0; e == 0 && i < s->request_count; i++)
		e = find_begun(s, &s->requests[i]);
	for (int alone = 0; alone < 2; alone++)
		for (size_t i = 0; e == 0 && i < s->candidate_count; i++)
			if (!s->candidates[i].taken)
				e = find_set(s, &s->candidates[i], alone, NULL,
					     &(struct copy_set){ .space = s->candidates[i].space });
	for (size_t i = 0; i < s->candidate_count; i++)
		free_candidate(&s->candidates[i]);
	return e;
}

static void leave(struct copies *c, const struct copy_block *b)
{
	c->left_blocks++;
	c->left_bytes += b->size;
}

int copies_find(struct copies *c, struct stacks *stacks, struct copy_block *blocks, size_t count, uint64_t least_block,
		uint64_t least_bytes, const struct copy_request *requests, size_t request_count)
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
		return error_memory();
	*s = (struct search){ .stacks = stacks,
			      .blocks = blocks,
			      .count = n,
			      .least_bytes = least_bytes ? least_bytes : 1,
			      .out = c,
			      .requests = requests,
			      .request_count = request_count };
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
