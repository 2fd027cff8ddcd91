/*
 * Who holds the memory: the objects without which it would be gone, largest first, each with the way to it.
 *
 * Memory is followed down the tree of dominators. A namespace (a module, a running function, an object with attributes)
 * is no answer, and is split among what it names; a container is one. What two hold is said of both.
 */
#ifndef MT_MODEL_HOLDERS_HOLDERS_H
#define MT_MODEL_HOLDERS_HOLDERS_H

#include "analyzer/model/holders/hold_graph.h"

/* Of memory that no traced block is: small objects in Python's own arenas, by their sizes. */
#define HOLDERS_SMALL MODEL_KINDS

enum holder_what {
	HOLDER_OBJECT, /* an object, a module's name or a running function's variable */
	HOLDER_SHARED, /* two or more together: `also` is another one */
	HOLDER_C,      /* many objects of one type, each held by C or the interpreter */
	HOLDER_CYCLE,  /* part of a cycle that only waits for the garbage collector */
};

struct holder {
	enum holder_what what;
	uint32_t node; /* HOLDER_C: one of them */
	uint64_t bytes, blocks;
	uint64_t objects;   /* HOLDER_C: how many */
	char *path;         /* "__main__.history", "x of main (train.py:31)" */
	char *also;         /* NULL = none */
	unsigned also_more; /* other references that are not named */
	const char *type;   /* "list", "" = it is no object */
	uint64_t items;     /* UINT64_MAX = it is no container */
	uint32_t site;      /* of the process: made most of it; UINT32_MAX = not known */
	uint64_t site_bytes;
};

struct holders {
	struct holder *list;
	size_t count;
	uint64_t bytes;  /* alive, of what was asked for */
	uint64_t held;   /* of them those that objects hold, cycles among them */
	uint64_t cycles; /* of them those that wait for the collector */
	uint64_t blocks;
};

struct holders_query {
	unsigned kind;   /* enum model_kind, or HOLDERS_SMALL */
	uint32_t device; /* MODEL_NO_DEVICE = any */
	/* which blocks; NULL = all */
	bool (*wants)(void *arg, const struct hold_block *b);
	/* called for each block that a holder has, at last; NULL = none */
	void (*each)(void *arg, const struct hold_block *b, const struct holder *h);
	void *arg;
};

/* 0 or -MT_EMEMORY. holders_free() in any case. */
int holders_find(struct holders **out, const struct hold_graph *g, const struct holders_query *q);
void holders_free(struct holders *h);

/* hold_path.c. The way to a node as text; `by` one that refers to it, or HOLD_NONE for the shortest way; the edge of
 * that one, or UINT32_MAX. Allocated, NULL = no memory. */
char *hold_path(const struct hold_graph *g, uint32_t node, uint32_t by, uint32_t edge);

/* Calls f for each step of the shortest way to a node: "__main__" or "train (train.py:31)" at first, ".history",
 * "[...]"; `type` of what it leads to, "" = it is no object. 0 or what f returned. */
int hold_steps(const struct hold_graph *g, uint32_t node, int (*f)(void *arg, const char *step, const char *type),
	       void *arg);

/* "(list, 990 items)". Allocated. */
char *holder_type_text(const struct holder *h);
/* "__main__.history (list, 990 items)", "a cycle: ..."; without figures the same in runs of the same program but for
 * lines. Allocated. */
char *holder_text(const struct holder *h, bool figures);

/* Does it name what it refers to: a module, a running function, an object's attributes? */
bool hold_is_namespace(const struct hold_graph *g, uint32_t node);
bool hold_is_sequence(const struct hold_graph *g, uint32_t node);

/* Is it what another object has inside, which the program has no name for: the dict of an lru_cache? */
bool hold_is_inside(const struct hold_graph *g, uint32_t node);

#endif
