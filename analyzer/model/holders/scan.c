#include "analyzer/model/holders/scan.h"

#include "analyzer/model/holders/hold_parts.h"
#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <string.h>

#define GAP  (64ull << 20) /* blocks further apart are indexed apart */
#define PAGE 12
#define TLS  (64ull << 10) /* so near to a thread's own data there are its variables */

/* What lives by itself and refers to blocks. */
struct root {
	enum scan_what what;
	char *name;
	const char *at;
	uint32_t thread;
	uint64_t address; /* GLOBAL, before it has a name: of the word; MAPPING: where it begins */
};

/* A word that leads from a root into a block. */
struct slot {
	uint32_t root, block;
	bool at_end; /* it points to where the head of malloc's next chunk begins */
};

/* Where blocks lie near each other: by page the first block that reaches into it or begins behind it. */
struct extent {
	uint64_t start, end;
	uint32_t *first;
};

struct scanning {
	const struct memory_copy *copy;
	const struct process *process;
	struct stacks *stacks;
	struct hold_block *blocks; /* by address */
	size_t count, room;
	struct model_block *maps;
	size_t map_count, map_room;
	struct extent *extents;
	size_t extent_count, extent_room;
	struct root *roots;
	size_t root_count, root_room;
	struct slot *slots;
	size_t slot_count, slot_room;
	struct hold_snapshot snapshot; /* items: roots, then blocks */
	uint32_t *target;              /* by edge */
	size_t target_count, target_room;
	struct hold_graph *graph;
	uint32_t *row; /* by node */
	struct scan *out;
};

/* ---- blocks ---- */

static int add_block(void *arg, const struct model_block *b)
{
	struct scanning *k = arg;
	int e = vec_reserve_raw(k->blocks, k->room, k->count + 1);
	if (!e)
		k->blocks[k->count++] = (struct hold_block){ b->addr, b->size, b->ns, b->site, b->device, MODEL_HEAP };
	return e;
}

static int add_map(void *arg, const struct model_block *b)
{
	struct scanning *k = arg;
	int e = vec_reserve_raw(k->maps, k->map_room, k->map_count + 1);
	if (!e)
		k->maps[k->map_count++] = *b;
	return e;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t x = ((const struct hold_block *)a)->addr, y = ((const struct hold_block *)b)->addr;
	return x < y ? -1 : x > y;
}

/* One byte at least: malloc(0) has an address, too. */
static uint64_t end_of(const struct hold_block *b)
{
	return b->addr + (b->size ? b->size : 1);
}

static int index_extent(struct scanning *k, size_t from, size_t to)
{
	struct extent x = { .start = k->blocks[from].addr >> PAGE, .end = (end_of(&k->blocks[to - 1]) >> PAGE) + 1 };
	int e = vec_reserve_raw(k->extents, k->extent_room, k->extent_count + 1);
	x.first = e ? NULL : malloc((x.end - x.start) * sizeof(*x.first));
	if (!x.first)
		return error_memory();
	size_t i = from;
	for (uint64_t page = x.start; page < x.end; page++) {
		while (i < to && end_of(&k->blocks[i]) <= page << PAGE)
			i++;
		x.first[page - x.start] = (uint32_t)i;
	}
	k->extents[k->extent_count++] = x;
	return 0;
}

static int list_blocks(struct scanning *k, const struct model *m)
{
	int e = model_each_block(m, k->process->id, MODEL_HEAP, add_block, k);
	e = e ? e : model_each_block(m, k->process->id, MODEL_MAP, add_map, k);
	if (!e && k->count >= UINT32_MAX / 4)
		return error_set(MT_ELARGE, "--scan", ERROR_NO_OFFSET, "a graph of so many blocks");
	if (!e && k->count)
		qsort(k->blocks, k->count, sizeof(*k->blocks), by_address);
	for (size_t i = 0, j; !e && i < k->count; i = j) {
		for (j = i + 1; j < k->count && k->blocks[j].addr - end_of(&k->blocks[j - 1]) < GAP;)
			j++;
		e = index_extent(k, i, j);
	}
	return e;
}

/* The block that an address is in, or HOLD_NONE. */
static uint32_t block_at(const struct scanning *k, uint64_t at)
{
	const uint64_t page = at >> PAGE;
	const struct extent *x = k->extents, *end = x + k->extent_count;
	while (x < end && page >= x->end)
		x++;
	if (x == end || page < x->start)
		return HOLD_NONE;
	for (uint32_t i = x->first[page - x->start]; i < k->count && k->blocks[i].addr <= at; i++)
		if (at < end_of(&k->blocks[i]))
			return i;
	return HOLD_NONE;
}

/* ---- roots ---- */

static int add_root(struct scanning *k, const struct root *r)
{
	int e = vec_reserve(k->roots, k->root_room, k->root_count + 1);
	if (!e)
		k->roots[k->root_count++] = *r;
	return e;
}

static const char *thread_name(const struct scanning *k, uint32_t id)
{
	for (size_t i = 0; i < k->copy->thread_count; i++)
		if (k->copy->threads[i].id == id)
			return k->copy->threads[i].name;
	return "";
}

static const struct model_block *map_at(const struct scanning *k, uint64_t at)
{
	for (size_t i = 0; i < k->map_count; i++)
		if (at - k->maps[i].addr < k->maps[i].size)
			return &k->maps[i];
	return NULL;
}

/* What a word at this address belongs to, not yet by its name. */
static struct root root_of(const struct scanning *k, const struct copy_range *r, uint64_t at)
{
	struct root root = { .thread = r->thread };
	if (r->kind == COPY_WORDS) {
		root.what = r->thread ? SCAN_REGISTER : SCAN_KERNEL;
	} else if (r->kind == COPY_STACK) {
		root.what = SCAN_STACK;
	} else if (r->kind == COPY_MALLOC) {
		root.what = SCAN_UNKNOWN;
	} else if (r->kind == COPY_GLOBALS) {
		root.what = SCAN_GLOBAL;
		root.address = at;
	} else {
		for (size_t i = 0; i < k->copy->thread_count; i++)
			if (at - (k->copy->threads[i].own - TLS) < 2 * TLS) {
				root.what = SCAN_THREAD;
				root.thread = k->copy->threads[i].id;
				return root;
			}
		const struct model_block *map = map_at(k, at);
		root.what = SCAN_MAPPING;
		root.address = map ? map->addr : r->start;
	}
	return root;
}

static bool is_same_root(const struct root *a, const struct root *b)
{
	return a->what == b->what && a->thread == b->thread && a->address == b->address;
}

static int add_slot(struct scanning *k, const struct copy_range *r, uint64_t at, uint64_t to, uint32_t block)
{
	const struct root root = root_of(k, r, at);
	int e = k->root_count && is_same_root(&root, &k->roots[k->root_count - 1]) ? 0 : add_root(k, &root);
	e = e ? e : vec_reserve_raw(k->slots, k->slot_room, k->slot_count + 1);
	if (!e)
		k->slots[k->slot_count++] = (struct slot){ (uint32_t)k->root_count - 1, block,
							   !(to % 16) && to + 16 > end_of(&k->blocks[block]) };
	return e;
}

/* All words that are in no block. */
static int scan_range(struct scanning *k, const struct copy_range *r)
{
	const uint64_t *words = memory_copy_words(k->copy, r);
	const bool inside = r->kind != COPY_WORDS;
	size_t next = SEARCH_FIRST(i, k->count, end_of(&k->blocks[i]) > r->start);
	int e = 0;
	for (uint64_t at = r->start; !e && at + 8 <= r->end; at += 8) {
		while (inside && next < k->count && end_of(&k->blocks[next]) <= at)
			next++;
		if (inside && next < k->count && at >= k->blocks[next].addr) {
			at = ((end_of(&k->blocks[next]) + 7) & ~7ull) - 8;
			continue;
		}
		const uint64_t to = words[(at - r->start) / 8];
		const uint32_t block = block_at(k, to);
		if (block != HOLD_NONE)
			e = add_slot(k, r, at, to, block);
	}
	return e;
}

static int scan_roots(struct scanning *k, bool whole)
{
	int e = 0;
	for (size_t i = 0; !e && i < k->copy->count; i++)
		if (!whole || k->copy->ranges[i].kind != COPY_MALLOC)
			e = scan_range(k, &k->copy->ranges[i]);
	return e;
}

/* ---- names of roots ---- */

static char *name_of(const struct scanning *k, struct root *r)
{
	const char *thread = thread_name(k, r->thread);
	const struct frame *f;
	switch (r->what) {
	case SCAN_GLOBAL:
		f = stacks_data(k->stacks, k->process, r->address);
		r->at = f ? f->library : NULL;
		return f && f->name ? strdup(f->name) : strdup("(a variable without a symbol)");
	case SCAN_STACK:
		return output_format("stack of thread %s (%u)", thread, r->thread);
	case SCAN_THREAD:
		return output_format("thread-local data of thread %s (%u)", thread, r->thread);
	case SCAN_REGISTER:
		return output_format("registers of thread %s (%u)", thread, r->thread);
	case SCAN_MAPPING:
		return map_at(k, r->address) ? strdup("a mapping") : strdup("memory of libraries");
	case SCAN_KERNEL:
		return strdup("epoll");
	default:
		return strdup("memory that was there before the recording");
	}
}

/* By what they are, then their names, so that the words of one variable are one root. */
static const struct scanning *sorting;

static int by_name(const void *a, const void *b)
{
	const struct root *x = &sorting->roots[*(const uint32_t *)a], *y = &sorting->roots[*(const uint32_t *)b];
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->at != y->at)
		return !x->at ? -1 : !y->at ? 1 : strcmp(x->at, y->at);
	int order = strcmp(x->name, y->name);
	if (order || x->what == SCAN_GLOBAL)
		return order;
	return x->thread != y->thread    ? (x->thread < y->thread ? -1 : 1)
	       : x->address < y->address ? -1
					 : x->address > y->address;
}

/* malloc keeps lists of free chunks there, whose heads may begin in the last bytes of the block before. */
static bool is_libc(const struct root *r)
{
	const char *slash = r->what == SCAN_GLOBAL && r->at ? strrchr(r->at, '/') : NULL;
	return slash && (!strncmp(slash, "/libc.so", 8) || !strncmp(slash, "/libc-", 6));
}

static int name_roots(struct scanning *k)
{
	const size_t n = k->root_count;
	uint32_t *order = malloc((n + 1) * sizeof(*order)), *number = malloc((n + 1) * sizeof(*number));
	struct root *roots = vec_calloc(n + 1, sizeof(*roots));
	int e = order && number && roots ? 0 : error_memory();
	for (size_t i = 0; !e && i < n; i++) {
		order[i] = (uint32_t)i;
		k->roots[i].name = name_of(k, &k->roots[i]);
		if (!k->roots[i].name)
			e = error_memory();
	}
	size_t count = 0;
	sorting = k;
	if (!e && n)
		qsort(order, n, sizeof(*order), by_name);
	for (size_t i = 0; !e && i < n; i++) {
		if (!i || by_name(&order[i - 1], &order[i]))
			roots[count++] = k->roots[order[i]];
		number[order[i]] = (uint32_t)count - 1;
	}
	size_t slots = 0;
	for (size_t i = 0; !e && i < k->slot_count; i++) {
		struct slot slot = k->slots[i];
		slot.root = number[slot.root];
		if (!slot.at_end || !is_libc(&roots[slot.root]))
			k->slots[slots++] = slot;
	}
	k->slot_count = slots;
	if (e) {
		free(roots);
	} else {
		for (size_t i = 0; i < n; i++)
			if (k->roots[order[i]].name != roots[number[order[i]]].name)
				free(k->roots[order[i]].name);
		free(k->roots);
		k->roots = roots;
		k->root_count = count;
	}
	free(order);
	free(number);
	return e;
}

/* ---- the graph ---- */

static int by_root(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;
	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

static int add_edge(struct scanning *k, struct hold_item *from, uint32_t block)
{
	int e = vec_reserve_raw(k->target, k->target_room, k->target_count + 1);
	if (e)
		return e;
	if (!from->edges)
		from->first = k->target_count;
	k->target[k->target_count++] = (uint32_t)k->root_count + block;
	from->edges++;
	return 0;
}

static int add_references(struct scanning *k, uint32_t block)
{
	struct hold_item *item = &k->snapshot.items[k->root_count + block];
	const struct hold_block *b = &k->blocks[block];
	uint64_t at = (b->addr + 7) & ~7ull;
	uint32_t last = block;
	size_t words;
	int e = 0;
	while (!e && at + 8 <= b->addr + b->size) {
		const uint64_t *data = memory_copy_at(k->copy, at, &words);
		if (!data)
			break;
		for (size_t i = 0; !e && i < words && at + 8 <= b->addr + b->size; i++, at += 8) {
			const uint32_t to = block_at(k, data[i]);
			if (to != HOLD_NONE && to != last)
				e = add_edge(k, item, last = to);
		}
	}
	return e;
}

static int make_graph(struct scanning *k)
{
	struct hold_snapshot *s = &k->snapshot;
	static const char *nothing = "";
	int e = 0;
	s->count = k->root_count + k->count;
	s->items = vec_calloc(s->count + 1, sizeof(*s->items));
	if (!s->items)
		return error_memory();
	if (k->slot_count)
		qsort(k->slots, k->slot_count, sizeof(*k->slots), by_root);
	for (size_t i = 0; i < k->root_count; i++)
		s->items[i].kind = HOLD_FRAME;
	for (size_t i = 0; !e && i < k->slot_count; i++)
		if (!i || by_root(&k->slots[i - 1], &k->slots[i]))
			e = add_edge(k, &s->items[k->slots[i].root], k->slots[i].block);
	for (uint32_t i = 0; !e && i < k->count; i++)
		e = add_references(k, i);
	s->edge_count = k->target_count;
	s->edges = e ? NULL : vec_calloc(s->edge_count + 1, sizeof(*s->edges));
	s->texts = &nothing;
	s->type_count = 1; /* of all blocks, and no node */
	return e ? e : s->edges ? hold_graph_of(&k->graph, s, k->target) : error_memory();
}

/* ---- rows ---- */

/* A block that is dominated by no other block. */
struct top {
	uint32_t node, root, site; /* root: the one that leads to it, UINT32_MAX = none */
	bool shared;
};

static const struct hold_block *block_of(const struct scanning *k, uint32_t node)
{
	return node >= k->root_count && node < k->snapshot.count ? &k->blocks[node - k->root_count] : NULL;
}

/* The root at the beginning of the shortest way. */
static uint32_t start_of(const struct scanning *k, uint32_t node)
{
	while (node < k->snapshot.count && node >= k->root_count)
		node = k->graph->parent[node];
	return node < k->root_count ? node : UINT32_MAX;
}

static int by_owner(const void *a, const void *b)
{
	const struct top *x = a, *y = b;
	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	if (x->shared != y->shared)
		return x->shared - y->shared;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Another root that leads to a block by a way of its own. */
static uint32_t other_root(const struct scanning *k, const struct top *t)
{
	const struct hold_graph *g = k->graph;
	for (uint32_t i = g->from_first[t->node]; i < g->from_first[t->node + 1]; i++) {
		const uint32_t root = start_of(k, g->from[i]);
		if (root != t->root && root != UINT32_MAX)
			return root;
	}
	return UINT32_MAX;
}

static int add_row(struct scanning *k, const struct top *t, size_t count)
{
	struct scan *s = k->out;
	int e = vec_reserve(s->rows, s->room, s->count + 1);
	if (e)
		return e;
	struct scan_row *row = &s->rows[s->count];
	*row = (struct scan_row){ .what = SCAN_LOST, .first = t->site, .firsts = count, .site = UINT32_MAX };
	if (t->root != UINT32_MAX) {
		const uint32_t other = t->shared ? other_root(k, t) : UINT32_MAX;
		row->what = k->roots[t->root].what;
		row->name = strdup(k->roots[t->root].name);
		row->at = k->roots[t->root].at;
		row->also = other == UINT32_MAX ? NULL : strdup(k->roots[other].name);
		if (!row->name)
			e = error_memory();
	}
	for (size_t i = 0; i < count; i++)
		k->row[t[i].node] = (uint32_t)s->count;
	s->count++;
	return e;
}

static int find_tops(struct scanning *k)
{
	const struct hold_graph *g = k->graph;
	struct top *tops = NULL;
	size_t count = 0, room = 0;
	int e = 0;
	for (uint32_t i = 1; !e && i < g->reached; i++) {
		const uint32_t node = g->order[i], by = g->dominator[node];
		if (!block_of(k, node) || block_of(k, by))
			continue;
		const bool lost = by == HOLD_CYCLES(g);
		e = vec_reserve_raw(tops, room, count + 1);
		if (!e)
			tops[count++] = (struct top){ node, lost ? UINT32_MAX : start_of(k, node),
						      block_of(k, node)->site, by == HOLD_ROOT(g) };
	}
	if (!e && count)
		qsort(tops, count, sizeof(*tops), by_owner);
	for (size_t i = 0, j; !e && i < count; i = j) {
		for (j = i + 1; j < count && tops[j].root == tops[i].root && tops[j].shared == tops[i].shared &&
				tops[j].site == tops[i].site;)
			j++;
		e = add_row(k, &tops[i], j - i);
	}
	free(tops);
	return e;
}

static int sum_rows(struct scanning *k)
{
	const struct hold_graph *g = k->graph;
	struct scan *s = k->out;
	size_t count = 0;
	struct hold_part *parts = vec_calloc(k->count + 1, sizeof(*parts));
	if (!parts)
		return error_memory();
	for (uint32_t i = 1; i < g->reached; i++) {
		const uint32_t node = g->order[i];
		const struct hold_block *b = block_of(k, node);
		if (!b)
			continue;
		if (block_of(k, g->dominator[node]))
			k->row[node] = k->row[g->dominator[node]];
		struct scan_row *row = &s->rows[k->row[node]];
		row->bytes += b->size;
		row->blocks++;
		s->lost_bytes += row->what == SCAN_LOST ? b->size : 0;
		s->lost_blocks += row->what == SCAN_LOST;
		parts[count++] = (struct hold_part){ k->row[node], b->site, b->size };
	}
	count = hold_parts_join(parts, count);
	for (size_t i = 0; i < count; i++) {
		struct scan_row *row = &s->rows[parts[i].row];
		if (parts[i].bytes > row->site_bytes) {
			row->site = parts[i].site;
			row->site_bytes = parts[i].bytes;
		}
	}
	free(parts);
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct scan_row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int make_rows(struct scanning *k)
{
	struct scan *s = k->out;
	k->row = vec_calloc(k->snapshot.count + 3, sizeof(*k->row));
	int e = k->row ? find_tops(k) : error_memory();
	e = e ? e : sum_rows(k);
	if (!e && s->count)
		qsort(s->rows, s->count, sizeof(*s->rows), by_bytes);
	for (size_t i = 0; i < k->count; i++)
		s->bytes += k->blocks[i].size;
	s->blocks = k->count;
	return e;
}

int scan_make(struct scan **out, const struct memory_copy *c, const struct model *m, struct stacks *stacks,
	      const struct process *p, bool whole)
{
	struct scanning k = { .copy = c, .process = p, .stacks = stacks };
	k.out = *out = calloc(1, sizeof(**out));
	int e = k.out ? list_blocks(&k, m) : error_memory();
	e = e ? e : scan_roots(&k, whole);
	e = e ? e : name_roots(&k);
	e = e ? e : make_graph(&k);
	e = e ? e : make_rows(&k);
	for (size_t i = 0; i < k.root_count; i++)
		free(k.roots[i].name);
	for (size_t i = 0; i < k.extent_count; i++)
		free(k.extents[i].first);
	hold_graph_free(k.graph);
	free(k.snapshot.items);
	free(k.snapshot.edges);
	free(k.blocks);
	free(k.maps);
	free(k.extents);
	free(k.roots);
	free(k.slots);
	free(k.target);
	free(k.row);
	return e;
}

void scan_free(struct scan *s)
{
	for (size_t i = 0; s && i < s->count; i++) {
		free(s->rows[i].name);
		free(s->rows[i].also);
	}
	if (s)
		free(s->rows);
	free(s);
}
