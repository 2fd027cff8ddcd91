/* The way from a module or a running function to an object, as the program would write it. */
#include "analyzer/model/holders/holders.h"

#include "analyzer/util/error.h"
#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

#include <stdio.h>
#include <string.h>

#define MOST_STEPS 24 /* of a long way the first and the last */

static bool is_type(const struct hold_graph *g, uint32_t node, const char *const *names)
{
	const char *type = hold_type(g, node);
	while (*names && strcmp(*names, type) != 0)
		names++;
	return *names != NULL;
}

bool hold_is_sequence(const struct hold_graph *g, uint32_t node)
{
	static const char *const names[] = { "list", "tuple", "set", "frozenset", "collections.deque", NULL };
	return is_type(g, node, names);
}

static bool is_dict(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *i = hold_item(g, node);
	return i && i->kind == HOLD_OBJECT && g->snapshot->types[i->type].flags >> 29 & 1;
}

static const char *edge_name(const struct hold_graph *g, uint32_t edge)
{
	return edge == UINT32_MAX ? "" : g->snapshot->texts[g->snapshot->edges[edge].name];
}

/* The dict of an instance's or a class's attributes. */
static bool is_attributes(const struct hold_graph *g, uint32_t node)
{
	return !strcmp(hold_type(g, node), "dict") && !strcmp(edge_name(g, g->parent_edge[node]), "__dict__");
}

bool hold_is_namespace(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *i = hold_item(g, node);
	if (!i)
		return node >= g->count;
	return i->kind == HOLD_FRAME || g->module[node] != HOLD_NONE ||
	       (i->kind == HOLD_OBJECT && is_attributes(g, node)) || !strcmp(hold_type(g, node), "module") ||
	       !strcmp(hold_type(g, node), "frame") || !strcmp(hold_type(g, node), "traceback");
}

/* ---- steps ---- */

/* Where it begins: "" for a running function, whose variable comes first and it last. */
static char *start_text(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *i = hold_item(g, node);
	const char *label = i && i->label ? g->snapshot->texts[i->label] : "", *type = hold_type(g, node);
	if (!i || i->kind == HOLD_FRAME)
		return strdup("");
	if (i->kind == HOLD_BLOCK)
		return strdup("memory of C++");
	if (g->module[node] != HOLD_NONE)
		return strdup(g->snapshot->texts[hold_item(g, g->module[node])->label]);
	if (g->snapshot->types[i->type].flags >> 31 & 1)
		return output_format("class %s", label);
	return *label ? output_format("%s %s", type, label) : strdup(type);
}

/* What an object of C has inside, without a name. Tracebacks and frames are known by these. */
static bool is_inside(const struct hold_graph *g, uint32_t by, uint32_t node, uint32_t edge)
{
	static const char *const known[] = { "traceback", "frame", "cell", NULL };
	const struct hold_item *i = hold_item(g, by), *to = hold_item(g, node);
	return i && to && i->kind == HOLD_OBJECT && to->kind == HOLD_OBJECT && !*edge_name(g, edge) &&
	       !is_dict(g, by) && !hold_is_sequence(g, by) && !is_type(g, by, known) && !is_type(g, node, known) &&
	       g->module[by] == HOLD_NONE && strcmp(hold_type(g, by), "function");
}

bool hold_is_inside(const struct hold_graph *g, uint32_t node)
{
	return node < g->count && g->parent[node] < g->count &&
	       is_inside(g, g->parent[node], node, g->parent_edge[node]);
}

/* From `by` to `node`; "" where a reader would see no step. Allocated. */
static char *step_text(const struct hold_graph *g, uint32_t by, uint32_t node, uint32_t edge)
{
	const struct hold_item *i = hold_item(g, by);
	const char *name = edge_name(g, edge), *type = hold_type(g, node);
	if (!i || i->kind == HOLD_BLOCK || !hold_item(g, node) || hold_item(g, node)->kind == HOLD_BLOCK)
		return strdup(i && i->kind == HOLD_BLOCK && *type ? " (C++)" : "");
	if (i->kind == HOLD_FRAME)
		return strdup(*name ? name : type);
	if (!strcmp(hold_type(g, by), "cell") || is_attributes(g, node) || (!*name && !strcmp(type, "cell")))
		return strdup("");
	if (g->module[by] != HOLD_NONE || (is_attributes(g, by) && *name))
		return output_format(".%s", *name ? name : "?");
	if (is_dict(g, by))
		return *name ? output_format("['%s']", name) : strdup("[...]");
	if (!strcmp(hold_type(g, by), "set") || !strcmp(hold_type(g, by), "frozenset"))
		return strdup("{...}");
	if (hold_is_sequence(g, by))
		return strdup("[...]");
	if (!strcmp(hold_type(g, by), "function"))
		return output_format(" %s", *name ? name : type);
	if (is_inside(g, by, node, edge) && (is_dict(g, node) || hold_is_sequence(g, node)))
		return strdup(""); /* its items are the object's */
	return *name ? output_format(".%s", name) : output_format(" -> %s", type);
}

/* ---- the whole ---- */

struct way {
	uint32_t *nodes, *edges; /* from the node outwards; edges[i] leads to nodes[i] */
	size_t count, room, edge_room;
};

static int add(struct way *w, uint32_t node, uint32_t edge)
{
	int e = vec_reserve_raw(w->nodes, w->room, w->count + 1);
	if (!e)
		e = vec_reserve_raw(w->edges, w->edge_room, w->count + 1);
	if (!e) {
		w->nodes[w->count] = node;
		w->edges[w->count++] = edge;
	}
	return e;
}

static int find_way(const struct hold_graph *g, struct way *w, uint32_t node, uint32_t by, uint32_t edge)
{
	int e = 0;
	if (by != HOLD_NONE) {
		e = add(w, node, edge);
		node = by;
	}
	while (!e && node < g->count) {
		uint32_t parent = g->parent[node];
		e = add(w, node, g->parent_edge[node]);
		if (parent == HOLD_NONE)
			break;
		node = parent;
	}
	return e;
}

/* Appends a step; one that is repeated is counted instead. */
struct text {
	char *all, *last;
	unsigned times, steps;
};

static int append(struct text *t, const char *more)
{
	char *both = output_format("%s%s", t->all ? t->all : "", more);
	free(t->all);
	t->all = both;
	return both ? 0 : error_memory();
}

static int settle(struct text *t)
{
	char times[32] = "";
	int e = 0;
	if (t->last && t->times > 1 && *t->last)
		snprintf(times, sizeof(times), " (x%u)", t->times);
	if (t->last && t->steps <= MOST_STEPS)
		e = append(t, t->last);
	if (!e && *times && t->steps <= MOST_STEPS)
		e = append(t, times);
	free(t->last);
	t->last = NULL;
	return e;
}

/* Takes `step`. */
static int take(struct text *t, char *step)
{
	if (!step)
		return error_memory();
	if (!*step || (t->last && !strcmp(t->last, step) && strcmp(step, "[...]") != 0)) {
		t->times += *step != 0;
		free(step);
		return 0;
	}
	int e = settle(t);
	t->last = step;
	t->times = 1;
	if (++t->steps == MOST_STEPS + 1 && !e)
		e = append(t, " ..");
	return e;
}

/* "train (train.py:31)", "train (In [7]:3)". Allocated. */
static char *frame_text(const struct hold_graph *g, const struct hold_item *i)
{
	char cell[PROCESS_CELL_NAME];
	const char *file = g->snapshot->texts[i->label], *slash = strrchr(file, '/'),
		   *name = process_cell(g->snapshot->process, file, cell) ? cell
			   : slash                                        ? slash + 1
									  : file;
	return output_format("%s (%s:%u)", g->snapshot->texts[i->function], name, i->type);
}

static int end_text(const struct hold_graph *g, struct text *t, uint32_t start)
{
	const struct hold_item *i = hold_item(g, start);
	char *end = NULL;
	if (i && i->kind == HOLD_FRAME) {
		char *frame = frame_text(g, i);
		end = frame ? output_format("%s%s", t->all && *t->all ? " of " : "", frame) : NULL;
		free(frame);
	} else if (g->parent[start] == HOLD_ROOT(g) && g->module[start] == HOLD_NONE) {
		end = strdup(" (held by C)");
	}
	int e = end ? append(t, end) : 0;
	free(end);
	return e;
}

/* The part of the way from w->nodes[from] inwards to w->nodes[to]. */
static int walk(const struct hold_graph *g, struct text *t, const struct way *w, size_t from, size_t to)
{
	int e = 0;
	for (size_t i = from; !e && i > to; i--)
		e = take(t, step_text(g, w->nodes[i], w->nodes[i - 1], w->edges[i - 1]));
	return e ? e : settle(t);
}

/* The innermost frame on the way that a traceback keeps; 0 = none. */
static size_t kept_frame(const struct hold_graph *g, const struct way *w)
{
	for (size_t i = 1; i + 1 < w->count; i++)
		if (!strcmp(hold_type(g, w->nodes[i]), "frame") && hold_item(g, w->nodes[i])->label &&
		    !strcmp(hold_type(g, w->nodes[i + 1]), "traceback"))
			return i;
	return 0;
}

static int whole(const struct hold_graph *g, struct text *t, const struct way *w, size_t to)
{
	int e = take(t, start_text(g, w->nodes[w->count - 1]));
	e = e ? e : walk(g, t, w, w->count - 1, to);
	return e ? e : end_text(g, t, w->nodes[w->count - 1]);
}

/* "kept of fail (train.py:12), kept by __main__.error": a variable of a function that is over. */
static int through_traceback(const struct hold_graph *g, struct text *t, const struct way *w, size_t frame)
{
	size_t keeper = frame;
	struct text by = { 0 };
	while (keeper + 1 < w->count && (!strcmp(hold_type(g, w->nodes[keeper]), "traceback") || keeper == frame))
		keeper++;
	int e = walk(g, t, w, frame, 0);
	/* an exception has its traceback inside; a container or a name leads to one */
	bool within = !*edge_name(g, w->edges[keeper - 1]) && !is_dict(g, w->nodes[keeper]) &&
		      !hold_is_sequence(g, w->nodes[keeper]);
	e = e ? e : whole(g, &by, w, within ? keeper : keeper - 1);
	if (!e && t->all && t->all[0] == '.')
		memmove(t->all, t->all + 1, strlen(t->all));
	char *more = e ? NULL
		       : output_format(" of %s, kept by %s", g->snapshot->texts[hold_item(g, w->nodes[frame])->label],
				       by.all ? by.all : "");
	e = e ? e : more ? append(t, more) : error_memory();
	free(more);
	free(by.all);
	return e;
}

char *hold_path(const struct hold_graph *g, uint32_t node, uint32_t by, uint32_t edge)
{
	struct way w = { 0 };
	struct text t = { 0 };
	int e = find_way(g, &w, node, by, edge);
	size_t frame = e ? 0 : kept_frame(g, &w);
	if (!e && w.count)
		e = frame ? through_traceback(g, &t, &w, frame) : whole(g, &t, &w, 0);
	free(w.nodes);
	free(w.edges);
	if (e) {
		free(t.all);
		return NULL;
	}
	return t.all ? t.all : strdup("");
}

/* Steps that a reader would not see are left out; what they lead to is what the step before leads to. */
int hold_steps(const struct hold_graph *g, uint32_t node, int (*f)(void *arg, const char *step, const char *type),
	       void *arg)
{
	struct way w = { 0 };
	int e = find_way(g, &w, node, HOLD_NONE, UINT32_MAX);
	char *step = NULL;
	size_t leads = 0; /* `step` to w.nodes[leads] */
	for (size_t i = w.count; !e && i > 0; i--) {
		const struct hold_item *start = i == w.count ? hold_item(g, w.nodes[i - 1]) : NULL;
		char *next = start && start->kind == HOLD_FRAME ? frame_text(g, start)
			     : i == w.count                     ? start_text(g, w.nodes[i - 1])
					    : step_text(g, w.nodes[i], w.nodes[i - 1], w.edges[i - 1]);
		if (!next)
			e = error_memory();
		if (!e && *next && step)
			e = f(arg, step, hold_type(g, w.nodes[leads]));
		if (next && *next) {
			free(step);
			step = next;
		} else {
			free(next);
		}
		leads = i - 1;
	}
	if (!e && step)
		e = f(arg, step, hold_type(g, node));
	free(step);
	free(w.nodes);
	free(w.edges);
	return e;
}

char *holder_type_text(const struct holder *h)
{
	if (h->what == HOLDER_C || (h->what == HOLDER_CYCLE && h->objects))
		return output_format("(%s %ss)", COUNT(h->objects), h->type);
	if (h->items != UINT64_MAX)
		return output_format("(%s, %s item%s)", h->type, COUNT(h->items), h->items == 1 ? "" : "s");
	return *h->type ? output_format("(%s)", h->type) : strdup("");
}

char *holder_text(const struct holder *h, bool figures)
{
	bool many = h->what == HOLDER_C || (h->what == HOLDER_CYCLE && h->objects);
	char *type = figures    ? holder_type_text(h)
		     : *h->type ? output_format("(%s%s)", h->type, many ? "s" : "")
				: strdup("");
	const char *path = h->what == HOLDER_C ? "held by C" : many ? "" : h->path;
	char *text = type ? output_format("%s%s%s%s", h->what == HOLDER_CYCLE ? "a cycle: " : "", path,
					  *path && *type ? " " : "", type)
			  : NULL;
	free(type);
	return text;
}
