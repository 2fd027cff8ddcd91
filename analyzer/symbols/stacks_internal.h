/*
 * What the parts of stacks share: stacks.c merges trees, stacks_splice.c makes one stack of a pair, stacks_frames.c
 * knows what is at a place and walks, stacks_site.c says whose a stack is, stacks_ask.c asks its frames. Nobody else
 * includes this.
 *
 * A PyTorch program has a million stacks but only some ten thousand places that they lead through, so whatever can be
 * said of a place is kept there, and a node is three words.
 */
#ifndef MT_SYMBOLS_STACKS_INTERNAL_H
#define MT_SYMBOLS_STACKS_INTERNAL_H

#include "analyzer/symbols/python_frames.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/util/hash_index.h"

#include <stdlib.h>
#include <string.h>

#define CLASS_BITS    3
#define CLASSES_KEPT  21 /* a place's first frames; the last bit says that they are known */
#define CLASSES_KNOWN (1ull << 63)

/* An address in a module: what is called there. */
struct place {
	struct symbol_module *module;
	uint64_t address; /* in the module's file; of a return address 1 less */
	const struct frame *frames;
	uint64_t classes;
	uint32_t frame_count; /* 0 = not looked up yet */
	bool evaluator, own;  /* once classes are known. Own: Python code of the program itself */
};

/* In place of a module: address is that of the Python frame, plus PYTHON_ENTRY in stacks of Python frames alone. */
extern char stacks_python_mark;
#define PYTHON       ((struct symbol_module *)(void *)&stacks_python_mark)
#define PYTHON_ENTRY 1u

/* Things with numbers from 1 on; count is one more than there are. */
struct table {
	struct hash_index index;
	uint32_t count;
};

/* Two words are a number, and have one more word to them. Number 0 is not used. */
struct words {
	struct triple {
		uint32_t a, b, more;
	} *list;
	size_t room;
	struct table table;
};

/* What is known of one process: its nodes' ids here, its modules, and its sites' stacks. */
struct process_map {
	uint32_t *ids;
	struct symbol_module **modules;
	uint32_t *sites;
	size_t site_room;
};

/* What is said of places and of nodes: numbers in `said`. */
struct memo {
	const void **said;
	size_t said_count, said_room;
	uint16_t *nodes, *places;
	size_t node_room, place_room;
};

#define PYTHON_SEEN 4096 /* places that Python's instructions are at: most are in many nodes */

struct stacks {
	struct symbols *symbols;
	struct python *python;
	struct place *places; /* 0 is not used */
	size_t place_room;
	struct table place_table;
	uint32_t looked_ahead; /* places below were looked up */
	struct words nodes;    /* the next node outwards, the place; more: stacks_site.c's */
	/* a native stack and a Python stack; more: the one they are together, 0 = not needed yet */
	struct words pairs;
	struct memo *memos[STACK_MEMOS];
	struct process_map *maps; /* by process id */
	size_t map_count;
	uint32_t *chain; /* scratch: nodes on the way outwards */
	size_t chain_room;
	struct seen {
		const struct process *process;
		uint64_t pc;
		uint32_t place;
	} python_seen[PYTHON_SEEN];
};

/* The node of this place whose next one outwards is `outer`, made if it is new; `outer` when there is no memory. */
uint32_t stacks_node(struct stacks *s, uint32_t outer, uint32_t place);
uint32_t stacks_place(struct stacks *s, struct symbol_module *module, uint64_t address); /* 0: no memory */

/* The number of a native stack and a Python stack, 0 when there is no memory; as an id it has the highest bit. */
uint32_t stacks_pair(struct stacks *s, uint32_t native, uint32_t python);
#define PAIR (1u << 31)

/* One stack of both. */
uint32_t stacks_spliced(struct stacks *s, uint32_t native, uint32_t python);

bool stacks_push(struct stacks *s, size_t count, uint32_t node); /* onto the chain */

/* The place with all that is known about it. Until the next place is made. */
const struct place *stacks_place_facts(struct stacks *s, uint32_t place);

static inline uint32_t outer_of(const struct stacks *s, uint32_t node)
{
	return s->nodes.list[node].a;
}
static inline uint32_t place_of(const struct stacks *s, uint32_t node)
{
	return s->nodes.list[node].b;
}

static inline bool is_evaluator(struct stacks *s, uint32_t node)
{
	return stacks_place_facts(s, place_of(s, node))->evaluator;
}

/* NULL: it is none. */
static inline const struct triple *pair_at(const struct stacks *s, uint32_t id)
{
	return id & PAIR ? &s->pairs.list[id & ~PAIR] : NULL;
}

/* Of a language that is not to be shown. */
bool frame_hidden(const struct frame *f, unsigned flags);

static inline uint64_t hash_words(uint64_t a, uint64_t b)
{
	uint64_t h = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu);
	h ^= h >> 32;
	return h * 0xbf58476d1ce4e5b9u;
}

#endif
