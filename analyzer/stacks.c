#include "analyzer/stacks.h"

#include "analyzer/python.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define CLASS_BITS 3
#define CLASSES_KEPT 21 /* a node's first frames; the last bit says that they are known */
#define LOOKS 16384     /* addresses whose classes are at hand: most are in many stacks */

struct node {
	uint32_t outer;
	uint32_t frame_count; /* 0 = not looked up yet */
	struct symbol_module *module;
	uint64_t address;     /* in the module's file; of a return address 1 less */
	const struct frame *frames;
	uint64_t classes;
	const struct frame *voice; /* see voice_of() */
	enum { ASK, EVALUATOR, OTHER } kind;
	bool voiced, own; /* the voice is of the program itself */
};

/* In place of a module: address is that of the Python frame, plus PYTHON_ENTRY in stacks of Python frames alone. */
static char python_mark;
#define PYTHON ((struct symbol_module *)(void *)&python_mark)
#define PYTHON_ENTRY 1u

/* A native stack and a Python stack, and the one they are together. */
struct splice {
	UT_hash_handle hh;
	uint64_t key;
	uint32_t id;
};

/* A native stack and a Python stack that were recorded together. Its id has the highest bit. */
struct pair {
	uint32_t native, python;
	uint32_t whole; /* 0 = not needed yet */
};
#define PAIR (1u << 31)

/* What is known of one process: its nodes' ids here, and its modules. */
struct process_map {
	uint32_t *ids;
	struct symbol_module **modules;
};

struct stacks {
	struct symbols *symbols;
	struct python *python;
	struct splice *splices;
	struct pair *pairs;
	uint32_t pair_count, pair_room;
	uint32_t *pair_table; /* open addressing; index + 1 */
	uint32_t pair_table_size;
	struct memo { const void **answers; uint32_t room; const struct frame *asked[LOOKS]; const void *said[LOOKS]; } *memos[STACK_MEMOS];
	struct node *nodes; /* 0 is not used */
	uint32_t count, room;
	struct slot { uint32_t id, hash; } *table; /* open addressing */
	uint32_t table_size;
	struct process_map *maps; /* by process id */
	unsigned map_count;
	uint32_t *chain;    /* scratch: nodes on the way outwards */
	size_t chain_room;
	struct look { const struct frame *frames; uint64_t classes; bool own; } looks[LOOKS];
};

struct stacks *stacks_new(void)
{
	struct stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->symbols = symbols_new();
	s->python = python_new();
	s->room = s->table_size = 1024;
	s->count = 1;
	s->nodes = calloc(s->room, sizeof(*s->nodes));
	s->table = calloc(s->table_size, sizeof(*s->table));
	if (!s->symbols || !s->python || !s->nodes || !s->table) {
		stacks_free(s);
		return NULL;
	}
	return s;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->map_count; i++) {
		free(s->maps[i].ids);
		free(s->maps[i].modules);
	}
	struct splice *splice, *next;
	HASH_ITER(hh, s->splices, splice, next) {
		HASH_DEL(s->splices, splice);
		free(splice);
	}
	for (int i = 0; i < STACK_MEMOS; i++) {
		if (s->memos[i])
			free(s->memos[i]->answers);
		free(s->memos[i]);
	}
	free(s->pairs);
	free(s->pair_table);
	python_free(s->python);
	symbols_free(s->symbols);
	free(s->maps);
	free(s->nodes);
	free(s->table);
	free(s->chain);
	free(s);
}

struct symbols *stacks_symbols(struct stacks *s)
{
	return s->symbols;
}

/* ---- the merged tree ----------------------------------------------------------------------------------- */

static uint32_t hash_node(uint32_t outer, const struct symbol_module *module, uint64_t address)
{
	uint64_t h = (uint64_t)(uintptr_t)module * 0x9e3779b97f4a7c15u ^ address * 0xc2b2ae3d27d4eb4fu ^ outer;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

static bool grow_table(struct stacks *s)
{
	uint32_t size = s->table_size * 2;
	struct slot *table = calloc(size, sizeof(*table));
	if (!table)
		return false;
	for (uint32_t k = 0; k < s->table_size; k++) {
		uint32_t i = s->table[k].hash & (size - 1);
		if (!s->table[k].id)
			continue;
		while (table[i].id)
			i = (i + 1) & (size - 1);
		table[i] = s->table[k];
	}
	free(s->table);
	s->table = table;
	s->table_size = size;
	return true;
}

static bool make_room(struct stacks *s)
{
	if (s->count == s->room) {
		struct node *nodes = realloc(s->nodes, (size_t)s->room * 2 * sizeof(*nodes));
		if (!nodes)
			return false;
		s->nodes = nodes;
		s->room *= 2;
	}
	return s->count < s->table_size / 4 * 3 || grow_table(s);
}

static uint32_t add_node(struct stacks *s, uint32_t outer, struct symbol_module *module, uint64_t address)
{
	if (!make_room(s))
		return outer;
	uint32_t hash = hash_node(outer, module, address), i = hash & (s->table_size - 1);
	for (; s->table[i].id; i = (i + 1) & (s->table_size - 1)) {
		const struct node *n = &s->nodes[s->table[i].id];
		if (s->table[i].hash == hash && n->outer == outer && n->module == module && n->address == address)
			return s->table[i].id;
	}
	s->nodes[s->count] = (struct node){ .outer = outer, .module = module, .address = address };
	s->table[i] = (struct slot){ s->count, hash };
	return s->count++;
}

/* ---- from a process's nodes ---------------------------------------------------------------------------- */

static struct process_map *map_of(struct stacks *s, const struct process *p)
{
	if (p->id >= s->map_count) {
		struct process_map *maps = realloc(s->maps, (p->id + 1) * sizeof(*maps));
		if (!maps)
			return NULL;
		memset(maps + s->map_count, 0, (p->id + 1 - s->map_count) * sizeof(*maps));
		s->maps = maps;
		s->map_count = p->id + 1;
	}
	struct process_map *map = &s->maps[p->id];
	if (!map->ids && p->node_end > p->node_base)
		map->ids = calloc(p->node_end - p->node_base, sizeof(*map->ids));
	if (!map->modules && p->module_count)
		map->modules = calloc(p->module_count, sizeof(*map->modules));
	return map;
}

/* A forked child's lower nodes are its parent's. */
static const struct process *owner_of(const struct process *p, uint32_t node)
{
	while (node < p->node_base && p->parent)
		p = p->parent;
	return p;
}

static uint32_t *known_id(struct stacks *s, const struct process *p, uint32_t node)
{
	struct process_map *map = map_of(s, p);
	if (!map || !map->ids || node < p->node_base || node >= p->node_end)
		return NULL;
	return &map->ids[node - p->node_base];
}

static struct symbol_module *module_of(struct stacks *s, const struct process *p, const struct process_module *m)
{
	while (p->parent && (m < p->modules || m >= p->modules + p->module_count))
		p = p->parent; /* what a parent had mapped at the fork */
	struct process_map *map = map_of(s, p);
	size_t i = (size_t)(m - p->modules);
	if (!map || !map->modules || i >= p->module_count)
		return NULL;
	if (!map->modules[i])
		map->modules[i] = symbols_module(s->symbols, &(struct module_id){
			.path = m->path,
			.build_id = m->build_id,
			.build_id_bytes = m->build_id_bytes,
			.seen_ns = p->start_real_ns + (process_ns(p, m->ticks) - p->start_ns),
		});
	return map->modules[i];
}

static uint32_t merge_python(struct stacks *s, const struct process *p, uint64_t pc, uint32_t outer)
{
	uint64_t address = (uintptr_t)python_frame(s->python, p, pc);
	return add_node(s, outer, PYTHON, address | (pc & MT_PY_ENTRY ? PYTHON_ENTRY : 0));
}

static uint64_t address_of(const struct mt_node *n, const struct process_module *m)
{
	uint64_t pc = n->flags & MT_NODE_EXACT ? n->pc : n->pc - 1;
	return m ? pc - m->bias : pc;
}

static uint32_t merge_node(struct stacks *s, const struct process *p, uint32_t node, uint32_t outer)
{
	const struct mt_node *n = process_node(p, node);
	const struct process_module *m = reader_module_of(p, node);
	if (!n)
		return outer;
	if (n->flags & MT_NODE_PYTHON)
		return merge_python(s, p, n->pc, outer);
	return add_node(s, outer, m ? module_of(s, p, m) : NULL, address_of(n, m));
}

void stacks_look_up(struct stacks *s, const struct process *p)
{
	const struct frame *frames;
	for (uint32_t node = p->node_base; node < p->node_end; node++) {
		const struct process_module *m = reader_module_of(p, node);
		if (m)
			symbols_find(s->symbols, module_of(s, p, m), address_of(process_node(p, node), m), &frames);
	}
}

static bool chain_push(struct stacks *s, size_t count, uint32_t node)
{
	if (count == s->chain_room) {
		size_t room = s->chain_room ? s->chain_room * 2 : 256;
		uint32_t *chain = realloc(s->chain, room * sizeof(*chain));
		if (!chain)
			return false;
		s->chain = chain;
		s->chain_room = room;
	}
	s->chain[count] = node;
	return true;
}

/* The stack of one node of the process's tree. */
static uint32_t merge_stack(struct stacks *s, const struct process *p, uint32_t node)
{
	size_t count = 0;
	uint32_t id = 0;
	for (const struct mt_node *n; node && (n = process_node(p, node)); node = n->parent) {
		uint32_t *known = known_id(s, owner_of(p, node), node);
		if (known && (id = *known))
			break;
		if (!chain_push(s, count, node))
			break;
		count++;
	}
	while (count--) {
		const struct process *owner = owner_of(p, s->chain[count]);
		uint32_t *known = known_id(s, owner, s->chain[count]);
		id = merge_node(s, owner, s->chain[count], id);
		if (known)
			*known = id;
	}
	return id;
}

static bool is_evaluator(struct stacks *s, uint32_t id)
{
	struct node *n = &s->nodes[id];
	if (n->kind == ASK) {
		const struct frame *frames;
		size_t count = stacks_frames(s, id, &frames);
		n->kind = python_is_evaluator(frames, count) ? EVALUATOR : OTHER;
	}
	return n->kind == EVALUATOR;
}

/* Puts Python frames from `*python` outwards at the end of the chain, up to the one that an evaluator was entered for
 * or all of them. */
static bool push_run(struct stacks *s, size_t *count, uint32_t *python, bool all)
{
	bool entry = false;
	while (*python && (all || !entry)) {
		const struct node *n = &s->nodes[*python];
		entry = n->address & PYTHON_ENTRY;
		if (n->address & ~(uint64_t)PYTHON_ENTRY && !chain_push(s, (*count)++, *python))
			return false;
		*python = n->outer;
	}
	return true;
}

static uint32_t *spliced_before(struct stacks *s, uint32_t native, uint32_t python)
{
	uint64_t key = (uint64_t)native << 32 | python;
	struct splice *known;
	HASH_FIND(hh, s->splices, &key, sizeof(key), known);
	if (!known && (known = calloc(1, sizeof(*known))) != NULL) {
		known->key = key;
		HASH_ADD(hh, s->splices, key, sizeof(known->key), known);
	}
	return known ? &known->id : NULL;
}

static uint32_t add_chain(struct stacks *s, size_t from, size_t to, uint32_t id)
{
	while (to-- > from) {
		struct node n = s->nodes[s->chain[to]];
		id = add_node(s, id, n.module, n.module == PYTHON ? n.address & ~(uint64_t)PYTHON_ENTRY : n.address);
	}
	return id;
}

/* One stack of both, frame by frame from the inside: each evaluator frame is replaced by the Python frames it ran. What
 * lies outwards of an evaluator is the same for many stacks, so those parts are remembered. */
static uint32_t spliced(struct stacks *s, uint32_t native, uint32_t python)
{
	struct { uint32_t *id; size_t at; } parts[64];
	size_t count = 0, n = 0;
	uint32_t id = 0;
	for (bool first = true; native; native = s->nodes[native].outer, first = false) {
		bool evaluates = python && is_evaluator(s, native);
		if ((first || evaluates) && n < sizeof(parts) / sizeof(*parts)) {
			uint32_t *known = spliced_before(s, native, python);
			if (known && (id = *known) != 0)
				break;
			parts[n].id = known;
			parts[n++].at = count;
		}
		if (!(evaluates ? push_run(s, &count, &python, false) : chain_push(s, count++, native)))
			return native;
	}
	if (!id && !push_run(s, &count, &python, true))
		return native;
	if (n == 0 && !id) /* Python's stack alone */
		return add_chain(s, 0, count, 0);
	for (size_t end = count; n > 0; end = parts[n].at) {
		id = add_chain(s, parts[--n].at, end, id);
		if (parts[n].id)
			*parts[n].id = id;
	}
	return id;
}

/* ---- pairs ----------------------------------------------------------------------------------------------- */

static uint32_t hash_pair(uint32_t native, uint32_t python)
{
	return (uint32_t)((((uint64_t)native << 32 | python) * 0x9e3779b97f4a7c15u) >> 32);
}

static bool grow_pairs(struct stacks *s)
{
	uint32_t size = s->pair_table_size ? s->pair_table_size * 2 : 4096;
	uint32_t *table = calloc(size, sizeof(*table));
	struct pair *pairs = realloc(s->pairs, (size_t)size / 2 * sizeof(*pairs));
	s->pairs = pairs ? pairs : s->pairs;
	if (!table || !pairs) {
		free(table);
		return false;
	}
	for (uint32_t k = 0; k < s->pair_count; k++) {
		uint32_t i = hash_pair(pairs[k].native, pairs[k].python) & (size - 1);
		while (table[i])
			i = (i + 1) & (size - 1);
		table[i] = k + 1;
	}
	free(s->pair_table);
	s->pair_table = table;
	s->pair_table_size = size;
	s->pair_room = size / 2;
	return true;
}

static uint32_t pair_of(struct stacks *s, uint32_t native, uint32_t python)
{
	if (s->pair_count == s->pair_room && !grow_pairs(s))
		return native;
	uint32_t i = hash_pair(native, python) & (s->pair_table_size - 1);
	for (; s->pair_table[i]; i = (i + 1) & (s->pair_table_size - 1)) {
		const struct pair *p = &s->pairs[s->pair_table[i] - 1];
		if (p->native == native && p->python == python)
			return PAIR | (s->pair_table[i] - 1);
	}
	s->pairs[s->pair_count] = (struct pair){ .native = native, .python = python };
	s->pair_table[i] = ++s->pair_count;
	return PAIR | (s->pair_count - 1);
}

static const struct pair *is_pair(const struct stacks *s, uint32_t id)
{
	return id & PAIR ? &s->pairs[id & ~PAIR] : NULL;
}

uint32_t stacks_of(struct stacks *s, const struct process *p, uint32_t node, uint32_t node2)
{
	uint32_t native = merge_stack(s, p, node);
	return node2 ? pair_of(s, native, merge_stack(s, p, node2)) : native;
}

uint32_t stacks_whole(struct stacks *s, uint32_t id)
{
	if (!(id & PAIR))
		return id;
	struct pair *p = &s->pairs[id & ~PAIR];
	if (!p->whole)
		p->whole = spliced(s, p->native, p->python);
	return p->whole;
}

uint32_t stacks_count(const struct stacks *s)
{
	return s->count;
}

uint32_t stacks_outer(const struct stacks *s, uint32_t id)
{
	return s->nodes[id].outer;
}

/* ---- frames -------------------------------------------------------------------------------------------- */

size_t stacks_frames(struct stacks *s, uint32_t id, const struct frame **frames)
{
	struct node *n = &s->nodes[stacks_whole(s, id)];
	if (!n->frame_count && n->module == PYTHON) {
		n->frames = (const struct frame *)(uintptr_t)(n->address & ~(uint64_t)PYTHON_ENTRY);
		n->frame_count = n->frames != NULL;
	} else if (!n->frame_count)
		n->frame_count = (uint32_t)symbols_find(s->symbols, n->module, n->address, &n->frames);
	*frames = n->frames;
	return n->frame_count;
}

enum rule_what { FUNCTION, LIBRARY };

static const struct rule {
	enum frame_class class;
	enum rule_what what;
	const char *pattern;
} rules[] = {
#define RULE(class, what, pattern) { FRAME_##class, what, pattern },
#include "analyzer/rules.def"
#undef RULE
};

bool pattern_matches(const char *pattern, const char *text)
{
	if (*pattern == '*')
		return strstr(text, pattern + 1) != NULL;
	while (*pattern && *pattern == *text)
		pattern++, text++;
	return *pattern == '*' || *pattern == *text;
}

enum { RULES = sizeof(rules) / sizeof(*rules) };

static bool may_match(const struct rule *r, unsigned char first)
{
	return (unsigned char)*r->pattern == first || *r->pattern == '*';
}

/* The rules worth comparing with a text that begins so, in order; ends with NULL. */
static const struct rule *const *rules_for(unsigned char first)
{
	static const struct rule **lists[256];
	if (!lists[first]) {
		size_t n = 0;
		const struct rule **list = calloc(RULES + 1, sizeof(*list));
		for (size_t i = 0; list && i < RULES; i++)
			if (may_match(&rules[i], first))
				list[n++] = &rules[i];
		lists[first] = list;
	}
	return lists[first];
}

enum frame_class frame_classify(const struct frame *f)
{
	if (python_is_thread(f))
		return FRAME_PLAIN;
	if (python_is_frame(f))
		return python_is_plumbing(f) ? FRAME_GLUE : FRAME_PLAIN;
	const char *slash = f->library ? strrchr(f->library, '/') : NULL;
	const char *library = slash ? slash + 1 : f->library;
	enum rule_what what = f->name ? FUNCTION : LIBRARY;
	const char *text = f->name ? f->name : library;
	const struct rule *const *r = text ? rules_for((unsigned char)*text) : NULL;
	for (; r && *r; r++)
		if ((*r)->what == what && pattern_matches((*r)->pattern, text))
			return (*r)->class;
	return FRAME_PLAIN;
}

#define CLASSES_KNOWN (1ull << 63)

/* Own: Python code of the program itself. */
static const struct look *look_at(struct stacks *s, const struct frame *frames, size_t count)
{
	struct look *look = &s->looks[((uintptr_t)frames / sizeof(*frames) * 0x9e3779b97f4a7c15u >> 32) % LOOKS];
	if (look->frames == frames)
		return look;
	*look = (struct look){ .frames = frames, .classes = CLASSES_KNOWN };
	for (size_t k = 0; k < count && k < CLASSES_KEPT; k++)
		look->classes |= (uint64_t)frame_classify(&frames[k]) << k * CLASS_BITS;
	look->own = count && python_is_frame(frames) && !python_is_library(frames->file);
	return look;
}

static enum frame_class class_of(struct stacks *s, uint32_t id, size_t i)
{
	const struct frame *frames;
	size_t count = stacks_frames(s, id, &frames);
	struct node *n = &s->nodes[id];
	if (i >= CLASSES_KEPT)
		return frame_classify(&frames[i]);
	if (!(n->classes & CLASSES_KNOWN))
		n->classes = look_at(s, frames, count)->classes;
	return n->classes >> i * CLASS_BITS & ((1 << CLASS_BITS) - 1);
}

bool stack_step(struct stacks *s, struct stack_walk *w)
{
	if (w->index + 1 < w->count) {
		w->index++;
	} else {
		if (!w->next)
			return false;
		w->id = stacks_whole(s, w->next);
		w->count = stacks_frames(s, w->id, &w->frames);
		w->index = 0;
		w->next = s->nodes[w->id].outer;
	}
	w->frame = &w->frames[w->index];
	w->class = class_of(s, w->id, w->index);
	return true;
}

static bool hidden_language(const struct frame *f, unsigned flags)
{
	if (python_is_thread(f))
		return false;
	return flags & (python_is_frame(f) ? STACK_NO_PYTHON : STACK_NO_NATIVE);
}

bool stack_shows(const struct stack_walk *w, unsigned flags)
{
	return !hidden_language(w->frame, flags) && (w->class == FRAME_PLAIN || flags & STACK_ALL_FRAMES);
}

/* What to show of a stack in which every frame is plumbing. */
struct fallback {
	const struct frame *innermost, *object, *glue;
	bool inside; /* still at the inner end */
};

static void fall_back(struct fallback *f, const struct stack_walk *w)
{
	if (!f->innermost) {
		f->innermost = w->frame;
		f->inside = true;
	}
	f->inside = f->inside && (w->class == FRAME_OBJECT || w->class == FRAME_ALLOCATOR);
	if (f->inside && w->class == FRAME_OBJECT)
		f->object = w->frame;
	if (!f->glue && w->class == FRAME_GLUE && w->frame->name)
		f->glue = w->frame;
}

/* Recursion, and CPython's pairs of f and f_impl. */
static bool same_name(const struct frame *inner, const struct frame *outer)
{
	if (!inner->name || !outer->name)
		return false;
	size_t n = strlen(outer->name);
	return strncmp(inner->name, outer->name, n) == 0 && (!inner->name[n] || strcmp(inner->name + n, "_impl") == 0);
}

/* A program in Python is read by its own lines: the innermost one of it, below that what was called to get the memory. */
static void prefer_python(struct stack_site *site, const struct frame *python)
{
	if (!python || site->frame == python)
		return;
	site->caller = site->frame;
	site->frame = python;
}

/* What Python says of a stack: its innermost frame of the program itself, else of a library; a thread without Python frames is
 * named by its outermost frame. Known for every stack outwards of one that was asked for, so each node is visited once. */
static const struct frame *voice_of(struct stacks *s, uint32_t id)
{
	size_t count = 0;
	for (; id && !s->nodes[id].voiced; id = s->nodes[id].outer)
		if (!chain_push(s, count++, id))
			return NULL;
	const struct frame *voice = id ? s->nodes[id].voice : NULL, *frames;
	bool own = id && s->nodes[id].own;
	while (count--) {
		id = s->chain[count];
		if (s->nodes[id].module == PYTHON && stacks_frames(s, id, &frames) && class_of(s, id, 0) == FRAME_PLAIN &&
		    (!own || look_at(s, frames, 1)->own)) {
			voice = frames;
			own = look_at(s, frames, 1)->own;
		}
		s->nodes[id].voice = voice;
		s->nodes[id].own = own;
		s->nodes[id].voiced = true;
	}
	return voice;
}

/* The frames that Python does not speak for, from the inside; as few as it takes. */
static struct stack_site native_site(struct stacks *s, uint32_t id, unsigned flags, const struct frame *voice)
{
	struct stack_site site = { 0 };
	struct fallback f = { 0 };
	for (struct stack_walk w = { .next = id }; !site.caller && stack_step(s, &w); ) {
		if (hidden_language(w.frame, flags))
			continue;
		fall_back(&f, &w);
		if (!stack_shows(&w, flags))
			continue;
		if (!site.frame)
			site.frame = w.frame;
		else if (!same_name(site.frame, w.frame))
			site.caller = w.frame;
		if (voice && python_is_frame(voice) && site.frame != voice)
			break;
	}
	if (!site.frame)
		site.frame = f.object ? f.object : f.glue ? f.glue : f.innermost;
	return site;
}

/* Python's lines speak for a stack wherever it can, and need no splicing to be found. */
const struct frame *stacks_site_frame(struct stacks *s, uint32_t id, unsigned flags)
{
	const struct pair *p = flags & STACK_NO_PYTHON ? NULL : is_pair(s, id);
	const struct frame *voice = p ? voice_of(s, p->python) : NULL;
	return voice && python_is_frame(voice) && !python_is_thread(voice) ? voice : stacks_site(s, id, flags).frame;
}

struct stack_site stacks_site(struct stacks *s, uint32_t id, unsigned flags)
{
	id = stacks_whole(s, id);
	const struct frame *voice = voice_of(s, id);
	if (voice && flags & STACK_NO_PYTHON && python_is_frame(voice))
		voice = NULL;
	struct stack_site site = native_site(s, id, flags, voice);
	if (voice && python_is_thread(voice) && !same_name(site.frame, voice))
		site.caller = voice;
	else if (voice && python_is_frame(voice))
		prefer_python(&site, voice);
	return site;
}

/* ---- asking the frames of a stack ------------------------------------------------------------------------ */

static struct memo *memo_of(struct stacks *s, enum stack_memo which)
{
	struct memo *m = s->memos[which] ? s->memos[which] : (s->memos[which] = calloc(1, sizeof(*m)));
	if (!m || m->room >= s->count)
		return m;
	uint32_t room = s->room;
	const void **answers = realloc(m->answers, room * sizeof(*answers));
	if (!answers)
		return NULL;
	memset(answers + m->room, 0, (room - m->room) * sizeof(*answers));
	m->answers = answers;
	m->room = room;
	return m;
}

static char nothing; /* the answer of a stack about which nothing is said; NULL = not asked yet */

static const void *ask_frame(struct memo *m, const struct frame *f, stack_ask *ask, void *arg)
{
	size_t i = ((uintptr_t)f / sizeof(*f) * 0x9e3779b97f4a7c15u >> 32) % LOOKS;
	if (m->asked[i] != f) {
		m->asked[i] = f;
		m->said[i] = ask(arg, f);
	}
	return m->said[i];
}

static const void *ask_node(struct stacks *s, struct memo *m, uint32_t id, stack_ask *ask, void *arg)
{
	const struct frame *frames;
	const void *said = NULL;
	size_t count = stacks_frames(s, id, &frames);
	for (size_t i = 0; !said && i < count; i++)
		said = ask_frame(m, &frames[i], ask, arg);
	return said;
}

/* Outwards until a node is known, then back: chain_push() is for a moment ours. */
static const void *ask_outwards(struct stacks *s, uint32_t id, enum stack_memo memo, bool stop, stack_ask *ask, void *arg)
{
	struct memo *m = memo_of(s, memo);
	const void *said = NULL;
	size_t count = 0;
	if (!m)
		return NULL;
	for (; id && !said; id = s->nodes[id].outer) {
		if (m->answers[id] || (stop && is_evaluator(s, id))) {
			said = m->answers[id] ? m->answers[id] : &nothing;
			break;
		}
		said = ask_node(s, m, id, ask, arg);
		if (!chain_push(s, count++, id))
			return NULL;
	}
	said = said ? said : &nothing;
	while (count--)
		m->answers[s->chain[count]] = said;
	return said == &nothing ? NULL : said;
}

const void *stacks_ask(struct stacks *s, uint32_t id, enum stack_memo memo, enum stack_part part, stack_ask *ask, void *arg)
{
	const struct pair *p = is_pair(s, id);
	if (part == PART_PYTHON)
		return p ? ask_outwards(s, p->python, memo, false, ask, arg) : NULL;
	return ask_outwards(s, p ? p->native : id, memo, part == PART_INNER, ask, arg);
}

struct stack_gaps stacks_gaps(const struct stacks *s)
{
	struct stack_gaps gaps = { 0 };
	for (struct symbol_module *m = NULL; (m = symbols_next(s->symbols, m)); ) {
		const char *path = symbols_path(m);
		if (path[0] != '/')
			continue;
		if (symbols_state(m) == SYMBOLS_MISSING) {
			gaps.missing++;
			gaps.missing_path = path;
		} else if (symbols_state(m) == SYMBOLS_REPLACED) {
			gaps.replaced++;
			gaps.replaced_path = path;
		}
	}
	return gaps;
}
