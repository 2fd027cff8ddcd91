#include "analyzer/diagnosis/pins.h"

#include "analyzer/util/vec.h"

struct owner_finding {
	struct pin *pins;
	size_t count, room;
};

static int by_site(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;
	uint64_t p = (uint64_t)x->process << 32 | x->site, q = (uint64_t)y->process << 32 | y->site;
	return (p > q) - (p < q);
}

static int by_pinned(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;
	if (x->pinned != y->pinned)
		return x->pinned < y->pinned ? 1 : -1;
	return x->alone != y->alone ? (x->alone < y->alone ? 1 : -1) : by_site(a, b);
}

/* Entries from `from` on, one a site. */
static void join(struct owner_finding *f, size_t from)
{
	size_t n = from;
	if (f->count - from > 1)
		qsort(f->pins + from, f->count - from, sizeof(*f->pins), by_site);
	for (size_t i = from; i < f->count; i++) {
		struct pin *last = n > from ? &f->pins[n - 1] : NULL;
		if (!last || by_site(last, &f->pins[i])) {
			f->pins[n++] = f->pins[i];
			continue;
		}
		last->held += f->pins[i].held;
		last->blocks += f->pins[i].blocks;
		last->pinned += f->pins[i].pinned;
		last->alone += f->pins[i].alone;
		last->segments += f->pins[i].segments;
	}
	f->count = n;
}

static int take_segment(struct owner_finding *f, const struct pool_layout_segment *s)
{
	size_t from = f->count;
	uint64_t unused = s->size - s->used;
	for (uint32_t i = 0; i < s->block_count; i++) {
		if (vec_reserve_raw(f->pins, f->room, f->count + 1))
			return -MT_EMEMORY;
		f->pins[f->count++] = (struct pin){
			.process = s->process, .site = s->blocks[i].site, .held = s->blocks[i].size, .blocks = 1
		};
	}
	join(f, from);
	for (size_t i = from; i < f->count; i++) {
		f->pins[i].pinned = unused;
		f->pins[i].alone = f->count == from + 1 ? unused : 0;
		f->pins[i].segments = 1;
	}
	return 0;
}

int pins_find(const struct pool_layout *l, const struct pool_request *only, struct pin **pins, size_t *count)
{
	struct owner_finding f = { 0 };
	int e = 0;
	for (size_t i = 0; i < l->segment_count && !e; i++)
		if (l->segments[i].used && l->segments[i].used < l->segments[i].size &&
		    (!only || pool_layout_serves(&l->segments[i], only)))
			e = take_segment(&f, &l->segments[i]);
	join(&f, 0);
	if (f.count)
		qsort(f.pins, f.count, sizeof(*f.pins), by_pinned);
	*pins = f.pins;
	*count = e ? 0 : f.count;
	return e;
}
