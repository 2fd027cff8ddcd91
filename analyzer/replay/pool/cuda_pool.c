#include "analyzer/replay/pool/cuda_pool.h"

#include "analyzer/replay/pool/block_set.h"
#include "analyzer/util/error.h"
#include "analyzer/util/minmax.h"
#include "analyzer/util/vec.h"

#include <stdlib.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

#define BLOCK_STEP     512ull    /* blocks are multiples */
#define SMALL_MOST     MIB       /* requests up to it are small */
#define SMALL_SEGMENT  (2 * MIB) /* also the page of a small expandable segment */
#define HUGE_PAGE      (1024 * MIB)
#define ALIGNED_LEAST  (2 * MIB)    /* from here on blocks in expandable segments are aligned */
#define OWN_LEAST      (10 * MIB)   /* from here on a request has a segment of its own size */
#define OWN_STEP       (2 * MIB)    /* ... rounded up to that */
#define LEAST_INTERVAL 20           /* log2 of what the first of `divisions` is for */
#define CHUNK          1024         /* blocks allocated at a time */
#define MOST_ADDRESSES (1ull << 47) /* of a process: no request is as large */
#define UNKNOWN_DEVICE (1ull << 40) /* bytes: a range has room for all that a device may have */

/* What a request without a retry makes at most: a range, what is left of it when a part is mapped, a segment, what is
 * split off before and behind. */
#define MOST_MADE 5

struct bin {
	struct block_set free, unmapped;
	bool small;
	uint64_t looks; /* searches so far, by which the garbage collection knows a block's age */
};

/* Of the captures of a graph; number 0 is everything else. */
struct pool_part {
	uint32_t capture;
	bool gone; /* its graph is */
	struct bin small, large;
};

/* Neighbours in a segment are linked. Free and unmapped ones are in a set of their bin. */
struct pool_block {
	/* its key has stream and address; bytes are 0 of what isn't mapped, which is sorted by address */
	struct set_node node;
	uint64_t bytes, requested;
	struct pool_block *prev, *next;
	struct bin *bin;
	uint64_t segment; /* its number: they are counted as they are made */
	uint64_t range;   /* start of its expandable segment; 0 = it isn't in one */
	uint64_t since;   /* its bin's `looks` when it became free */
	bool used, mapped;
	bool whole; /* nothing was split off when it was taken */
};

struct cuda_pool {
	struct cuda_pool_settings settings;
	const struct cuda_pool_driver *driver;
	struct cuda_pool_figures figures;
	struct pool_part **parts;
	size_t part_count, part_room;
	struct pool_block **chunks, *spare; /* linked by next */
	size_t chunk_count, chunk_room, spares, free_count;
	struct pool_block **list; /* while the cache is returned */
	size_t list_count, list_room;
	uint64_t segments;
};

/* ---- memory for blocks ----------------------------------------------------------------------------------- */

static int make_room(struct cuda_pool *p, size_t count)
{
	while (p->spares < count) {
		struct pool_block *chunk = calloc(CHUNK, sizeof(*chunk));
		if (!chunk || vec_reserve(p->chunks, p->chunk_room, p->chunk_count + 1)) {
			free(chunk);
			return error_memory();
		}
		p->chunks[p->chunk_count++] = chunk;
		for (size_t i = 0; i < CHUNK; i++) {
			chunk[i].next = p->spare;
			p->spare = &chunk[i];
		}
		p->spares += CHUNK;
	}
	return 0;
}

/* There is room: make_room(). */
static struct pool_block *new_block(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t addr,
				    uint64_t bytes)
{
	struct pool_block *b = p->spare;

	p->spare = b->next;
	p->spares--;
	*b = (struct pool_block){
		.node.key = { .stream = stream, .addr = addr }, .bytes = bytes, .bin = bin, .mapped = true
	};
	return b;
}

static void drop_block(struct cuda_pool *p, struct pool_block *b)
{
	b->next = p->spare;
	p->spare = b;
	p->spares++;
}

/* ---- sets ------------------------------------------------------------------------------------------------- */

static struct pool_block *block_of(struct set_node *n)
{
	return (struct pool_block *)n; /* it comes first */
}

static uint64_t start_of(const struct pool_block *b)
{
	return b->node.key.addr;
}

static struct block_set *set_of(const struct pool_block *b)
{
	return b->mapped ? &b->bin->free : &b->bin->unmapped;
}

static void put_in(struct cuda_pool *p, struct pool_block *b)
{
	b->node.key.bytes = b->mapped ? b->bytes : 0;
	b->node.key.segment = b->mapped && p->settings.oldest_first ? b->segment : 0;
	b->since = b->bin->looks;
	p->free_count += b->mapped;
	block_set_insert(set_of(b), &b->node);
}

static void take_out(struct cuda_pool *p, struct pool_block *b)
{
	p->free_count -= b->mapped;
	block_set_remove(set_of(b), &b->node);
}

static struct pool_block *first_of(const struct block_set *s)
{
	return block_of(block_set_from(s, (struct set_key){ 0 }));
}

static struct pool_block *next_of(const struct pool_block *b)
{
	return block_of(block_set_next(set_of(b), &b->node));
}

/* `b` keeps its first bytes; returns the block of the rest, behind it, which is in no set. */
static struct pool_block *cut(struct cuda_pool *p, struct pool_block *b, uint64_t bytes)
{
	struct pool_block *rest = new_block(p, b->bin, b->node.key.stream, start_of(b) + bytes, b->bytes - bytes);

	rest->segment = b->segment;
	rest->range = b->range;
	rest->mapped = b->mapped;
	rest->prev = b;
	rest->next = b->next;
	if (b->next)
		b->next->prev = rest;
	b->next = rest;
	b->bytes = bytes;
	return rest;
}

/* `b`, which is in no set, takes in its neighbour where that is free as well. */
static void merge(struct cuda_pool *p, struct pool_block *b, struct pool_block *other)
{
	if (!other || other->used || other->mapped != b->mapped)
		return;
	take_out(p, other);
	if (other == b->prev) {
		b->node.key.addr = start_of(other);
		b->prev = other->prev;
		if (b->prev)
			b->prev->next = b;
	} else {
		b->next = other->next;
		if (b->next)
			b->next->prev = b;
	}
	b->bytes += other->bytes;
	drop_block(p, other);
}

static void merge_both(struct cuda_pool *p, struct pool_block *b)
{
	merge(p, b, b->prev);
	merge(p, b, b->next);
}

/* ---- sizes ------------------------------------------------------------------------------------------------ */

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

static unsigned log2_of(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n);
}

static uint64_t divisions_for(const struct cuda_pool_settings *s, uint64_t bytes)
{
	unsigned log = log2_of(bytes), at = log > LEAST_INTERVAL ? log - LEAST_INTERVAL : 0;
	return s->divisions[at < ROUNDUP_INTERVALS ? at : ROUNDUP_INTERVALS - 1];
}

uint64_t cuda_pool_round(const struct cuda_pool_settings *settings, uint64_t bytes)
{
	if (bytes < BLOCK_STEP)
		return BLOCK_STEP;
	uint64_t divisions = divisions_for(settings, bytes), floor = 1ull << log2_of(bytes);
	if (divisions <= 1 || bytes <= BLOCK_STEP * divisions)
		return round_up(bytes, BLOCK_STEP);
	uint64_t step = floor >> log2_of(divisions);
	if (bytes == floor)
		return bytes;
	return step ? round_up(bytes, step) : floor << 1;
}

static uint64_t segment_for(const struct cuda_pool_settings *s, uint64_t bytes)
{
	if (bytes <= SMALL_MOST)
		return SMALL_SEGMENT;
	if (s->huge_pages)
		return round_up(bytes, HUGE_PAGE);
	return bytes < OWN_LEAST ? s->large_segment : round_up(bytes, OWN_STEP);
}

static uint64_t page_of(const struct cuda_pool *p, const struct bin *bin)
{
	const struct cuda_pool_settings *s = &p->settings;
	if (bin->small)
		return SMALL_SEGMENT;
	return s->huge_pages ? HUGE_PAGE : s->large_page ? s->large_page : s->large_segment;
}

/* Of `has` bytes that serve a request for so many. */
static bool is_worth_splitting(const struct cuda_pool *p, const struct bin *bin, uint64_t has, uint64_t bytes)
{
	uint64_t rest = has - bytes;
	if (bin->small || p->settings.expandable)
		return rest >= BLOCK_STEP;
	return bytes < p->settings.max_split_bytes && rest > SMALL_MOST;
}

/* ---- the driver ------------------------------------------------------------------------------------------- */

static uint64_t take_from_driver(struct cuda_pool *p, uint64_t at, uint64_t bytes)
{
	uint64_t addr = p->driver->take(p->driver->arg, at, bytes);
	if (addr) {
		p->figures.reserved += bytes;
		if (p->figures.reserved > p->figures.most_reserved)
			p->figures.most_reserved = p->figures.reserved;
	}
	return addr;
}

static void give_to_driver(struct cuda_pool *p, uint64_t addr, uint64_t bytes)
{
	p->driver->give_back(p->driver->arg, addr, bytes);
	p->figures.reserved -= bytes;
}

/* ---- expandable segments ---------------------------------------------------------------------------------- */

/* Maps the first bytes of `b`, whole pages of them; the rest stays unmapped. What is free beside it becomes one with
 * it. */
static bool map(struct cuda_pool *p, struct pool_block *b, uint64_t bytes)
{
	uint64_t mapped = round_up(bytes, page_of(p, b->bin)); /* it begins at a page */
	if (!take_from_driver(p, start_of(b), mapped))
		return false;
	take_out(p, b);
	if (mapped < b->bytes)
		put_in(p, cut(p, b, mapped));
	b->mapped = true;
	merge_both(p, b);
	put_in(p, b);
	return true;
}

/* The pages of a free block that nothing else is in; there may be none. */
static bool whole_pages(const struct cuda_pool *p, const struct pool_block *b, uint64_t *begin, uint64_t *end)
{
	uint64_t page = page_of(p, b->bin);
	*begin = b->range + round_up(start_of(b) - b->range, page);
	*end = b->range + (start_of(b) + b->bytes - b->range) / page * page;
	return *begin < *end;
}

static void unmap(struct cuda_pool *p, struct pool_block *b)
{
	uint64_t begin, end;
	if (!whole_pages(p, b, &begin, &end))
		return;
	take_out(p, b);
	if (begin > start_of(b)) {
		struct pool_block *rest = cut(p, b, begin - start_of(b));
		put_in(p, b);
		b = rest;
	}
	if (end < start_of(b) + b->bytes)
		put_in(p, cut(p, b, end - start_of(b)));
	give_to_driver(p, begin, end - begin);
	b->mapped = false;
	merge_both(p, b);
	if (b->prev || b->next)
		put_in(p, b);
	else
		drop_block(p, b); /* all of a range: its addresses go back, too */
}

static bool has_room(const struct pool_block *b, uint64_t bytes)
{
	uint64_t found = 0;
	for (; found < bytes && b && !b->used; b = b->next)
		found += b->bytes;
	return found >= bytes;
}

/* The lowest place for so many bytes: an unmapped block, or a free one before it. NULL = there is none. */
static struct pool_block *place_in(const struct bin *bin, uint64_t stream, uint64_t bytes)
{
	struct set_node *n = block_set_from(&bin->unmapped, (struct set_key){ .stream = stream });
	for (; n && n->key.stream == stream; n = block_set_next(&bin->unmapped, n)) {
		struct pool_block *b = block_of(n);
		if (b->prev && !b->prev->used)
			b = b->prev;
		if (has_room(b, bytes))
			return b;
	}
	return NULL;
}

static struct pool_block *find_place(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t bytes)
{
	struct pool_block *found = place_in(bin, stream, bytes);
	if (found)
		return found;
	const uint64_t device = p->driver->device_bytes ? p->driver->device_bytes : UNKNOWN_DEVICE;
	uint64_t most = device + device / 8;
	uint64_t whole = round_up(most > bytes ? most : bytes, page_of(p, bin));
	uint64_t range = p->driver->reserve(p->driver->arg, whole);
	struct pool_block *b = new_block(p, bin, stream, range, whole);
	b->segment = ++p->segments;
	b->range = range;
	b->mapped = false;
	put_in(p, b);
	return b;
}

static struct pool_block *expand(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t bytes)
{
	if (bytes > MOST_ADDRESSES)
		return NULL;
	struct pool_block *b = find_place(p, bin, stream, bytes);
	if (!b->mapped && !map(p, b, b->bytes < bytes ? b->bytes : bytes))
		return NULL;
	while (b->bytes < bytes) {
		struct pool_block *next = b->next;
		uint64_t missing = bytes - b->bytes;
		if (!map(p, next, next->bytes < missing ? next->bytes : missing))
			return NULL;
		b = next;
	}
	take_out(p, b);
	return b;
}

/* ---- the cache -------------------------------------------------------------------------------------------- */

/* Of one that can grow the bytes that it can grow to. */
static uint64_t reach_of(const struct pool_block *b)
{
	return b->bytes + (b->next && !b->next->mapped ? b->next->bytes : 0);
}

static struct pool_block *best_fit(const struct cuda_pool *p, struct pool_block *b)
{
	uint64_t stream = b->node.key.stream;
	struct pool_block *next;
	if (!p->settings.expandable) {
		while (b && b->range && b->node.key.stream == stream)
			b = next_of(b);
		return b && b->node.key.stream == stream ? b : NULL;
	}
	while (b->range && (next = next_of(b)) && next->node.key.stream == stream && reach_of(next) < reach_of(b))
		b = next;
	return b;
}

static bool collects(const struct cuda_pool *p)
{
	return p->settings.gc_threshold > 0 && p->settings.allowed_bytes != UINT64_MAX;
}

static struct pool_block *look_for_free(const struct cuda_pool *p, const struct bin *bin, uint64_t stream,
					uint64_t bytes)
{
	const uint64_t most = p->settings.max_split_bytes;
	struct pool_block *b =
		block_of(block_set_from(&bin->free, (struct set_key){ .stream = stream, .bytes = bytes }));
	if (b && b->node.key.stream == stream && b->range)
		b = best_fit(p, b);
	if (!b || b->node.key.stream != stream)
		return NULL;
	if (bytes < most ? b->bytes >= most : b->bytes - bytes >= p->settings.most_rounding)
		return NULL;
	return b;
}

static struct pool_block *find_free(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t bytes)
{
	struct pool_block *b = look_for_free(p, bin, stream, bytes);
	bin->looks += collects(p);
	if (b)
		take_out(p, b);
	return b;
}

static bool is_whole(const struct pool_block *b)
{
	return !b->range && !b->prev && !b->next;
}

static uint64_t release(struct cuda_pool *p, struct pool_block *b)
{
	uint64_t bytes = b->bytes;
	take_out(p, b);
	give_to_driver(p, start_of(b), bytes);
	drop_block(p, b);
	return bytes;
}

/* Segments that nobody is in; of expandable ones such pages. */
static int release_all(struct cuda_pool *p, struct bin *bin)
{
	p->list_count = 0;
	int e = make_room(p, 2 * p->free_count);
	for (struct pool_block *b = first_of(&bin->free), *next; b && !e; b = next) {
		next = next_of(b);
		if (is_whole(b))
			release(p, b);
		else if (b->range && !(e = vec_reserve_raw(p->list, p->list_room, p->list_count + 1)))
			p->list[p->list_count++] = b;
	}
	for (size_t i = 0; i < p->list_count && !e; i++)
		unmap(p, p->list[i]);
	return e;
}

/* Graphs' pools keep what they have until their graph is gone. */
int cuda_pool_empty_cache(struct cuda_pool *p)
{
	int e = 0;
	for (size_t i = 0; i < p->part_count && !e; i++) {
		struct pool_part *part = p->parts[i];
		if (part->capture && !part->gone)
			continue;
		e = release_all(p, &part->large);
		if (!e)
			e = release_all(p, &part->small);
	}
	return e;
}

static uint64_t cached_in(const struct cuda_pool *p, const struct bin *bin)
{
	uint64_t sum = 0, begin, end;
	for (const struct pool_block *b = first_of(&bin->free); b; b = next_of(b))
		if (is_whole(b))
			sum += b->bytes;
		else if (b->range && whole_pages(p, b, &begin, &end))
			sum += end - begin;
	return sum;
}

uint64_t cuda_pool_cached(const struct cuda_pool *p)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->part_count; i++)
		if (!p->parts[i]->capture || p->parts[i]->gone)
			sum += cached_in(p, &p->parts[i]->large) + cached_in(p, &p->parts[i]->small);
	return sum;
}

void cuda_pool_forget(struct cuda_pool *p, uint32_t capture)
{
	for (size_t i = 0; i < p->part_count; i++)
		p->parts[i]->gone |= p->parts[i]->capture == capture;
}

/* Of those that are never split one that is large enough, or several. */
static bool release_oversize(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t bytes)
{
	const uint64_t most = p->settings.max_split_bytes;
	if (most == UINT64_MAX)
		return false;
	struct set_key key = { .stream = stream, .bytes = bytes < most ? most : bytes };
	struct pool_block *b = block_of(block_set_from(&bin->free, key));
	if (b && b->node.key.stream == stream) {
		if (!is_whole(b))
			return false;
		release(p, b);
		return true;
	}
	uint64_t released = 0;
	while (released < key.bytes) {
		b = block_of(block_set_before(&bin->free, key));
		if (!b || b->node.key.stream != stream || b->bytes < most || !is_whole(b))
			break;
		released += release(p, b);
	}
	return released >= key.bytes;
}

/* Frees the large segments that nobody used for longer than the average, until so much is back. */
static void collect(struct cuda_pool *p)
{
	struct bin *bin = &p->parts[0]->large;
	uint64_t threshold = (uint64_t)(p->settings.gc_threshold * (double)p->settings.allowed_bytes), ages = 0,
		 count = 0, back = 0;
	if (p->figures.reserved <= threshold)
		return;
	const uint64_t target = p->figures.reserved - threshold;
	for (struct pool_block *b = first_of(&bin->free); b; b = next_of(b))
		if (is_whole(b)) {
			ages += bin->looks - b->since;
			count++;
		}
	for (bool any = true; any && back < target && count;) {
		const double old = (double)ages / (double)count;
		any = false;
		for (struct pool_block *b = first_of(&bin->free), *next; b; b = next) {
			uint64_t age = bin->looks - b->since;
			next = next_of(b);
			if (!is_whole(b) || (double)age < old)
				continue;
			any = true;
			ages -= age;
			count--;
			back += release(p, b);
		}
	}
}

/* ---- requests --------------------------------------------------------------------------------------------- */

static int part_of(struct cuda_pool *p, uint32_t capture, struct pool_part **part)
{
	for (size_t i = p->part_count; i > 0; i--) /* the latest capture is the likeliest */
		if (p->parts[i - 1]->capture == capture) {
			*part = p->parts[i - 1];
			return 0;
		}
	struct pool_part *made = calloc(1, sizeof(*made));
	if (!made || vec_reserve(p->parts, p->part_room, p->part_count + 1)) {
		free(made);
		return error_memory();
	}
	made->capture = capture;
	made->small.small = true;
	*part = p->parts[p->part_count++] = made;
	return 0;
}

static bool may_grow(const struct cuda_pool *p, uint64_t bytes)
{
	return p->figures.reserved + segment_for(&p->settings, bytes) <= p->settings.allowed_bytes;
}

static struct pool_block *grow(struct cuda_pool *p, struct bin *bin, uint64_t stream, uint64_t bytes)
{
	if (!may_grow(p, bytes))
		return NULL;
	if (p->settings.expandable)
		return expand(p, bin, stream, bytes);
	uint64_t segment = segment_for(&p->settings, bytes);
	uint64_t addr = take_from_driver(p, 0, segment);
	struct pool_block *b = addr ? new_block(p, bin, stream, addr, segment) : NULL;
	if (b)
		b->segment = ++p->segments;
	return b;
}

/* As the allocator tries one thing after the other. */
static int find(struct cuda_pool *p, struct bin *bin, const struct cuda_pool_request *r, uint64_t bytes,
		struct pool_block **found)
{
	int e = make_room(p, MOST_MADE);
	struct pool_block *b = e ? NULL : find_free(p, bin, r->stream, bytes);
	if (!b && !e) {
		if (collects(p))
			collect(p);
		b = grow(p, bin, r->stream, bytes);
	}
	if (!b && !e && release_oversize(p, bin, r->stream, bytes) && !(e = make_room(p, MOST_MADE)))
		b = grow(p, bin, r->stream, bytes);
	if (!b && !e && !r->capturing && !(e = cuda_pool_empty_cache(p)) && !(e = make_room(p, MOST_MADE))) {
		p->figures.retries++;
		b = grow(p, bin, r->stream, bytes);
	}
	*found = b;
	return e;
}

static void count(struct cuda_pool *p, const struct pool_block *b)
{
	struct cuda_pool_figures *f = &p->figures;
	f->used += b->bytes;
	f->requested += b->requested;
	if (f->used > f->most_used)
		f->most_used = f->used;
	if (f->requested > f->most_requested)
		f->most_requested = f->requested;
}

static uint64_t rounded(const struct cuda_pool *p, const struct cuda_pool_request *r)
{
	return r->rounded ? r->bytes : cuda_pool_round(&p->settings, r->bytes);
}

/* NULL: it never had a request. */
static const struct bin *bin_for(const struct cuda_pool *p, const struct cuda_pool_request *request, uint64_t bytes)
{
	for (size_t i = 0; i < p->part_count; i++)
		if (p->parts[i]->capture == request->capture)
			return bytes <= SMALL_MOST ? &p->parts[i]->small : &p->parts[i]->large;
	return NULL;
}

bool cuda_pool_has(const struct cuda_pool *p, const struct cuda_pool_request *request)
{
	const uint64_t bytes = rounded(p, request);
	const struct bin *bin = bin_for(p, request, bytes);
	return bin && look_for_free(p, bin, request->stream, bytes);
}

bool cuda_pool_at_limit(const struct cuda_pool *p, const struct cuda_pool_request *request)
{
	return !request->capturing && !may_grow(p, rounded(p, request)) && !cuda_pool_has(p, request);
}

/* What stays before an aligned address, if the request fits behind it. */
static uint64_t before_aligned(const struct cuda_pool *p, const struct pool_block *b, uint64_t bytes)
{
	const uint64_t step = p->settings.aligned, over = step ? start_of(b) % step : 0;
	if (!over || !p->settings.expandable || bytes < ALIGNED_LEAST || step - over + bytes > b->bytes)
		return 0;
	return step - over;
}

struct cuda_pool_offer cuda_pool_offer(const struct cuda_pool *p, const struct cuda_pool_request *request)
{
	const uint64_t bytes = rounded(p, request);
	const struct bin *bin = bin_for(p, request, bytes);
	const struct pool_block *b = bin ? look_for_free(p, bin, request->stream, bytes) : NULL;
	if (!b) {
		const struct bin made = { .small = bytes <= SMALL_MOST };
		const uint64_t segment = p->settings.expandable ? bytes : segment_for(&p->settings, bytes);
		return (struct cuda_pool_offer){ .bytes = is_worth_splitting(p, &made, segment, bytes) ? bytes
												       : segment };
	}
	const uint64_t before = before_aligned(p, b, bytes), has = b->bytes - before;
	return (struct cuda_pool_offer){ start_of(b) + before, is_worth_splitting(p, bin, has, bytes) ? bytes : has };
}

bool cuda_pool_lacks_range(const struct cuda_pool *p, const struct cuda_pool_request *request)
{
	const uint64_t bytes = rounded(p, request);
	const struct bin *bin = bin_for(p, request, bytes);
	return p->settings.expandable && !(bin && place_in(bin, request->stream, bytes));
}

/* Leaves what lies before an aligned address in the pool. */
static struct pool_block *align(struct cuda_pool *p, struct pool_block *b, uint64_t bytes)
{
	const uint64_t before = before_aligned(p, b, bytes);
	if (!before)
		return b;
	struct pool_block *rest = cut(p, b, before);
	put_in(p, b);
	return rest;
}

int cuda_pool_take(struct cuda_pool *p, const struct cuda_pool_request *request, struct pool_block **block)
{
	uint64_t bytes = rounded(p, request);
	struct pool_part *part;
	struct pool_block *b = NULL;
	int e = part_of(p, request->capture, &part);
	p->figures.requests++;
	if (!e)
		part->gone = false;
	if (!e)
		e = find(p, bytes <= SMALL_MOST ? &part->small : &part->large, request, bytes, &b);
	*block = b;
	if (e || !b) {
		p->figures.refused += !e;
		return e;
	}
	*block = b = align(p, b, bytes);
	b->whole = !is_worth_splitting(p, b->bin, b->bytes, bytes);
	if (!b->whole)
		put_in(p, cut(p, b, bytes));
	b->used = true;
	b->requested = request->bytes;
	count(p, b);
	return 0;
}

void cuda_pool_give_back(struct cuda_pool *p, struct pool_block *b)
{
	p->figures.used -= b->bytes;
	p->figures.requested -= b->requested;
	cuda_pool_let_go(p, b);
}

static struct pool_block *free_around(const struct bin *bin, uint64_t addr, uint64_t bytes)
{
	struct pool_block *b = first_of(&bin->free);
	while (b && (start_of(b) > addr || start_of(b) + b->bytes < addr + bytes))
		b = next_of(b);
	return b;
}

int cuda_pool_hold(struct cuda_pool *p, uint64_t addr, uint64_t bytes, struct pool_block **block)
{
	struct pool_block *b = NULL;
	for (size_t i = 0; i < p->part_count && !b; i++) {
		b = free_around(&p->parts[i]->large, addr, bytes);
		b = b ? b : free_around(&p->parts[i]->small, addr, bytes);
	}
	int e = b ? make_room(p, 2) : 0;
	*block = NULL;
	if (!b || e)
		return e;
	take_out(p, b);
	if (addr > start_of(b)) {
		struct pool_block *rest = cut(p, b, addr - start_of(b));
		put_in(p, b);
		b = rest;
	}
	if (b->bytes > bytes)
		put_in(p, cut(p, b, bytes));
	b->used = true;
	*block = b;
	return 0;
}

void cuda_pool_let_go(struct cuda_pool *p, struct pool_block *b)
{
	b->used = false;
	merge_both(p, b);
	put_in(p, b);
}

/* The least size for which a large block of so many bytes serves and is not split. */
static uint64_t least_unsplit(const struct cuda_pool_settings *s, uint64_t bytes)
{
	uint64_t least = bytes - SMALL_MOST;
	if (bytes >= s->max_split_bytes) { /* that large it may be split in no case */
		const uint64_t fits = bytes > s->most_rounding ? bytes - s->most_rounding + BLOCK_STEP : 0;
		least = less(least, higher(s->max_split_bytes, fits));
	}
	return higher(least, SMALL_MOST + BLOCK_STEP);
}

uint64_t cuda_pool_least_request(const struct cuda_pool *p, const struct pool_block *b)
{
	const bool unsplit = b->whole && !b->bin->small && !p->settings.expandable;
	const uint64_t size = unsplit ? least_unsplit(&p->settings, b->bytes) : b->bytes;
	uint64_t low = 0, high = b->bytes; /* low is rounded to less than size, high is not */
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;
		if (cuda_pool_round(&p->settings, middle) < size)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* ---- the whole -------------------------------------------------------------------------------------------- */

struct cuda_pool *cuda_pool_new(const struct cuda_pool_settings *settings, const struct cuda_pool_driver *driver)
{
	struct cuda_pool *p = calloc(1, sizeof(*p));
	struct pool_part *part;
	if (!p)
		return NULL;
	*p = (struct cuda_pool){ .settings = *settings, .driver = driver };
	if (!part_of(p, 0, &part))
		return p;
	cuda_pool_free(p);
	return NULL;
}

void cuda_pool_free(struct cuda_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->part_count; i++)
		free(p->parts[i]);
	for (size_t i = 0; i < p->chunk_count; i++)
		free(p->chunks[i]);
	free(p->parts);
	free(p->chunks);
	free(p->list);
	free(p);
}

void cuda_pool_set(struct cuda_pool *p, const struct cuda_pool_settings *settings)
{
	p->settings = *settings;
}

const struct cuda_pool_settings *cuda_pool_settings(const struct cuda_pool *p)
{
	return &p->settings;
}

uint64_t cuda_pool_bytes_of(const struct pool_block *block)
{
	return block->bytes;
}

uint64_t cuda_pool_address_of(const struct pool_block *block)
{
	return start_of(block);
}

const struct cuda_pool_figures *cuda_pool_figures(const struct cuda_pool *p)
{
	return &p->figures;
}
