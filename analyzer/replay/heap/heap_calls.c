#include "analyzer/replay/heap/heap_calls.h"

#include "analyzer/util/blocks.h"
#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

enum { HOOKS = 1024 }; /* ids of mt_event.hook */

/* realloc is a free and then an allocation of one ring. */
struct ring {
	bool moving; /* between the two: */
	struct heap_call free;
};

struct heap_calls {
	const struct process *process;
	heap_call_function *f;
	void *arg;
	struct heap_calls_counts counts;
	uint8_t whats[HOOKS]; /* enum heap_what and 1; 0 = not looked up */
	struct blocks live;   /* site is the number */
	uint32_t *unused;     /* numbers, the last one given back last */
	size_t unused_count, unused_room;
	struct ring *rings;
	size_t ring_room;
};

struct heap_calls *heap_calls_new(const struct process *p, heap_call_function *f, void *arg)
{
	struct heap_calls *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->process = p;
	h->f = f;
	h->arg = arg;
	return h;
}

void heap_calls_free(struct heap_calls *h)
{
	if (!h)
		return;
	blocks_fini(&h->live);
	free(h->unused);
	free(h->rings);
	free(h);
}

const struct heap_calls_counts *heap_calls_counts(const struct heap_calls *h)
{
	return &h->counts;
}

static enum heap_what what_of_name(const char *name)
{
	static const char *const aligned[] = { "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc" };
	if (!strncmp(name, "realloc", 7))
		return HEAP_REALLOC;
	if (!strcmp(name, "calloc"))
		return HEAP_CALLOC;
	for (size_t i = 0; i < sizeof(aligned) / sizeof(*aligned); i++)
		if (!strcmp(name, aligned[i]))
			return HEAP_ALIGNED;
	return strstr(name, "align") ? HEAP_ALIGNED : HEAP_MALLOC; /* operator new has both */
}

static enum heap_what what_of(struct heap_calls *h, uint32_t hook)
{
	if (!h->whats[hook])
		h->whats[hook] = (uint8_t)(what_of_name(process_hook(h->process, hook)) + 1);
	return (enum heap_what)(h->whats[hook] - 1);
}

static int hand_out(struct heap_calls *h, const struct heap_call *c)
{
	h->counts.calls++;
	return h->f(h->arg, c);
}

static int give_number(struct heap_calls *h, uint32_t number)
{
	int e = vec_reserve_raw(h->unused, h->unused_room, h->unused_count + 1);
	if (!e)
		h->unused[h->unused_count++] = number;
	return e;
}

static uint32_t take_number(struct heap_calls *h)
{
	return h->unused_count ? h->unused[--h->unused_count] : h->counts.blocks++;
}

static int hand_out_free(struct heap_calls *h, const struct heap_call *c)
{
	int e = give_number(h, c->block);
	return e ? e : hand_out(h, c);
}

/* Whatever comes next of that ring but the rest of the realloc: it was realloc(p, 0), which frees. */
static int end_move(struct heap_calls *h, struct ring *r)
{
	if (!r->moving)
		return 0;
	r->moving = false;
	return hand_out_free(h, &r->free);
}

static struct heap_call call_of(enum heap_what what, const struct mt_event *s, uint32_t ring, uint32_t thread)
{
	return (struct heap_call){ .what = what,
				   .ring = ring,
				   .thread = thread,
				   .size = s->size,
				   .addr = s->addr,
				   .ticks = s->ticks,
				   .hook = s->hook,
				   .node = s->node };
}

/* The block is in nobody's hands any more; its number still is. */
static struct heap_call take_out(struct heap_calls *h, struct block *b, struct heap_call c)
{
	c.what = HEAP_FREE;
	c.block = b->site;
	c.size = 0;
	c.old_size = b->size;
	h->counts.live -= b->size;
	blocks_remove(&h->live, b);
	return c;
}

static int put(struct heap_calls *h, const struct heap_call *c)
{
	struct block b = { .addr = c->addr, .size = c->size, .site = c->block };
	h->counts.live += c->size;
	return blocks_put(&h->live, &b);
}

static int note_free(struct heap_calls *h, struct ring *r, struct heap_call c)
{
	struct block *b = blocks_find(&h->live, c.addr);
	if (!b) {
		h->counts.unknown++;
		return 0;
	}
	c = take_out(h, b, c);
	if (what_of(h, c.hook) != HEAP_REALLOC)
		return hand_out_free(h, &c);
	*r = (struct ring){ .moving = true, .free = c };
	return 0;
}

/* Numbers are handed out behind that of a block that goes. */
static int note_alloc(struct heap_calls *h, struct ring *r, struct heap_call c)
{
	const bool moves = r->moving && c.what == HEAP_REALLOC;
	struct block *old = blocks_find(&h->live, c.addr);
	int e = moves ? 0 : end_move(h, r);
	if (old) {
		const struct heap_call gone = take_out(h, old, c);
		h->counts.missed++;
		e = e ? e : hand_out_free(h, &gone);
	}
	if (moves) {
		c.block = r->free.block;
		c.old_size = r->free.old_size;
		c.old_addr = r->free.addr;
		r->moving = false;
	} else {
		c.block = take_number(h);
		c.what = c.what == HEAP_REALLOC ? HEAP_MALLOC : c.what;
	}
	e = e ? e : put(h, &c);
	return e ? e : hand_out(h, &c);
}

/* The realloc failed: the block is there as before. Another one's undo is of a mapping. */
static int note_undo(struct heap_calls *h, struct ring *r, const struct mt_event *s)
{
	if (!r->moving || r->free.addr != s->addr || blocks_find(&h->live, s->addr))
		return 0;
	struct heap_call back = r->free;
	back.size = back.old_size;
	r->moving = false;
	return put(h, &back);
}

/* Blocks that a framework's pool gave out; nobody asked malloc for them. */
static bool is_pools(const struct process *p, const struct mt_event *s)
{
	return p->pool_hooks[s->hook / 64] >> s->hook % 64 & 1;
}

int heap_calls_event(struct heap_calls *h, const struct mt_event *s, uint32_t ring, uint32_t thread)
{
	if ((s->kind != MT_ALLOC && s->kind != MT_FREE && s->kind != MT_UNDO) || is_pools(h->process, s))
		return 0;
	int e = vec_reserve(h->rings, h->ring_room, ring + 1ul);
	if (e)
		return e;
	struct ring *r = &h->rings[ring];
	h->counts.events++;
	if (s->kind == MT_UNDO)
		return note_undo(h, r, s);
	if (s->kind == MT_ALLOC)
		return note_alloc(h, r, call_of(what_of(h, s->hook), s, ring, thread));
	e = end_move(h, r);
	return e ? e : note_free(h, r, call_of(HEAP_FREE, s, ring, thread));
}
