#include "analyzer/model/holders/hold_graph.h"

#include "analyzer/symbols/python_frames.h"
#include "analyzer/util/error.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <string.h>

#define NEAR \
	64 /* bytes in front of what a pointer to a block points to: a debugging allocator's, or an object's head */
#define LARGE   (64ul << 10) /* what is larger is an array or a pool */
#define CLASSES 4            /* of C++: as many vtables are kept for each of these */

/* ---- addresses ---- */

struct place {
	uint64_t at;
	uint32_t node;
};

struct addresses {
	struct place *slots;
	uint64_t mask;
};

static struct place *slot_of(const struct addresses *a, uint64_t at)
{
	uint64_t i = (at >> 3) * 0x9E3779B97F4A7C15ull >> 20;
	while (a->slots[i & a->mask].at && a->slots[i & a->mask].at != at)
		i++;
	return &a->slots[i & a->mask];
}

static uint32_t node_at(const struct addresses *a, uint64_t at)
{
	const struct place *p = slot_of(a, at);
	return at && p->at ? p->node : HOLD_NONE;
}

/* Frames are roots of their own, and nothing refers to them by their address. */
static int index_items(struct addresses *a, const struct hold_snapshot *s)
{
	uint64_t slots = 1024;
	while (slots < 2 * (uint64_t)s->count)
		slots *= 2;
	a->slots = vec_calloc(slots, sizeof(*a->slots));
	if (!a->slots)
		return error_memory();
	a->mask = slots - 1;
	for (uint32_t i = 0; i < s->count; i++) {
		struct place *p = slot_of(a, s->items[i].at);
		if (s->items[i].kind != HOLD_FRAME && s->items[i].at && !p->at)
			*p = (struct place){ s->items[i].at, i };
	}
	return 0;
}

/* ---- live blocks ---- */

struct live {
	struct hold_block *list;
	size_t count, room;
	uint64_t *sums;
	uint8_t kind;
};

static int add_block(void *arg, const struct model_block *b)
{
	struct live *l = arg;
	int e = vec_reserve_raw(l->list, l->room, l->count + 1);
	if (!e)
		l->list[l->count++] = (struct hold_block){ b->addr, b->size, b->ns, b->site, b->device, l->kind };
	l->sums[l->kind] += e ? 0 : b->size;
	return e;
}

/* Where a segment and a block of the pool begin together the block comes first. */
static int by_address(const void *a, const void *b)
{
	const struct hold_block *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (y->kind == MODEL_POOL) - (x->kind == MODEL_POOL);
}

static int list_live(struct live *l, const struct model *m, unsigned process)
{
	int e = 0;
	for (int kind = 0; !e && kind < MODEL_KINDS; kind++) {
		l->kind = (uint8_t)kind;
		e = model_each_block(m, process, (enum model_kind)kind, add_block, l);
	}
	if (!e && l->count)
		qsort(l->list, l->count, sizeof(*l->list), by_address);
	return e;
}

/* The block that `at` is in, or NULL. */
static const struct hold_block *live_around(const struct live *l, uint64_t at)
{
	size_t low = SEARCH_FIRST(i, l->count, l->list[i].addr > at);
	while (low > 1 && l->list[low - 2].addr == l->list[low - 1].addr)
		low--;
	return low && at - l->list[low - 1].addr < l->list[low - 1].size ? &l->list[low - 1] : NULL;
}

/* The block that a pointer to `at` means, or NULL. */
static const struct hold_block *live_at(const struct live *l, uint64_t at)
{
	const struct hold_block *b = live_around(l, at);
	return b && at - b->addr <= (b->kind == MODEL_HEAP ? NEAR : 0) ? b : NULL;
}

/* The node of a live block, made when it is first pointed to: `number` is by block of the list, 0 = none yet. */
static uint32_t block_node(struct hold_graph *g, const struct live *l, uint32_t *number, const struct hold_block *b)
{
	if (!b)
		return HOLD_NONE;
	uint32_t *n = &number[b - l->list];
	if (!*n) {
		g->blocks[g->block_count] = *b;
		*n = ++g->block_count;
	}
	return g->items + *n - 1;
}

/* ---- references ---- */

struct large {
	const struct hold_block *block;
	uint64_t tables[CLASSES];
	int count;
};

struct making {
	struct hold_graph *g;
	struct addresses addresses;
	struct live live;
	struct large *large; /* by address */
	size_t large_count;
	uint32_t *number;
	bool *done;        /* by item: memory of C or C++ whose words have been resolved */
	uint32_t *told_by; /* by item: an object that refers to it */
};

static void explain(struct hold_graph *g, uint32_t node)
{
	uint64_t *left = &g->unexplained[node];
	if (*left && *left != UINT64_MAX)
		--*left;
}

static void resolve_edges(struct making *k)
{
	struct hold_graph *g = k->g;
	const struct hold_snapshot *s = g->snapshot;
	for (uint32_t i = 0; i < g->items; i++) {
		const struct hold_item *item = &s->items[i];
		for (size_t e = item->first; e < item->first + item->edges; e++) {
			g->target[e] = node_at(&k->addresses, s->edges[e].to);
			if (g->target[e] != HOLD_NONE)
				explain(g, g->target[e]);
		}
		if (item->kind == HOLD_OBJECT && item->bits & MT_HOLD_OF_TYPE && g->type_node[item->type] != HOLD_NONE)
			explain(g, g->type_node[item->type]);
	}
}

static struct large *large_around(const struct making *k, uint64_t at)
{
	size_t low = SEARCH_FIRST(i, k->large_count, k->large[i].block->addr > at);
	return low && at - k->large[low - 1].block->addr < k->large[low - 1].block->size ? &k->large[low - 1] : NULL;
}

static bool is_of_class(const struct large *l, uint64_t table)
{
	for (int i = 0; i < CLASSES; i++)
		if (l->tables[i] == table)
			return true;
	return false;
}

static void note_class(const struct making *k, uint64_t table, uint64_t at)
{
	struct large *l = large_around(k, at);
	if (l && at - l->block->addr <= NEAR && !is_of_class(l, table) && l->count < CLASSES)
		l->tables[l->count++] = table;
}

/* Lists the large blocks, and for each the vtables of the C++ objects that point to its beginning. */
static int find_large(struct making *k)
{
	const struct hold_snapshot *s = k->g->snapshot;
	size_t room = 0;
	for (size_t i = 0; i < k->live.count; i++) {
		if (k->live.list[i].kind != MODEL_HEAP || k->live.list[i].size <= LARGE)
			continue;
		int e = vec_reserve_raw(k->large, room, k->large_count + 1);
		if (e)
			return e;
		k->large[k->large_count++] = (struct large){ .block = &k->live.list[i] };
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct hold_item *item = &s->items[i];
		const bool has_class = item->kind == HOLD_BLOCK && item->bytes;
		for (size_t e = item->first; has_class && e < item->first + item->words; e++)
			note_class(k, item->bytes, s->edges[e].to);
	}
	return 0;
}

/* Only an object holds memory of a device: allocators keep lists of all blocks, in memory of no class.
 *
 * A large block is a pool if an object of C++ points to its beginning and others of the same class point into it: then
 * all of them hold it. Other pointers into a block don't count, since they may be old contents of memory. */
static const struct hold_block *pointed_to(const struct making *k, const struct hold_item *by, uint64_t at)
{
	const struct hold_block *b = live_at(&k->live, at);
	bool plain = by->kind == HOLD_BLOCK && !by->bytes;
	if (b || plain || by->kind != HOLD_BLOCK)
		return b && plain && b->device != MODEL_NO_DEVICE ? NULL : b;
	const struct large *l = large_around(k, at);
	return l && is_of_class(l, by->bytes) ? l->block : NULL;
}

/* `owner`: the object whose memory `by` is. What that refers to, as tp_traverse tells, is no other reference here; and
 * a container tells all that it has: in a deque's blocks are its items, and what lay there before. */
static bool is_told(const struct making *k, uint32_t owner, uint32_t node)
{
	return owner != HOLD_NONE && (k->told_by[node] == owner || hold_item(k->g, owner)->items != UINT64_MAX);
}

static uint32_t resolve_word(struct making *k, const struct hold_item *by, uint32_t owner, uint64_t at)
{
	struct hold_graph *g = k->g;
	uint32_t node = node_at(&k->addresses, at);
	const struct hold_item *item = node == HOLD_NONE ? NULL : hold_item(g, node);
	if (!item)
		return block_node(g, &k->live, k->number, pointed_to(k, by, at));
	if (item->kind == HOLD_OBJECT) {
		if (!g->unexplained[node] || g->unexplained[node] == UINT64_MAX || is_told(k, owner, node))
			return HOLD_NONE;
		explain(g, node);
	}
	return node;
}

/* Memory of C has been looked at as far as malloc's chunk goes; behind what was asked for lies what was there before.
 * So the first words are taken, no more than have room in what was asked for. */
static uint32_t words_of(const struct making *k, const struct hold_item *item)
{
	const struct hold_block *b = item->kind == HOLD_BLOCK ? live_at(&k->live, item->at) : NULL;
	uint64_t room = b && b->kind == MODEL_HEAP && b->addr == item->at ? b->size / 8 : UINT64_MAX;
	return item->words < room ? item->words : (uint32_t)room;
}

static void resolve_words(struct making *k, const struct hold_item *item, uint32_t owner)
{
	const size_t first = item->first + item->edges;
	const uint32_t words = words_of(k, item);
	for (size_t e = first; e < first + words; e++)
		k->g->target[e] = resolve_word(k, item, owner, k->g->snapshot->edges[e].to);
}

static void resolve_words_of(struct making *k, enum hold_kind of)
{
	for (uint32_t i = 0; i < k->g->items; i++)
		if (hold_item(k->g, i)->kind == of)
			resolve_words(k, hold_item(k->g, i), HOLD_NONE);
}

/* Of what a word points to: is it memory of C or C++ that is still to be resolved, and `of_class` as is asked? */
static bool is_due(const struct making *k, uint32_t node, bool of_class)
{
	const struct hold_item *item = node == HOLD_NONE ? NULL : hold_item(k->g, node);
	return item && item->kind == HOLD_BLOCK && !k->done[node] && (item->bytes || !of_class);
}

/* The words of a block, and of those that it leads to; `of_class`: not from a plain one to another. */
static void resolve_from(struct making *k, uint32_t block, uint32_t owner, bool of_class)
{
	uint32_t depth = 0, *stack = k->g->order;
	k->done[block] = true;
	for (stack[depth++] = block; depth;) {
		const struct hold_item *item = hold_item(k->g, stack[--depth]);
		resolve_words(k, item, owner);
		for (size_t e = item->first + item->edges; e < item->first + item->edges + item->words; e++)
			if (is_due(k, k->g->target[e], of_class && !item->bytes)) {
				k->done[k->g->target[e]] = true;
				stack[depth++] = k->g->target[e];
			}
	}
}

/* What objects have of C and C++. */
static void resolve_blocks(struct making *k, bool of_class)
{
	struct hold_graph *g = k->g;
	for (uint32_t i = 0; i < g->items; i++) {
		const struct hold_item *item = hold_item(g, i);
		const size_t words = item->first + item->edges;
		if (item->kind != HOLD_OBJECT)
			continue;
		for (size_t e = item->first; item->words && e < words; e++)
			if (g->target[e] != HOLD_NONE)
				k->told_by[g->target[e]] = i;
		for (size_t e = words; e < words + item->words; e++)
			if (is_due(k, g->target[e], of_class))
				resolve_from(k, g->target[e], i, of_class);
	}
}

/* Objects of a class of C++ and what they lead to, such as a vector's array, come before the values of running
 * functions and other memory, where more is left of what was there before. */
static void resolve_all_words(struct making *k)
{
	resolve_words_of(k, HOLD_OBJECT);
	resolve_blocks(k, true);
	resolve_words_of(k, HOLD_FRAME);
	resolve_blocks(k, false);
	for (uint32_t i = 0; i < k->g->items; i++)
		if (is_due(k, i, false))
			resolve_from(k, i, HOLD_NONE, false);
	memset(k->g->order, 0xff, k->g->items * sizeof(*k->g->order));
}

/* What looks like a chunk of malloc's may be something else: the end of an array, in front of which a number stands, or
 * memory that was freed. `whole`: all live blocks are known. */
static void drop_no_blocks(const struct live *l, const struct hold_snapshot *s, bool whole)
{
	for (size_t i = 0; i < s->count; i++) {
		struct hold_item *item = &s->items[i];
		const struct hold_block *b = item->kind == HOLD_BLOCK ? live_around(l, item->at) : NULL;
		if (item->kind == HOLD_BLOCK && (b ? b->kind == MODEL_HEAP && b->addr != item->at : whole))
			item->at = item->words = 0;
	}
}

/* Before 3.11 a frame is an object that the collector may know; what it refers to is said once. */
static void drop_frame_objects(struct making *k)
{
	struct hold_item *items = k->g->snapshot->items;
	for (uint32_t i = 0; i < k->g->items; i++) {
		uint32_t object = items[i].kind == HOLD_FRAME ? node_at(&k->addresses, items[i].at) : HOLD_NONE;
		if (object != HOLD_NONE)
			items[object].edges = items[object].words = 0;
	}
}

static void find_own(struct making *k)
{
	struct hold_graph *g = k->g;
	for (uint32_t i = 0; i < g->items; i++) {
		const struct hold_item *item = hold_item(g, i);
		const struct hold_block *b = item->kind == HOLD_FRAME ? NULL : live_at(&k->live, item->at);
		g->own[i] = block_node(g, &k->live, k->number, b && b->kind == MODEL_HEAP ? b : NULL);
	}
}

static void find_modules(struct hold_graph *g)
{
	for (uint32_t i = 0; i < g->items; i++) {
		const struct hold_item *item = hold_item(g, i);
		if (item->kind != HOLD_OBJECT || !item->label || strcmp(hold_type(g, i), "module"))
			continue;
		for (size_t e = item->first; e < item->first + item->edges; e++)
			if (g->target[e] != HOLD_NONE && !strcmp(hold_type(g, g->target[e]), "dict") &&
			    g->module[g->target[e]] == HOLD_NONE) {
				g->module[g->target[e]] = i;
				break;
			}
	}
}

/* ---- what lives by itself ---- */

static bool is_root(const struct hold_graph *g, uint32_t i)
{
	return hold_item(g, i)->kind == HOLD_FRAME || (hold_item(g, i)->kind == HOLD_OBJECT && g->unexplained[i]);
}

/* Marks in g->place, which hold_dominators() writes anew. */
static void spread(struct hold_graph *g, uint32_t *stack, uint32_t node)
{
	uint32_t depth = 0, to, edge;
	stack[depth++] = node;
	g->place[node] = 0;
	while (depth) {
		uint32_t from = stack[--depth];
		for (uint32_t k = 0; hold_next(g, from, k, &to, &edge); k++)
			if (to != HOLD_NONE && g->place[to] == HOLD_NONE) {
				g->place[to] = 0;
				stack[depth++] = to;
			}
	}
}

/* What waits for the collector holds nothing that lives: it is gone with a collection. */
static void let_go(struct hold_graph *g, uint32_t node)
{
	struct hold_item *item = &g->snapshot->items[node];
	for (size_t e = item->first; e < item->first + item->edges + item->words; e++)
		if (g->target[e] != HOLD_NONE && g->place[g->target[e]] != HOLD_NONE)
			g->target[e] = HOLD_NONE;
	if (item->kind == HOLD_OBJECT && g->type_node[item->type] != HOLD_NONE &&
	    g->place[g->type_node[item->type]] != HOLD_NONE)
		item->bits &= (uint8_t)~MT_HOLD_OF_TYPE;
}

/* Of what nothing reaches: the nodes in the order in which a search is done with them, and of each its circle (those
 * that lead to each other). Tarjan's algorithm. The marks are as before. */
struct circles {
	uint32_t *stack, *at;   /* of the search; by node: its next reference */
	uint32_t *first, *open; /* by node: the earliest that it leads to and that has no circle yet; these */
	uint32_t *done;         /* nodes, as many as `count` */
	uint32_t count, opened, time;
};

static void enter(struct hold_graph *g, struct circles *c, uint32_t *depth, uint32_t node)
{
	g->place[node] = c->first[node] = c->time++;
	c->at[node] = 0;
	c->stack[(*depth)++] = c->open[c->opened++] = node;
}

/* The circle's number is above all times. */
static void close_circle(const struct hold_graph *g, struct circles *c, uint32_t node)
{
	uint32_t one;
	do {
		one = c->open[--c->opened];
		c->first[one] = HOLD_NONE - 1 - g->place[node];
	} while (one != node);
}

static void leave(const struct hold_graph *g, struct circles *c, uint32_t *depth)
{
	const uint32_t node = c->stack[--*depth];
	c->done[c->count++] = node;
	if (c->first[node] == g->place[node])
		close_circle(g, c, node);
	if (*depth && c->first[node] < c->first[c->stack[*depth - 1]])
		c->first[c->stack[*depth - 1]] = c->first[node];
}

static void find_circles(struct hold_graph *g, struct circles *c)
{
	uint32_t to, edge;
	for (uint32_t i = 0; i < g->items; i++) {
		uint32_t depth = 0;
		if (g->place[i] == HOLD_NONE && hold_item(g, i)->kind == HOLD_OBJECT)
			enter(g, c, &depth, i);
		while (depth) {
			const uint32_t node = c->stack[depth - 1];
			if (!hold_next(g, node, c->at[node]++, &to, &edge))
				leave(g, c, &depth);
			else if (to != HOLD_NONE && g->place[to] == HOLD_NONE)
				enter(g, c, &depth, to);
			else if (to != HOLD_NONE && g->place[to] && c->first[to] <= g->place[to] &&
				 g->place[to] < c->first[node])
				c->first[node] = g->place[to];
		}
	}
	for (uint32_t i = 0; i < c->count; i++)
		g->place[c->done[i]] = HOLD_NONE;
}
/* A reference of C++ is none to the collector. So what such a one leads back to in a circle stays for ever. */
static void keep_by_words(struct hold_graph *g, const struct circles *c, uint32_t *stack)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const uint32_t node = c->done[i];
		const struct hold_item *item = hold_item(g, node), *to;
		const size_t first = item ? item->first + item->edges : 0;
		for (size_t e = first; item && e < first + item->words; e++) {
			to = g->target[e] == HOLD_NONE ? NULL : hold_item(g, g->target[e]);
			if (!to || to->kind != HOLD_OBJECT || g->place[g->target[e]] != HOLD_NONE ||
			    c->first[g->target[e]] != c->first[node])
				continue;
			g->roots[g->root_count++] = g->target[e];
			spread(g, stack, g->target[e]);
		}
	}
}

/* Of what waits for the collector those from which all else of it can be reached: who is done last comes first. */
static void find_garbage(struct hold_graph *g, const struct circles *c, uint32_t *stack)
{
	for (uint32_t i = 0; i < g->items; i++)
		if (g->place[i] == HOLD_NONE)
			let_go(g, i);
	for (uint32_t i = c->count; i-- > 0;) {
		uint32_t node = c->done[i];
		if (g->place[node] == HOLD_NONE) {
			g->garbage[g->garbage_count++] = node;
			spread(g, stack, node);
		}
	}
}

static void find_roots(struct hold_graph *g, uint32_t *stack)
{
	uint32_t *lent[] = { g->order, g->parent, g->parent_edge, g->dominator, g->place };
	struct circles c = { stack, lent[0], lent[1], lent[2], lent[3], .time = 1 };
	for (uint32_t i = 0; i < g->items; i++)
		if (is_root(g, i))
			g->roots[g->root_count++] = i;
	for (uint32_t i = 0; i < g->root_count; i++)
		if (g->place[g->roots[i]] == HOLD_NONE)
			spread(g, stack, g->roots[i]);
	find_circles(g, &c);
	keep_by_words(g, &c, stack);
	find_garbage(g, &c, stack);
	for (size_t i = 0; i < sizeof(lent) / sizeof(*lent); i++)
		memset(lent[i], 0xff, (g->count + 2ul) * sizeof(*lent[i]));
}

/* ---- shortest ways ---- */

/* Breadth first; what C++ refers to, and values of a running function that have no name, only when all else has been
 * found. */
struct ways {
	struct hold_graph *g;
	uint32_t *queue, head, tail;
	uint32_t late; /* nodes before are through with that, too */
};

static void put(struct ways *w, uint32_t node, uint32_t parent, uint32_t edge)
{
	if (w->g->parent[node] != HOLD_NONE)
		return;
	w->g->parent[node] = parent;
	w->g->parent_edge[node] = edge;
	w->queue[w->tail++] = node;
}

/* A function's globals are its module's: no way to what is in them. */
static bool is_by_way(const struct hold_graph *g, uint32_t edge)
{
	return edge != UINT32_MAX && !strcmp(g->snapshot->texts[g->snapshot->edges[edge].name], "globals");
}

/* `late`: what was left out before. */
static void expand(struct ways *w, uint32_t node, bool late)
{
	const struct hold_item *item = hold_item(w->g, node);
	uint32_t to, edge;
	for (uint32_t k = 0; hold_next(w->g, node, k, &to, &edge); k++) {
		if (to == HOLD_NONE || is_by_way(w->g, edge))
			continue;
		bool waits = item && (item->kind == HOLD_BLOCK || (item->kind == HOLD_FRAME && k >= item->edges) ||
				      (hold_item(w->g, to) && hold_item(w->g, to)->kind == HOLD_BLOCK));
		if (waits == late)
			put(w, to, node, edge);
	}
}

static void go_on(struct ways *w)
{
	while (w->head < w->tail || w->late < w->tail) {
		if (w->head < w->tail)
			expand(w, w->queue[w->head++], false);
		else
			expand(w, w->queue[w->late++], true);
	}
}

/* A function that runs, of a library: the author of the program knows the way from his own. What `python -c` runs is
 * his, too. */
static bool is_library_frame(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *item = hold_item(g, node);
	const char *file = g->snapshot->texts[item->label];
	return item->kind == HOLD_FRAME && python_is_library(file) && strcmp(file, "<string>") != 0;
}

static void put_scopes(struct ways *w, bool of_libraries)
{
	struct hold_graph *g = w->g;
	for (uint32_t i = 0; i < g->items; i++)
		if (g->place[i] != HOLD_NONE && (hold_item(g, i)->kind == HOLD_FRAME || g->module[i] != HOLD_NONE) &&
		    g->dominator[i] != HOLD_CYCLES(g) && is_library_frame(g, i) == of_libraries)
			put(w, i, HOLD_ROOT(g), UINT32_MAX);
	go_on(w);
}

/* First from the program's running functions and modules' names, then from what runs of libraries, from all else that
 * lives by itself, last from cycles. */
static void find_ways(struct hold_graph *g, uint32_t *queue)
{
	struct ways w = { .g = g, .queue = queue };
	g->parent[HOLD_ROOT(g)] = HOLD_ROOT(g);
	g->parent[HOLD_CYCLES(g)] = HOLD_ROOT(g);
	put_scopes(&w, false);
	put_scopes(&w, true);
	for (uint32_t i = 0; i < g->root_count; i++)
		put(&w, g->roots[i], HOLD_ROOT(g), UINT32_MAX);
	go_on(&w);
	for (uint32_t i = 0; i < g->garbage_count; i++)
		put(&w, g->garbage[i], HOLD_CYCLES(g), UINT32_MAX);
	go_on(&w);
}

/* ---- all of it ---- */

static uint32_t *numbers(size_t n)
{
	uint32_t *p = malloc(n * sizeof(*p) + 1);
	if (p)
		memset(p, 0xff, n * sizeof(*p));
	return p;
}

static int make_room(struct hold_graph *g, size_t live)
{
	const struct hold_snapshot *s = g->snapshot;
	size_t most = s->count + live + 2; /* nodes */
	g->blocks = vec_calloc(live + 1, sizeof(*g->blocks));
	g->target = numbers(s->edge_count);
	g->own = numbers(s->count);
	g->module = numbers(s->count);
	g->type_node = numbers(s->type_count);
	g->unexplained = vec_calloc(s->count + 1, sizeof(*g->unexplained));
	g->roots = numbers(s->count);
	g->garbage = numbers(s->count);
	g->dominator = numbers(most);
	g->place = numbers(most);
	g->order = numbers(most);
	g->parent = numbers(most);
	g->parent_edge = numbers(most);
	return g->blocks && g->target && g->own && g->module && g->type_node && g->unexplained && g->roots &&
			       g->garbage && g->dominator && g->place && g->order && g->parent && g->parent_edge
		       ? 0
		       : error_memory();
}

static void connect(struct making *k)
{
	struct hold_graph *g = k->g;
	const struct hold_snapshot *s = g->snapshot;
	for (uint32_t i = 0; i < g->items; i++)
		if (s->items[i].kind == HOLD_OBJECT)
			g->unexplained[i] = s->items[i].references ? s->items[i].references : UINT64_MAX;
	for (size_t t = 0; t < s->type_count; t++)
		g->type_node[t] = node_at(&k->addresses, s->types[t].at);
	drop_frame_objects(k);
	resolve_edges(k);
	resolve_all_words(k);
	find_own(k);
	g->count = g->items + g->block_count;
	find_modules(g);
}

/* The list goes to the graph. */
static void keep_loose(struct making *k)
{
	struct live *l = &k->live;
	k->g->loose = l->list;
	for (size_t i = 0; i < l->count; i++)
		if (!k->number[i])
			l->list[k->g->loose_count++] = l->list[i];
	l->list = NULL;
}

/* Behind the references: what lives, dominators, ways. */
static int solve(struct hold_graph *g)
{
	uint32_t *scratch = numbers(g->count + 2ul);
	if (!scratch)
		return error_memory();
	find_roots(g, scratch);
	int e = hold_dominators(g);
	if (!e)
		find_ways(g, scratch);
	free(scratch);
	return e;
}

int hold_graph_of(struct hold_graph **out, const struct hold_snapshot *s, const uint32_t *target)
{
	struct hold_graph *g = *out = calloc(1, sizeof(*g));
	if (!g)
		return error_memory();
	g->snapshot = s;
	g->items = g->count = (uint32_t)s->count;
	int e = make_room(g, 0);
	if (e)
		return e;
	if (s->edge_count)
		memcpy(g->target, target, s->edge_count * sizeof(*target));
	return solve(g);
}

static int make(struct making *k, const struct model *m, unsigned process, bool whole)
{
	struct hold_graph *g = k->g;
	int e = list_live(&k->live, m, process);
	if (!e && (g->snapshot->count + k->live.count >= UINT32_MAX / 2 || g->snapshot->edge_count >= UINT32_MAX / 2))
		e = error_set(MT_ELARGE, NULL, ERROR_NO_OFFSET, "a snapshot of so many objects");
	e = e ? e : make_room(g, k->live.count);
	if (!e)
		drop_no_blocks(&k->live, g->snapshot, whole);
	e = e ? e : find_large(k);
	e = e ? e : index_items(&k->addresses, g->snapshot);
	k->number = e ? NULL : vec_calloc(k->live.count + 1, sizeof(*k->number));
	k->done = e ? NULL : vec_calloc(g->items + 1ul, sizeof(*k->done));
	k->told_by = e ? NULL : numbers(g->items);
	if (!e && (!k->number || !k->done || !k->told_by))
		e = error_memory();
	if (e)
		return e;
	connect(k);
	keep_loose(k);
	return solve(g);
}

int hold_graph_make(struct hold_graph **out, const struct hold_snapshot *s, const struct model *m, unsigned process,
		    bool whole)
{
	struct hold_graph *g = *out = calloc(1, sizeof(*g));
	if (!g)
		return error_memory();
	g->snapshot = s;
	g->items = (uint32_t)s->count;
	struct making k = { .g = g, .live.sums = g->live };
	int e = make(&k, m, process, whole);
	free(k.addresses.slots);
	free(k.live.list);
	free(k.large);
	free(k.number);
	free(k.done);
	free(k.told_by);
	return e;
}

void hold_graph_free(struct hold_graph *g)
{
	if (!g)
		return;
	free(g->blocks);
	free(g->loose);
	free(g->target);
	free(g->own);
	free(g->type_node);
	free(g->module);
	free(g->unexplained);
	free(g->roots);
	free(g->garbage);
	free(g->dominator);
	free(g->place);
	free(g->order);
	free(g->from_first);
	free(g->from);
	free(g->parent);
	free(g->parent_edge);
	free(g);
}
