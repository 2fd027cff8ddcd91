/*
 * Private pools of CUDA graphs.
 *
 * While a graph is captured the caching allocator takes its blocks from a pool of the graph's own, whose segments hold
 * nothing else, since replays use these addresses again. So a segment in which a block of a capture ever lay is private
 * until it goes. Blocks that were made there without a capture (a warm-up run, an output that is used later) are in the
 * private pool all the same.
 *
 * Graphs may share a pool. A trace doesn't say so, but two captures whose blocks lay in one segment did.
 */
#include "analyzer/model/device_blocks.h"

#include "analyzer/util/vec.h"

int64_t graphs_capture(struct share *s, uint32_t number)
{
	for (size_t i = s->capture_count; i-- > 0;) /* the one that is under way is the latest */
		if (s->captures[i].number == number)
			return (int64_t)i + 1;
	int e = vec_reserve(s->captures, s->capture_room, s->capture_count + 1);
	if (e)
		return e;
	s->captures[s->capture_count] = (struct capture){ number, (uint32_t)s->capture_count };
	return (int64_t)++s->capture_count;
}

static uint32_t first_of(const struct share *s, uint32_t i)
{
	while (s->captures[i].joined != i)
		i = s->captures[i].joined;
	return i;
}

static void join(struct share *s, uint32_t a, uint32_t b)
{
	uint32_t x = first_of(s, a - 1), y = first_of(s, b - 1);
	s->captures[x > y ? x : y].joined = x > y ? y : x;
}

void graphs_change(struct share *s, const struct extent *x, int64_t delta, uint64_t ns)
{
	const struct change segment = { MODEL_DEVICE, BLOCK_NO_SITE, delta * (int64_t)x->bytes, delta, x->start, 0,
					x->ns };
	const struct change blocks = { MODEL_POOL, BLOCK_NO_SITE, delta * (int64_t)x->in_use, 0, x->start, 0, x->ns };
	share_change(s, LAYER_PRIVATE, &segment, ns);
	share_change(s, LAYER_PRIVATE_POOL, &blocks, ns);
}

void graphs_move_block(struct share *s, const struct block *b, int64_t delta, uint64_t ns)
{
	struct extent *x = extent_at(s, b->addr, b->addr + 1);
	if (!x || !x->capture)
		return;
	/* one that was there before what it lies in has not been counted */
	uint64_t bytes = delta < 0 && b->size > x->in_use ? x->in_use : b->size;
	x->in_use += (uint64_t)delta * bytes;
	share_change(s, LAYER_PRIVATE_POOL,
		     &(struct change){ MODEL_POOL, BLOCK_NO_SITE, delta * (int64_t)bytes, 0, b->addr, 0, b->ns }, ns);
}

/* Of the blocks in use those that begin in the extent. */
static uint64_t bytes_in(const struct share *s, const struct extent *x)
{
	uint64_t sum = 0;
	for (enum event_space space = SPACE_POOL; space <= SPACE_WORKSPACE; space++)
		for (size_t i = 0; s->space[space].entries && i <= s->space[space].mask; i++) {
			const struct block *b = &s->space[space].entries[i];
			sum += b->addr >= x->start && b->addr < x->end ? b->size : 0;
		}
	return sum;
}

static void note(struct share *s, struct extent *x, uint32_t capture, bool empty, uint64_t ns)
{
	if (x->capture) {
		join(s, x->capture, capture);
		return;
	}
	x->capture = capture;
	x->in_use = empty ? 0 : bytes_in(s, x);
	graphs_change(s, x, 1, ns);
}

void graphs_add_block(struct share *s, struct extent *x, struct range *r, uint32_t capture, bool empty, uint64_t ns)
{
	if (!r || r->file) {
		note(s, x, capture, empty, ns);
		return;
	}
	r->file = capture;
	for (uint64_t at = r->start; at < r->end && (x = extent_at(s, at, r->end)) != NULL; at = x->end)
		note(s, x, capture, empty, ns);
}

/* ---- what is asked later --------------------------------------------------------------------------------- */

uint32_t graphs_pool_of(const struct share *s, const struct extent *x)
{
	return x->capture ? first_of(s, x->capture - 1) + 1 : 0;
}

uint32_t graphs_pool_of_capture(const struct share *s, uint32_t number)
{
	for (size_t i = s->capture_count; i-- > 0;)
		if (s->captures[i].number == number)
			return first_of(s, (uint32_t)i) + 1;
	return UINT32_MAX;
}

void graphs_count(const struct share *s, const bool *has, unsigned *captures, unsigned *pools)
{
	for (uint32_t i = 0; i < s->capture_count; i++) {
		*captures += has[first_of(s, i) + 1];
		*pools += first_of(s, i) == i && has[i + 1];
	}
}
