/*
 * Immediate dominators by the algorithm SEMI-NCA (Georgiadis, Linear-Time Algorithms for Dominators and Related
 * Problems, 2005): semidominators as Lengauer and Tarjan find them, then nearest common ancestors in the order of the
 * search. No recursion: a list linked over ten million objects is as deep.
 */
#include "analyzer/model/holders/hold_graph.h"

#include "analyzer/util/error.h"
#include "analyzer/util/vec.h"

struct search {
	struct hold_graph *g;
	uint32_t *parent, *at; /* by place: the place before; on the stack: how far its node's edges are */
	uint32_t *stack;
	uint32_t depth;
};

static void reach(struct search *s, uint32_t node, uint32_t parent)
{
	struct hold_graph *g = s->g;
	uint32_t place = g->reached++;
	g->place[node] = place;
	g->order[place] = node;
	s->parent[place] = parent;
	s->at[place] = 0;
	s->stack[s->depth++] = place;
}

static void search(struct search *s)
{
	struct hold_graph *g = s->g;
	reach(s, HOLD_ROOT(g), 0);
	while (s->depth) {
		uint32_t place = s->stack[s->depth - 1], to, edge;
		if (!hold_next(g, g->order[place], s->at[place]++, &to, &edge))
			s->depth--;
		else if (to != HOLD_NONE && g->place[to] == HOLD_NONE)
			reach(s, to, place);
	}
}

/* g->from: by node, who refers to it; only of those that were reached. */
static int turn_round(struct hold_graph *g)
{
	uint32_t nodes = g->count + 2, to, edge;
	g->from_first = vec_calloc(nodes + 1ul, sizeof(*g->from_first));
	if (!g->from_first)
		return error_memory();
	for (uint32_t i = 0; i < g->reached; i++)
		for (uint32_t k = 0; hold_next(g, g->order[i], k, &to, &edge); k++)
			if (to != HOLD_NONE)
				g->from_first[to + 1]++;
	for (uint32_t i = 0; i < nodes; i++)
		g->from_first[i + 1] += g->from_first[i];
	g->from = vec_calloc(g->from_first[nodes] + 1ul, sizeof(*g->from));
	uint32_t *next = vec_calloc(nodes + 1ul, sizeof(*next));
	if (!g->from || !next) {
		free(next);
		return error_memory();
	}
	memcpy(next, g->from_first, nodes * sizeof(*next));
	for (uint32_t i = 0; i < g->reached; i++)
		for (uint32_t k = 0; hold_next(g, g->order[i], k, &to, &edge); k++)
			if (to != HOLD_NONE)
				g->from[next[to]++] = g->order[i];
	free(next);
	return 0;
}

/* The place with the least semidominator on the way from `v` up to the root of its tree; the way gets shorter. */
static uint32_t evaluate(uint32_t *ancestor, uint32_t *label, const uint32_t *semi, uint32_t *stack, uint32_t v)
{
	uint32_t n = 0;
	for (uint32_t u = v; ancestor[u] != HOLD_NONE && ancestor[ancestor[u]] != HOLD_NONE; u = ancestor[u])
		stack[n++] = u;
	while (n) {
		uint32_t u = stack[--n], a = ancestor[u];
		if (semi[label[a]] < semi[label[u]])
			label[u] = label[a];
		ancestor[u] = ancestor[a];
	}
	return label[v];
}

static void solve(const struct search *s, uint32_t *semi, uint32_t *label, uint32_t *ancestor, uint32_t *idom)
{
	const struct hold_graph *g = s->g;
	for (uint32_t i = 0; i < g->reached; i++) {
		semi[i] = label[i] = i;
		ancestor[i] = HOLD_NONE;
	}
	for (uint32_t i = g->reached; i-- > 1;) {
		uint32_t node = g->order[i];
		for (uint32_t k = g->from_first[node]; k < g->from_first[node + 1]; k++) {
			uint32_t u = evaluate(ancestor, label, semi, s->stack, g->place[g->from[k]]);
			if (semi[u] < semi[i])
				semi[i] = semi[u];
		}
		ancestor[i] = s->parent[i];
		idom[i] = s->parent[i];
	}
	for (uint32_t i = 1; i < g->reached; i++)
		while (idom[i] > semi[i])
			idom[i] = idom[idom[i]];
}

int hold_dominators(struct hold_graph *g)
{
	uint32_t nodes = g->count + 2;
	uint32_t *work = vec_calloc(nodes * 6ul, sizeof(*work));
	if (!work)
		return error_memory();
	struct search s = { .g = g, .parent = work, .at = work + nodes, .stack = work + nodes * 2ul };
	search(&s);
	int e = turn_round(g);
	if (!e) {
		uint32_t *idom = work + nodes * 5ul;
		solve(&s, s.at, work + nodes * 3ul, work + nodes * 4ul, idom);
		for (uint32_t i = 1; i < g->reached; i++)
			g->dominator[g->order[i]] = g->order[idom[i]];
	}
	free(work);
	return e;
}
