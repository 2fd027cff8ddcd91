/*
 * The graph of a snapshot (reader/holders_file.h) with the blocks that the trace knew to be alive then.
 *
 * Nodes are the snapshot's items, then the blocks that one of them points to, then two roots: HOLD_ROOT() refers to
 * what lives by itself, HOLD_CYCLES() to what only waits for the garbage collector. What lives by itself: running
 * functions, what never dies, and objects that have more references than the snapshot explains: those of the
 * interpreter and of C.
 *
 * A reference that tp_traverse tells is certain. A word that happens to be the address of an object is taken for a
 * reference only as long as that object has references that nothing explains. A word that is the address of a block is
 * taken for one always.
 *
 * A node dominates another where all ways from the roots to that one pass it: if it were gone, so would be the other.
 */
#ifndef MT_MODEL_HOLDERS_HOLD_GRAPH_H
#define MT_MODEL_HOLDERS_HOLD_GRAPH_H

#include "analyzer/model/model.h"
#include "analyzer/reader/holders_file.h"

#define HOLD_NONE UINT32_MAX

/* A live block that an item points to. */
struct hold_block {
	uint64_t addr, size, ns; /* ns: when it was made */
	uint32_t site;           /* of the process; UINT32_MAX = inherited */
	uint32_t device;         /* or MODEL_NO_DEVICE */
	uint8_t kind;            /* enum model_kind */
};

struct hold_graph {
	const struct hold_snapshot *snapshot;
	uint32_t items, count; /* nodes: items, then blocks up to `count`, then the roots */
	struct hold_block *blocks;
	uint32_t block_count;
	struct hold_block *loose; /* live blocks that no item points to */
	size_t loose_count;
	uint64_t live[MODEL_KINDS]; /* all live bytes of the process */
	uint32_t *target;           /* by edge of the snapshot: a node, or HOLD_NONE */
	uint32_t *own;              /* by item: the block that it lies in, or HOLD_NONE */
	uint32_t *type_node;        /* by type */
	uint32_t *module;           /* by item: of a module's dict the module, else HOLD_NONE */
	uint64_t *unexplained;      /* by item: references that nothing explains; UINT64_MAX = it never dies */
	uint32_t *roots, *garbage;
	uint32_t root_count, garbage_count;
	/* by node: its immediate dominator, its place in the order of the search (HOLD_NONE = not reached); the nodes
	 * in that order */
	uint32_t *dominator, *place, *order;
	uint32_t reached;
	/* by node: the first of those that refer to it, in `from`, which has them back to back */
	uint32_t *from_first, *from;
	/* by node: the one before on the shortest way from a module or a running function, else from a root; and the
	 * edge of the snapshot, UINT32_MAX = none */
	uint32_t *parent;
	uint32_t *parent_edge;
};

#define HOLD_ROOT(g)   ((g)->count)
#define HOLD_CYCLES(g) ((g)->count + 1)

/* `m` was run until the snapshot's moment, with the process's blocks; `whole`: these are all. 0 or -MT_EMEMORY;
 * hold_graph_free() in any case. */
int hold_graph_make(struct hold_graph **out, const struct hold_snapshot *s, const struct model *m, unsigned process,
		    bool whole);
/* The same of items whose references are known: `target` is by edge. No item stands for a live block. */
int hold_graph_of(struct hold_graph **out, const struct hold_snapshot *s, const uint32_t *target);
void hold_graph_free(struct hold_graph *g);

/* hold_next.c. The k-th node that `node` refers to, and the edge of the snapshot (UINT32_MAX = none); HOLD_NONE:
 * there is none in this place. False: there are no more. */
bool hold_next(const struct hold_graph *g, uint32_t node, uint32_t k, uint32_t *to, uint32_t *edge);

/* hold_dominators.c. 0 or -MT_EMEMORY. */
int hold_dominators(struct hold_graph *g);

static inline const struct hold_item *hold_item(const struct hold_graph *g, uint32_t node)
{
	return node < g->items ? &g->snapshot->items[node] : NULL;
}

static inline const struct hold_block *hold_block(const struct hold_graph *g, uint32_t node)
{
	return node >= g->items && node < g->count ? &g->blocks[node - g->items] : NULL;
}

/* "list"; "" for what is no object. */
static inline const char *hold_type(const struct hold_graph *g, uint32_t node)
{
	const struct hold_item *i = hold_item(g, node);
	return i && i->kind == HOLD_OBJECT ? g->snapshot->types[i->type].name : "";
}

#endif
