#include "analyzer/model/holders/holders.h"

#include "analyzer/model/holders/hold_parts.h"
#include "analyzer/util/error.h"
#include "analyzer/util/search.h"
#include "analyzer/util/vec.h"

#include <string.h>

#define BIG        1000 /* an answer is worth a row from this part of all on */
#define NEARLY_ALL 0.95
#define FEW        8   /* an object with so many large parts is split among them */
#define CHAIN      4   /* more of one type one behind the other are a list */
#define UNNAMED    4   /* so many objects without a name are passed on the way to one that has one */
#define AROUND     256 /* objects around one that are looked at for another way to it */
#define NO_ROW     UINT32_MAX

struct finding {
	const struct hold_graph *g;
	const struct holders_query *q;
	struct holders *h;
	size_t room;
	uint64_t *held;   /* by node: what would be gone with it */
	uint32_t *row;    /* by node */
	uint32_t *answer; /* by node that was followed: the one that has its row, it or one below; else HOLD_NONE */
	uint32_t *top;    /* by node: see find_tops() */
	bool *split;      /* by node: it is no answer */
	uint32_t *big;    /* nodes that hold a large part, by dominator, the largest first */
	size_t big_count, big_room;
	struct starts {
		uint32_t *list;
		size_t count, room;
	} starts;
};

/* ---- weights ---- */

static uint64_t weight_of(const struct finding *f, uint32_t node)
{
	const struct hold_block *b = hold_block(f->g, node);
	const struct hold_item *i = hold_item(f->g, node);
	if (f->q->kind == HOLDERS_SMALL)
		return i && i->kind == HOLD_OBJECT && f->g->own[node] == HOLD_NONE ? i->bytes + i->atom_bytes : 0;
	if (!b || b->kind != f->q->kind || (f->q->device != MODEL_NO_DEVICE && b->device != f->q->device))
		return 0;
	return !f->q->wants || f->q->wants(f->q->arg, b) ? b->size : 0;
}

static void weigh(struct finding *f)
{
	const struct hold_graph *g = f->g;
	for (uint32_t i = g->reached; i-- > 1;) {
		uint32_t node = g->order[i];
		f->held[node] += weight_of(f, node);
		f->held[g->dominator[node]] += f->held[node];
	}
	f->h->held = f->held[HOLD_ROOT(g)];
	f->h->cycles = f->held[HOLD_CYCLES(g)];
}

static bool is_big(const struct finding *f, uint32_t node)
{
	return f->held[node] && f->held[node] >= f->h->held / BIG;
}

static const struct finding *sorting;

static int by_dominator(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t dx = sorting->g->dominator[x], dy = sorting->g->dominator[y];
	if (dx != dy)
		return dx < dy ? -1 : 1;
	if (sorting->held[x] != sorting->held[y])
		return sorting->held[x] > sorting->held[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int list_big(struct finding *f)
{
	int e = 0;
	for (uint32_t i = 1; !e && i < f->g->reached; i++)
		if (is_big(f, f->g->order[i])) {
			e = vec_reserve_raw(f->big, f->big_room, f->big_count + 1);
			if (!e)
				f->big[f->big_count++] = f->g->order[i];
		}
	sorting = f;
	if (!e && f->big_count)
		qsort(f->big, f->big_count, sizeof(*f->big), by_dominator);
	return e;
}

/* The big ones that it dominates immediately. */
static const uint32_t *children(const struct finding *f, uint32_t node, size_t *count)
{
	const size_t low = SEARCH_FIRST(i, f->big_count, f->g->dominator[f->big[i]] >= node);
	for (*count = 0; low + *count < f->big_count && f->g->dominator[f->big[low + *count]] == node;)
		++*count;
	return f->big + low;
}

/* ---- down the tree ---- */

static int add_start(struct finding *f, uint32_t node)
{
	int e = vec_reserve_raw(f->starts.list, f->starts.room, f->starts.count + 1);
	if (!e)
		f->starts.list[f->starts.count++] = node;
	return e;
}

static struct holder *add_row(struct finding *f, enum holder_what what, uint32_t node)
{
	if (vec_reserve(f->h->list, f->room, f->h->count + 1))
		return NULL;
	struct holder *row = &f->h->list[f->h->count++];
	*row = (struct holder){ .what = what, .node = node, .site = UINT32_MAX, .items = UINT64_MAX };
	return row;
}

/* Of a list that is linked through objects of one type the first one holds the others. */
struct chain {
	const char *type;
	uint32_t first;
	unsigned length, apart;
};

/* Tracebacks and frames are always linked, and what each has is of interest. */
static bool is_linkage(const char *type)
{
	return !strcmp(type, "traceback") || !strcmp(type, "frame");
}

static bool is_chain(const struct hold_graph *g, struct chain *c, uint32_t node)
{
	const char *type = hold_type(g, node);
	if (is_linkage(type))
		return false;
	if (*type && c->type && !strcmp(type, c->type)) {
		c->length++;
		c->apart = 0;
	} else if ((!c->type || ++c->apart > 1) && *type && strcmp(type, "dict") != 0) {
		*c = (struct chain){ type, node, 1, 0 };
	}
	return c->length > CHAIN;
}

/* The innermost that still holds nearly all of what `start` does; or the first of a list, which sets *chained. */
static uint32_t descend(const struct finding *f, uint32_t start, bool *chained)
{
	struct chain chain = { .first = start };
	for (uint32_t node = start;;) {
		size_t n;
		const uint32_t *next = children(f, node, &n);
		*chained = is_chain(f->g, &chain, node);
		if (*chained)
			return chain.first;
		if (!n || (double)f->held[next[0]] < NEARLY_ALL * (double)f->held[start] ||
		    (hold_type(f->g, node)[0] && !hold_type(f->g, *next)[0]))
			return node;
		node = next[0];
	}
}

/* Objects are split where some few of what they refer to hold most. */
static bool is_split(const struct finding *f, uint32_t node)
{
	size_t n;
	const uint32_t *next = children(f, node, &n);
	uint64_t sum = 0;
	if (hold_is_namespace(f->g, node))
		return true;
	if (n && !strcmp(hold_type(f->g, next[0]), "module"))
		return true; /* sys.modules */
	if (hold_is_sequence(f->g, node) || !n || n > FEW)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *type = hold_type(f->g, next[i]);
		if (!*type || (!is_linkage(type) && !strcmp(hold_type(f->g, node), type)))
			return false;
		sum += f->held[next[i]];
	}
	return (double)sum >= 0.8 * (double)f->held[node];
}

/* What C++ has of an object is the object's; an own dict of attributes, its instance's. */
static uint32_t object_of(const struct hold_graph *g, uint32_t node)
{
	uint32_t n = node;
	while (n < g->count && !hold_type(g, n)[0] && !(hold_item(g, n) && hold_item(g, n)->kind == HOLD_FRAME))
		n = g->dominator[n];
	return n < g->count && !hold_is_namespace(g, n) ? n : node;
}

static uint64_t items_of(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *item = hold_item(g, node);
	return item ? item->items : UINT64_MAX;
}

/* What an object has inside is the object's. */
static uint32_t outside(const struct hold_graph *g, uint32_t node)
{
	while (node < g->count && hold_is_inside(g, node) && g->parent[node] == g->dominator[node])
		node = g->parent[node];
	return node;
}

/* Would it be gone with `by`, too? */
static bool is_part_of(const struct hold_graph *g, uint32_t node, uint32_t by)
{
	while (node < g->count && g->place[node] > g->place[by])
		node = g->dominator[node];
	return node == by;
}

static int follow(struct finding *f, uint32_t start)
{
	const struct hold_graph *g = f->g;
	bool chained = false;
	uint32_t node = start >= g->count ? start : descend(f, start, &chained);
	size_t n;
	const uint32_t *next = children(f, node, &n);
	int e = 0;
	if (!chained && is_split(f, node)) {
		uint64_t rest = f->held[node];
		f->split[node] = true;
		for (size_t i = 0; !e && i < n; i++) {
			rest -= f->held[next[i]];
			e = add_start(f, next[i]);
		}
		if (node >= g->count || rest < f->h->held / BIG || !rest)
			return e;
	}
	uint32_t inner = node >= g->count ? node : object_of(g, node);
	node = outside(g, inner);
	f->answer[is_part_of(g, node, start) ? start : node] = node;
	if (!e && f->row[node] == NO_ROW) {
		f->row[node] = (uint32_t)f->h->count;
		struct holder *row = add_row(f, HOLDER_OBJECT, node);
		if (!row)
			return error_memory();
		if (inner == node || items_of(g, inner) > FEW)
			row->items = items_of(g, inner);
	}
	return e;
}

/* ---- what is shared, and what many small ones hold ---- */

struct group {
	uint64_t bytes;
	uint32_t count, example, row;
};

/* The outermost that still is below a namespace or what else was split. */
static int find_tops(struct finding *f)
{
	const struct hold_graph *g = f->g;
	f->top = vec_calloc(g->count + 2ul, sizeof(*f->top));
	for (uint32_t i = 1; f->top && i < g->reached; i++) {
		uint32_t node = g->order[i], by = g->dominator[node];
		f->top[node] = by >= g->count || f->split[by] || hold_is_namespace(g, by) ? node : f->top[by];
	}
	return f->top ? 0 : error_memory();
}

/* Would it be gone with `by`, too? */
static bool is_below(const struct finding *f, uint32_t node, uint32_t by)
{
	while (node < f->g->count && (node = f->top[node]) != by)
		node = f->g->dominator[node];
	return node == by;
}

/* A module or a running function, not the attributes of an object. */
static bool has_names(const struct hold_graph *g, uint32_t node)
{
	return hold_is_namespace(g, node) && (strcmp(hold_type(g, node), "dict") || g->module[node] != HOLD_NONE);
}

/* Is it a variable of a module or a function, other than what `of` holds? Inner functions have theirs in cells. */
static bool is_named(const struct finding *f, uint32_t node, uint32_t of)
{
	const struct hold_graph *g = f->g;
	for (uint32_t k = g->from_first[node]; k < g->from_first[node + 1]; k++)
		if (g->from[k] < g->count && (has_names(g, g->from[k]) || !strcmp(hold_type(g, g->from[k]), "cell")) &&
		    !is_below(f, g->from[k], of))
			return true;
	return false;
}

/* The one that leads to `node`, which several hold, beside what is below it and the part `of`; else HOLD_NONE. */
static uint32_t only_sharer(const struct finding *f, uint32_t node, uint32_t of)
{
	const struct hold_graph *g = f->g;
	uint32_t only = HOLD_NONE;
	for (uint32_t k = g->from_first[node]; k < g->from_first[node + 1]; k++) {
		uint32_t by = g->from[k];
		if (by >= g->count || by == g->dominator[node] || is_below(f, by, of) || is_below(f, by, node))
			continue;
		if (only != HOLD_NONE && f->top[by] != only)
			return HOLD_NONE;
		only = f->top[by];
	}
	return only;
}

/* Of what leads to the part `of` of something that was split the outermost: `model` rather than one of its layers. A
 * variable of a function or a module is outermost anyway. What has no such name may have one holder beside the part
 * itself: a future of asyncio the event that is waited for, and the task that waits. */
static uint32_t outermost(const struct finding *f, uint32_t node, uint32_t of)
{
	const struct hold_graph *g = f->g;
	const uint32_t split = g->dominator[of];
	for (int depth = 0;; depth++) {
		uint32_t by, next;
		for (node = f->top[node], by = g->dominator[node]; by != split && by < g->count && !has_names(g, by);
		     by = g->dominator[node])
			node = f->top[by];
		next = depth == UNNAMED || is_named(f, node, of) ? HOLD_NONE : only_sharer(f, node, of);
		if (next == HOLD_NONE)
			return node;
		node = next;
	}
}

/* Who leads to a part of what was split, beside the namespace itself. */
static bool next_sharer(const struct finding *f, uint32_t node, uint32_t *k, uint32_t *by)
{
	const struct hold_graph *g = f->g;
	for (; *k < g->from_first[node + 1]; ++*k) {
		*by = g->from[*k];
		if (*by >= g->count || *by == g->dominator[node] || is_below(f, *by, node))
			continue;
		*by = outermost(f, *by, node);
		++*k;
		return true;
	}
	return false;
}

static bool is_small_part(const struct finding *f, uint32_t node)
{
	return f->held[node] && !is_big(f, node) && f->row[node] == NO_ROW && f->g->dominator[node] != HOLD_NONE &&
	       f->split[f->g->dominator[node]];
}

/* A large one has a row of its own, or what it holds has, which it may share with others that the same two hold; not
 * what has a name in a module or a function, and is called by that; nor cycles that wait for the collector. */
static bool is_large_part(const struct finding *f, uint32_t node)
{
	const struct hold_graph *g = f->g;
	uint32_t by = node;
	if (f->answer[node] == HOLD_NONE || !f->split[g->dominator[node]] || is_named(f, node, node))
		return false;
	while (by < g->count)
		by = g->dominator[by];
	return by != HOLD_CYCLES(g);
}

/* Parts that the same two lead to. */
struct shared {
	uint32_t node, by[2]; /* by[0]: who has more of such parts; by[1] = HOLD_NONE: nobody else */
};

static int by_sharers(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;
	for (int i = 0; i < 2; i++)
		if (x->by[i] != y->by[i])
			return x->by[i] < y->by[i] ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* The two that have the most of all such parts. */
static void find_sharers(const struct finding *f, const uint64_t *share, struct shared *s)
{
	uint32_t by;
	s->by[0] = s->by[1] = HOLD_NONE;
	for (uint32_t k = f->g->from_first[s->node]; next_sharer(f, s->node, &k, &by);) {
		if (by == s->by[0] || by == s->by[1])
			continue;
		if (s->by[0] == HOLD_NONE || share[by] > share[s->by[0]]) {
			s->by[1] = s->by[0];
			s->by[0] = by;
		} else if (s->by[1] == HOLD_NONE || share[by] > share[s->by[1]]) {
			s->by[1] = by;
		}
	}
}

/* Where the shortest way to it begins: a module's name counts, not the module. */
static uint32_t start_of(const struct hold_graph *g, uint32_t node, uint32_t edge)
{
	uint32_t start = edge;
	for (; node < g->count && g->parent[node] < g->count; node = g->parent[node])
		start = g->parent_edge[node];
	return start;
}

/* Of a part that only leads to what has the row more may lead to that than the two: it stays as it is where both of
 * them begin with one name. */
static bool takes(const struct finding *f, const struct shared *s, bool large)
{
	const struct hold_graph *g = f->g;
	return is_small_part(f, s->node) ||
	       (large && (f->answer[s->node] == s->node || start_of(g, s->by[0], g->parent_edge[s->by[0]]) !=
								   start_of(g, s->by[1], g->parent_edge[s->by[1]])));
}

/* A row for those that have none yet, and for large ones, `name` and `also` being two that lead to them. */
static int add_shared(struct finding *f, const struct shared *s, size_t count, bool large, uint32_t name, uint32_t also)
{
	const uint32_t number = (uint32_t)f->h->count;
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += takes(f, &s[i], large) ? f->held[s[i].node] : 0;
	if (!sum || sum < f->h->held / BIG)
		return 0;
	struct holder *row = add_row(f, HOLDER_SHARED, name);
	if (!row)
		return error_memory();
	row->objects = also == HOLD_NONE ? 0 : also + 1ull;
	for (size_t i = 0; i < count; i++)
		if (takes(f, &s[i], large)) {
			if (f->answer[s[i].node] != HOLD_NONE)
				f->row[f->answer[s[i].node]] = NO_ROW;
			f->row[s[i].node] = number;
		}
	return 0;
}

/* Those that the same two lead to, called by who has less beside them; then what is left of small ones by who leads to
 * most of them. */
static int add_sharers(struct finding *f, const struct shared *s, size_t count)
{
	int e = 0;
	for (size_t i = 0, k; !e && i < count; i = k) {
		for (k = i; k < count && s[k].by[1] == s[i].by[1];)
			k++;
		if (s[i].by[1] != HOLD_NONE)
			e = add_shared(f, &s[i], k - i, k - i > 1, s[i].by[1], s[i].by[0]);
	}
	return e ? e : add_shared(f, s, count, false, s->by[0], s->by[1]);
}

static int find_shared(struct finding *f)
{
	const struct hold_graph *g = f->g;
	uint64_t *share = vec_calloc(g->count + 2ul, sizeof(*share));
	struct shared *all = NULL;
	size_t count = 0, room = 0;
	uint32_t by;
	int e = share ? find_tops(f) : error_memory();
	for (uint32_t i = 1; !e && i < g->reached; i++) {
		uint32_t node = g->order[i], last = HOLD_NONE;
		if (!is_small_part(f, node) && !is_large_part(f, node))
			continue;
		for (uint32_t k = g->from_first[node]; next_sharer(f, node, &k, &by); last = by)
			share[by] += by == last ? 0 : f->held[node];
		e = last == HOLD_NONE ? 0 : vec_reserve_raw(all, room, count + 1);
		if (!e && last != HOLD_NONE)
			all[count++].node = node;
	}
	for (size_t i = 0; !e && i < count; i++)
		find_sharers(f, share, &all[i]);
	if (!e && count)
		qsort(all, count, sizeof(*all), by_sharers);
	for (size_t i = 0, k; !e && i < count; i = k) {
		for (k = i; k < count && all[k].by[0] == all[i].by[0];)
			k++;
		e = add_sharers(f, &all[i], k - i);
	}
	free(share);
	free(all);
	return e;
}

/* Many objects of one type that the interpreter or C holds, one by one. */
static int find_many(struct finding *f)
{
	const struct hold_graph *g = f->g;
	struct group *groups = vec_calloc(2 * g->snapshot->type_count + 1, sizeof(*groups));
	int e = groups ? 0 : error_memory();
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 1; !e && i < g->reached; i++) {
			uint32_t node = g->order[i];
			const struct hold_item *item = hold_item(g, node);
			bool cycle = g->dominator[node] == HOLD_CYCLES(g);
			if (!item || item->kind != HOLD_OBJECT || !is_small_part(f, node) ||
			    (!cycle && (g->dominator[node] != HOLD_ROOT(g) || !g->unexplained[node])))
				continue;
			struct group *x = &groups[2 * item->type + cycle];
			if (!pass) {
				x->bytes += f->held[node];
				x->count++;
				x->example = node;
				x->row = NO_ROW;
				continue;
			}
			if (x->bytes < f->h->held / BIG)
				continue;
			if (x->row == NO_ROW) {
				struct holder *row = add_row(f, cycle ? HOLDER_CYCLE : HOLDER_C, x->example);
				if (!row)
					e = error_memory();
				else
					row->objects = x->count;
				x->row = (uint32_t)f->h->count - 1;
			}
			f->row[node] = x->row;
		}
	free(groups);
	return e;
}

/* ---- rows ---- */

/* Each block belongs to the nearest row above it. */
static int sum_rows(struct finding *f)
{
	const struct hold_graph *g = f->g;
	size_t count = 0;
	struct hold_part *parts = vec_calloc(g->reached + 1ul, sizeof(*parts));
	if (!parts)
		return error_memory();
	for (uint32_t i = 1; i < g->reached; i++) {
		uint32_t node = g->order[i];
		uint64_t bytes = weight_of(f, node);
		if (f->row[node] == NO_ROW)
			f->row[node] = f->row[g->dominator[node]];
		f->h->blocks += bytes != 0;
		if (!bytes || f->row[node] == NO_ROW)
			continue;
		const struct hold_block *b = hold_block(g, node);
		f->h->list[f->row[node]].bytes += bytes;
		f->h->list[f->row[node]].blocks++;
		parts[count++] = (struct hold_part){ f->row[node], b ? b->site : UINT32_MAX, bytes };
	}
	count = hold_parts_join(parts, count);
	for (size_t i = 0; i < count; i++) {
		struct holder *row = &f->h->list[parts[i].row];
		if (parts[i].bytes > row->site_bytes) {
			row->site = parts[i].site;
			row->site_bytes = parts[i].bytes;
		}
	}
	free(parts);
	return 0;
}

static bool is_scope(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *i = hold_item(g, node);
	return node >= g->count || (i && (g->module[node] != HOLD_NONE || i->kind == HOLD_FRAME));
}

/* Where another way begins: where the shortest one does, at another name of the object that that one begins with, or
 * elsewhere. */
enum { FROM_THERE, OTHER_NAME, FROM_ELSEWHERE };

/* How another way comes to `node`: through `through` by the edge, which is not on the shortest way. */
struct other_way {
	uint32_t through, edge, to;
	unsigned more;
	int from;
};

/* A reference from what `node` itself holds is no way to it: from a class's methods to the class. `own`: where the
 * shortest way begins. `on_it`: that leads through `node`. */
static void look_at_references(const struct hold_graph *g, uint32_t node, bool on_it, uint32_t own, int elsewhere,
			       struct other_way *w)
{
	uint32_t to;
	for (uint32_t k = g->from_first[node]; k < g->from_first[node + 1] && w->from < elsewhere; k++) {
		uint32_t p = g->from[k];
		if (p >= g->count || (k > g->from_first[node] && g->from[k - 1] == p) ||
		    (hold_item(g, p)->kind == HOLD_BLOCK && !*hold_type(g, node)) || is_part_of(g, p, node))
			continue;
		for (uint32_t i = 0, x; hold_next(g, p, i, &to, &x); i++) {
			if (to != node || x == UINT32_MAX || (on_it && x == g->parent_edge[node]) || p == node)
				continue;
			const int from = start_of(g, p, x) == own ? FROM_THERE : elsewhere;
			w->more += w->through != HOLD_NONE;
			if (w->through == HOLD_NONE || from > w->from)
				*w = (struct other_way){ p, x, node, w->more, from };
		}
	}
}

/* A reference from elsewhere, to it or to what leads to it; else another name of what the shortest way begins with;
 * else any other one to it. Looks at some few around it. */
static bool find_other_way(const struct hold_graph *g, uint32_t node, struct other_way *w)
{
	uint32_t queue[AROUND] = { node }, count = 1, own = start_of(g, node, g->parent_edge[node]);
	const uint32_t begin = own == UINT32_MAX ? HOLD_NONE : g->target[own];
	int from[AROUND] = { FROM_ELSEWHERE }; /* what a reference to it is */
	bool on_it[AROUND] = { true };
	*w = (struct other_way){ .through = HOLD_NONE };
	look_at_references(g, node, true, own, FROM_ELSEWHERE, w);
	for (uint32_t i = 0; i < count && w->from < FROM_ELSEWHERE; i++)
		for (uint32_t k = g->from_first[queue[i]]; k < g->from_first[queue[i] + 1] && count < AROUND; k++) {
			struct other_way found = { .through = HOLD_NONE };
			uint32_t p = g->from[k], seen = 0;
			while (seen < count && queue[seen] != p)
				seen++;
			if (is_scope(g, p) || seen < count || is_part_of(g, p, node))
				continue;
			queue[count] = p;
			from[count] = p == begin ? OTHER_NAME : from[i];
			on_it[count] = on_it[i] && g->parent[queue[i]] == p;
			look_at_references(g, p, on_it[count], own, from[count], &found);
			count++;
			if (found.from > w->from)
				*w = found;
		}
	return w->through != HOLD_NONE;
}

static int describe(struct finding *f, struct holder *row)
{
	const struct hold_graph *g = f->g;
	struct other_way other;
	/* what holds it all: only a module or a running function, if anything, is on all ways to that */
	uint32_t top = row->node;
	while (row->what == HOLDER_OBJECT && !is_scope(g, g->dominator[top]))
		top = g->dominator[top];
	row->type = hold_type(g, row->node);
	for (uint32_t n = row->node; !*row->type && n < g->count; n = g->parent[n])
		row->type = hold_type(g, n);
	if (row->items == UINT64_MAX)
		row->items = items_of(g, row->node);
	row->path = hold_path(g, row->node, HOLD_NONE, UINT32_MAX);
	if (row->what == HOLDER_SHARED && row->objects)
		row->also = hold_path(g, (uint32_t)row->objects - 1, HOLD_NONE, UINT32_MAX);
	else if (row->what == HOLDER_OBJECT && !hold_is_namespace(g, row->node) && !hold_is_namespace(g, top) &&
		 find_other_way(g, top, &other)) {
		row->also = hold_path(g, other.to, other.through, other.edge);
		row->also_more = other.more;
	}
	if (row->what == HOLDER_SHARED)
		row->objects = 0;
	for (uint32_t n = row->node; row->what == HOLDER_OBJECT && n < g->count; n = g->dominator[n])
		if (g->dominator[n] == HOLD_CYCLES(g))
			row->what = HOLDER_CYCLE;
	return row->path ? 0 : error_memory();
}

static int by_bytes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int find(struct finding *f)
{
	weigh(f);
	int e = list_big(f);
	if (!e)
		e = add_start(f, HOLD_ROOT(f->g));
	while (!e && f->starts.count)
		e = follow(f, f->starts.list[--f->starts.count]);
	f->split[HOLD_CYCLES(f->g)] = true;
	e = e ? e : find_shared(f);
	e = e ? e : find_many(f);
	e = e ? e : sum_rows(f);
	for (size_t i = 0; !e && i < f->h->count; i++)
		e = describe(f, &f->h->list[i]);
	for (uint32_t i = 1; !e && f->q->each && i < f->g->reached; i++) {
		uint32_t node = f->g->order[i];
		if (hold_block(f->g, node) && f->row[node] != NO_ROW && weight_of(f, node))
			f->q->each(f->q->arg, hold_block(f->g, node), &f->h->list[f->row[node]]);
	}
	if (!e && f->h->count)
		qsort(f->h->list, f->h->count, sizeof(*f->h->list), by_bytes);
	while (f->h->count && !f->h->list[f->h->count - 1].bytes) {
		free(f->h->list[f->h->count - 1].path);
		free(f->h->list[--f->h->count].also);
	}
	return e;
}

static uint64_t all_bytes(const struct finding *f)
{
	const struct hold_graph *g = f->g;
	uint64_t sum = f->h->held;
	for (size_t i = 0; i < g->loose_count; i++) {
		const struct hold_block *b = &g->loose[i];
		if (b->kind == f->q->kind && (f->q->device == MODEL_NO_DEVICE || b->device == f->q->device) &&
		    (!f->q->wants || f->q->wants(f->q->arg, b)))
			sum += b->size;
	}
	for (uint32_t node = g->items; node < g->count; node++)
		if (g->place[node] == HOLD_NONE)
			sum += weight_of(f, node);
	return sum;
}

int holders_find(struct holders **out, const struct hold_graph *g, const struct holders_query *q)
{
	uint32_t nodes = g->count + 2;
	struct holders *h = *out = calloc(1, sizeof(*h));
	struct finding f = { .g = g, .q = q, .h = h };
	f.held = vec_calloc(nodes + 1ul, sizeof(*f.held));
	f.row = malloc((nodes + 1ul) * sizeof(*f.row));
	f.answer = malloc((nodes + 1ul) * sizeof(*f.answer));
	f.split = vec_calloc(nodes + 1ul, sizeof(*f.split));
	int e = h && f.held && f.row && f.answer && f.split ? 0 : error_memory();
	if (!e) {
		memset(f.row, 0xff, (nodes + 1ul) * sizeof(*f.row));
		memset(f.answer, 0xff, (nodes + 1ul) * sizeof(*f.answer));
		e = find(&f);
	}
	if (!e)
		h->bytes = all_bytes(&f);
	free(f.held);
	free(f.row);
	free(f.answer);
	free(f.top);
	free(f.split);
	free(f.big);
	free(f.starts.list);
	return e;
}

void holders_free(struct holders *h)
{
	for (size_t i = 0; h && i < h->count; i++) {
		free(h->list[i].path);
		free(h->list[i].also);
	}
	if (h)
		free(h->list);
	free(h);
}
