/*
 * What the parts of stacks share:
 *
 *   stacks.c         merges the processes' trees
 *   stacks_places.c  tables of places, nodes and pairs
 *   stacks_splice.c  makes one stack of a native and a Python stack
 *   stacks_frames.c  frames of a place, and walks over them
 *   stacks_site.c    who wanted the memory
 *   stacks_ask.c     questions to the frames of a stack
 *
 * Nobody else includes this. A PyTorch program has a million stacks, but these lead through only some ten thousand
 * places. So whatever can be said of a place is kept there, and a node is three words.
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

/* A place: an address in a module, and the frames there. */
struct place {
	struct symbol_module *module;
	uint64_t address; /* in the module's file; return addresses are lowered by 1 */
	const struct frame *frames;
	uint64_t classes;     /* of the first CLASSES_KEPT frames, CLASS_BITS each; CLASSES_KNOWN once they are there */
	uint32_t frame_count; /* 0 = not looked up yet */
	/* set together with classes; own: Python code of the program itself, ours: native code written for it */
	bool evaluator, own, ours;
};

/* The `module` of places of Python: `address` is that of the struct frame, plus PYTHON_ENTRY where C entered an
 * evaluator for the frame; that only occurs in stacks of Python frames alone. */
extern char stacks_python_mark;
#define PYTHON       ((struct symbol_module *)(void *)&stacks_python_mark)
#define PYTHON_ENTRY 1u

/* Numbers things from 1 on; `count` is the next number. */
struct table {
	struct hash_index index;
	uint32_t count;
};

/* Numbers pairs of words (a, b), from 1 on, and keeps a third word for each. */
struct words {
	struct triple {
		uint32_t a, b, more;
	} *list;
	size_t room;
	struct table table;
};

/* A process's own numbers, as indices, and what they are here. */
struct process_map {
	uint32_t *ids;                  /* by node - node_base: node in the merged tree */
	struct symbol_module **modules; /* by index in struct process */
	uint32_t *sites;                /* by site: stack */
	size_t id_room, module_room, site_room;
};

/* The answers of stacks_ask(): `nodes` and `places` have indices in `said`. */
struct memo {
	const void **said; /* the different answers */
	size_t said_count, said_room;
	uint16_t *nodes, *places;
	size_t node_room, place_room;
};

#define PYTHON_SEEN 32768 /* size of a cache: Python instructions and their places, as most are in many nodes */

struct stacks {
	struct symbols *symbols;
	struct python *python;
	struct place *places; /* 0 is not used */
	size_t place_room;
	struct table place_table;
	uint32_t looked_ahead; /* places with lower numbers were looked up */
	struct words nodes;    /* a: the next node outwards, b: the place; more: for stacks_site.c */
	/* a: a native stack, b: a Python stack; more: the stack that both make, 0 = not made yet */
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

/* The node of `place` whose next one outwards is `outer`; made if it is new. `outer` itself if there is no memory. */
uint32_t stacks_node(struct stacks *s, uint32_t outer, uint32_t place);
uint32_t stacks_place(struct stacks *s, struct symbol_module *module, uint64_t address); /* 0: no memory */

/* The id of a native and a Python stack together, which has the bit PAIR; 0 = no memory. */
uint32_t stacks_pair(struct stacks *s, uint32_t native, uint32_t python);
#define PAIR (1u << 31)

/* The node of the merged tree that a native and a Python stack make together. */
uint32_t stacks_spliced(struct stacks *s, uint32_t native, uint32_t python);

bool stacks_push(struct stacks *s, size_t count, uint32_t node); /* onto the chain */

/* The place, with its frames looked up and its classes known. Valid until the next place is made. */
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

/* The pair that an id with the bit PAIR stands for; NULL = the id is a node. */
static inline const struct triple *pair_at(const struct stacks *s, uint32_t id)
{
	return id & PAIR ? &s->pairs.list[id & ~PAIR] : NULL;
}

/* Native, and of a library that somebody wrote for this program: none of the system's or of Python itself, nor a
 * package without lines. */
bool frame_is_ours(const struct frame *f);

/* Whether `flags` (enum stack_flag) hide the language of the frame. */
bool frame_hidden(const struct frame *f, unsigned flags);

static inline uint64_t hash_words(uint64_t a, uint64_t b)
{
	uint64_t h = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu);
	h ^= h >> 32;
	return h * 0xbf58476d1ce4e5b9u;
}

#endif
