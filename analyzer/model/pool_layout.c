#include "analyzer/model/pool_layout.h"

#include "analyzer/model/device.h"
#include "analyzer/util/vec.h"

struct building {
	struct pool_layout *layout;
	size_t segment_room, block_room;
	struct pool_layout_block *pool; /* the share's blocks by address */
	size_t pool_count, pool_room;
	size_t next; /* the first of them that may lie in the next segment */
};

static int by_address(const void *a, const void *b)
{
	const struct pool_layout_block *x = a, *y = b;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

static int gather(struct building *b, const struct share *s, const struct blocks *t)
{
	for (size_t i = 0; t->entries && i <= t->mask; i++) {
		const struct block *e = &t->entries[i];
		if (!e->addr)
			continue;
		if (vec_reserve_raw(b->pool, b->pool_room, b->pool_count + 1))
			return -MT_EMEMORY;
		b->pool[b->pool_count++] =
			(struct pool_layout_block){ share_place(s, e), e->size, e->ns, e->site, e->thread };
	}
	return 0;
}

/* ---- one piece of memory --------------------------------------------------------------------------------- */

/* A block's part in [start, end). */
static struct pool_layout_block part_of(const struct pool_layout_block *b, uint64_t start, uint64_t end)
{
	struct pool_layout_block part = *b;
	uint64_t to = b->addr + b->size < end ? b->addr + b->size : end;
	part.addr = b->addr > start ? b->addr : start;
	part.size = to > part.addr ? to - part.addr : 0;
	return part;
}

/* A block that goes on from the piece before is one block of the segment. */
static int add_part(struct building *b, struct pool_layout_segment *s, const struct pool_layout_block *whole,
		    struct pool_layout_block part)
{
	struct pool_layout *l = b->layout;
	struct pool_layout_block *last = s->block_count ? &l->blocks[l->block_count - 1] : NULL;
	s->used += part.size;
	l->allocated += part.size;
	if (last && last->addr + last->size == part.addr && whole->addr < part.addr) {
		last->size += part.size;
		return 0;
	}
	if (vec_reserve_raw(l->blocks, b->block_room, l->block_count + 1))
		return -MT_EMEMORY;
	l->blocks[l->block_count++] = part;
	s->block_count++;
	return 0;
}

/* Adds the blocks in [start, end) to the segment. Returns how many there are, or -MT_EMEMORY. */
static int64_t add_blocks(struct building *b, struct pool_layout_segment *s, uint64_t start, uint64_t end)
{
	int64_t n = 0;
	while (b->next < b->pool_count && b->pool[b->next].addr + b->pool[b->next].size <= start)
		b->next++;
	for (size_t i = b->next; i < b->pool_count && b->pool[i].addr < end; i++, n++)
		if (add_part(b, s, &b->pool[i], part_of(&b->pool[i], start, end)))
			return -MT_EMEMORY;
	return n;
}

/* ---- segments -------------------------------------------------------------------------------------------- */

static struct pool_layout_segment *begin_segment(struct building *b, const struct share *s, const struct extent *x)
{
	struct pool_layout *l = b->layout;
	if (vec_reserve(l->segments, b->segment_room, l->segment_count + 1))
		return NULL;
	struct pool_layout_segment *seg = &l->segments[l->segment_count++];
	*seg = (struct pool_layout_segment){ .process = s->seen.process->id,
					     .expandable = x->physical != 0,
					     .addr = x->start,
					     .ns = x->ns,
					     .site = x->site,
					     .private = graphs_pool_of(s, x) };
	return seg;
}

struct walk {
	struct building *b;
	const struct share *share;
};

static int take_extent(void *arg, const struct range *r)
{
	const struct walk *w = arg;
	struct pool_layout *l = w->b->layout;
	const struct extent *x = &w->share->extent[r->file];
	struct pool_layout_segment *seg = l->segment_count ? &l->segments[l->segment_count - 1] : NULL;
	if (!x->pool)
		return 0;
	bool goes_on = seg && seg->process == w->share->seen.process->id && seg->expandable && x->physical &&
		       seg->addr + seg->size == x->start && seg->private == graphs_pool_of(w->share, x);
	if (!goes_on && !(seg = begin_segment(w->b, w->share, x)))
		return -MT_EMEMORY;
	seg->size += x->end - x->start;
	seg->stream = seg->noted ? seg->stream : x->stream;
	seg->noted |= x->noted;
	seg->sizes |= x->sizes;
	l->reserved += x->bytes;
	int64_t n = add_blocks(w->b, seg, x->start, x->end);
	if (n == 0)
		seg->idle += x->end - x->start;
	return n < 0 ? (int)n : 0;
}

/* Of the share whose segments begin with `first`. */
static int count_private(struct pool_layout *l, const struct share *s, size_t first)
{
	bool *has = s->capture_count ? calloc(s->capture_count + 1, sizeof(*has)) : NULL;
	if (!has)
		return s->capture_count ? error_memory() : 0;
	for (size_t i = first; i < l->segment_count; i++)
		has[l->segments[i].private] = true;
	graphs_count(s, has, &l->captures, &l->private_pools);
	free(has);
	return 0;
}

static int take_share(struct building *b, const struct share *s)
{
	struct walk w = { b, s };
	size_t first = b->layout->segment_count;
	b->pool_count = b->next = 0;
	b->layout->partly_seen |= s->seen.partly_seen;
	int e = gather(b, s, &s->space[SPACE_POOL]);
	if (!e)
		e = gather(b, s, &s->space[SPACE_WORKSPACE]);
	if (b->pool_count)
		qsort(b->pool, b->pool_count, sizeof(*b->pool), by_address);
	uint64_t before = b->layout->allocated, all = 0;
	if (!e)
		e = ranges_each(&s->extents, take_extent, &w);
	if (!e)
		e = count_private(b->layout, s, first);
	for (size_t i = 0; i < b->pool_count; i++)
		all += b->pool[i].size;
	b->layout->stray += all > b->layout->allocated - before ? all - (b->layout->allocated - before) : 0;
	return e;
}

/* ---- holes ----------------------------------------------------------------------------------------------- */

static void find_hole(struct pool_layout_segment *s)
{
	uint64_t at = s->addr;
	for (uint32_t i = 0; i < s->block_count; i++) {
		const struct pool_layout_block *b = &s->blocks[i];
		if (b->addr > at && b->addr - at > s->hole)
			s->hole = b->addr - at;
		at = b->addr + b->size > at ? b->addr + b->size : at;
	}
	if (s->addr + s->size > at && s->addr + s->size - at > s->hole)
		s->hole = s->addr + s->size - at;
}

static void find_holes(struct pool_layout *l)
{
	size_t at = 0;
	for (size_t i = 0; i < l->segment_count; i++) {
		struct pool_layout_segment *s = &l->segments[i];
		s->blocks = &l->blocks[at];
		at += s->block_count;
		find_hole(s);
		l->largest_hole = s->hole > l->largest_hole ? s->hole : l->largest_hole;
		l->idle += s->idle;
	}
}

int pool_layout_take(struct pool_layout **out, const struct model *m, uint32_t device, uint32_t process)
{
	struct building b = { .layout = calloc(1, sizeof(struct pool_layout)) };
	*out = NULL;
	if (!b.layout)
		return error_memory();
	const struct device *d = m->devices[device];
	int e = 0;
	for (size_t i = 0; i < d->share_count && !e; i++)
		if (process == UINT32_MAX || d->shares[i]->seen.process->id == process)
			e = take_share(&b, d->shares[i]);
	free(b.pool);
	if (e) {
		pool_layout_free(b.layout);
		return e;
	}
	find_holes(b.layout);
	*out = b.layout;
	return 0;
}

bool pool_layout_serves(const struct pool_layout_segment *s, const struct pool_request *r)
{
	if (s->withheld || (s->private != r->pool && (r->pool != POOL_LAYOUT_PRIVATE || !s->private)))
		return false;
	if (r->bytes && s->sizes && !(s->sizes & pool_layout_sizes_of(r->bytes)))
		return false;
	return !r->stream_known || !s->noted || s->stream == r->stream;
}

struct model_pools pool_layout_usable(const struct pool_layout *l, const struct pool_request *r)
{
	struct model_pools p = { 0 };
	for (size_t i = 0; i < l->segment_count; i++) {
		const struct pool_layout_segment *s = &l->segments[i];
		if (!pool_layout_serves(s, r))
			continue;
		p.reserved += s->size;
		p.allocated += s->used;
		p.idle += s->idle;
		p.largest_hole = s->hole > p.largest_hole ? s->hole : p.largest_hole;
	}
	return p;
}

static bool is_whole(const struct pool_layout_segment *s, const struct pool_request *r)
{
	return !s->expandable && s->idle == s->size && pool_layout_serves(s, r);
}

uint64_t pool_layout_withhold(struct pool_layout *l, const struct pool_request *r)
{
	uint64_t all = 0, largest = 0;
	for (size_t i = 0; i < l->segment_count; i++)
		if (is_whole(&l->segments[i], r) && l->segments[i].size > largest)
			largest = l->segments[i].size;
	for (size_t i = 0; i < l->segment_count && largest >= r->bytes; i++)
		if (is_whole(&l->segments[i], r)) {
			l->segments[i].withheld = true;
			all += l->segments[i].size;
		}
	return all;
}

struct model_pools pool_layout_pools(const struct pool_layout *l, uint32_t pool)
{
	struct model_pools p = pool_layout_usable(l, &(struct pool_request){ .pool = pool });
	p.captures = pool == POOL_LAYOUT_PRIVATE ? l->captures : 0;
	p.pools = pool == POOL_LAYOUT_PRIVATE ? l->private_pools : 0;
	return p;
}

void pool_layout_free(struct pool_layout *l)
{
	if (!l)
		return;
	free(l->segments);
	free(l->blocks);
	free(l);
}
