/* What a node refers to: a part of hold_graph.c that hold_dominators.c needs, too. */
#include "analyzer/model/holders/hold_graph.h"

bool hold_next(const struct hold_graph *g, uint32_t node, uint32_t k, uint32_t *to, uint32_t *edge)
{
	*edge = UINT32_MAX;
	*to = HOLD_NONE;
	if (node == HOLD_ROOT(g) || node == HOLD_CYCLES(g)) {
		bool root = node == HOLD_ROOT(g);
		uint32_t n = root ? g->root_count : g->garbage_count;
		if (k < n)
			*to = root ? g->roots[k] : g->garbage[k];
		else if (root && k == n)
			*to = HOLD_CYCLES(g);
		return k < n + root;
	}
	const struct hold_item *item = hold_item(g, node);
	uint32_t n = item ? item->edges + item->words : 0;
	if (!item || k >= n + 2)
		return false;
	if (k < n) {
		*edge = (uint32_t)item->first + k;
		*to = g->target[*edge];
	} else if (k == n) {
		*to = g->own[node];
	} else if (item->kind == HOLD_OBJECT && item->bits & MT_HOLD_OF_TYPE) {
		*to = g->type_node[item->type];
	}
	return true;
}
