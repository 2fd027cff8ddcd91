/* The merged tree, and how stacks of a process get into it. */
#include "analyzer/symbols/stacks_internal.h"

#include "analyzer/util/output.h"
#include "analyzer/util/vec.h"

struct stacks *stacks_new(void)
{
	struct stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->symbols = symbols_new();
	s->python = python_new();
	s->nodes.table.count = s->place_table.count = s->pairs.table.count = 1;
	if (!s->symbols || !s->python || vec_reserve(s->nodes.list, s->nodes.room, 1) ||
	    vec_reserve(s->places, s->place_room, 1)) {
		stacks_free(s);
		return NULL;
	}
	return s;
}

static void memo_free(struct memo *m)
{
	if (!m)
		return;
	free(m->said);
	free(m->nodes);
	free(m->places);
	free(m);
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->map_count; i++) {
		free(s->maps[i].ids);
		free(s->maps[i].modules);
		free(s->maps[i].sites);
	}
	for (int i = 0; i < STACK_MEMOS; i++)
		memo_free(s->memos[i]);
	python_free(s->python);
	symbols_free(s->symbols);
	free(s->places);
	hash_index_fini(&s->place_table.index);
	free(s->nodes.list);
	hash_index_fini(&s->nodes.table.index);
	free(s->pairs.list);
	hash_index_fini(&s->pairs.table.index);
	free(s->maps);
	free(s->chain);
	free(s);
}

struct symbols *stacks_symbols(struct stacks *s)
{
	return s->symbols;
}

/* ---- from a process's nodes ---------------------------------------------------------------------------- */

/* The call tree and the modules of a running process grow. */
static struct process_map *map_of(struct stacks *s, const struct process *p)
{
	if (vec_reserve(s->maps, s->map_count, p->id + 1ul))
		return NULL;
	struct process_map *map = &s->maps[p->id];
	const uint32_t nodes = p->node_end > p->node_base ? p->node_end - p->node_base : 0;
	if (vec_sparse(map->ids, map->id_room, nodes) || vec_reserve(map->modules, map->module_room, p->module_count))
		return NULL;
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
	if (!map || node < p->node_base || node >= p->node_end)
		return NULL;
	return &map->ids[node - p->node_base];
}

static struct symbol_module *module_of(struct stacks *s, const struct process *p, const struct process_module *m)
{
	while (p->parent && (m < p->modules || m >= p->modules + p->module_count))
		p = p->parent; /* what a parent had mapped at the fork */
	struct process_map *map = map_of(s, p);
	size_t i = (size_t)(m - p->modules);
	if (!map || i >= p->module_count)
		return NULL;
	if (map->modules[i])
		return map->modules[i];
	map->modules[i] = symbols_module(s->symbols,
					 &(struct module_id){
						 .path = m->path,
						 .build_id = m->build_id,
						 .build_id_bytes = m->build_id_bytes,
						 .seen_ns = p->start_real_ns + (process_ns(p, m->ticks) - p->start_ns),
						 .any_build_id = *p->imported != '\0',
					 });
	if (map->modules[i] && !strcmp(m->path, p->exe))
		symbols_show_as(map->modules[i], p->program);
	return map->modules[i];
}

const struct frame *stacks_data(struct stacks *s, const struct process *p, uint64_t address)
{
	const struct frame *frames;
	for (unsigned i = p->module_count; i-- > 0;) {
		const struct process_module *m = &p->modules[i];
		if (address < m->start || address >= m->end || m->until_ticks != UINT64_MAX)
			continue;
		struct symbol_module *module = module_of(s, p, m);
		return module && symbols_find(s->symbols, module, address - m->bias, &frames) ? frames : NULL;
	}
	return p->parent ? stacks_data(s, p->parent, address) : NULL;
}

static uint32_t python_place(struct stacks *s, const struct process *p, uint64_t pc)
{
	struct seen *seen = &s->python_seen[(hash_words(pc, p->id) >> 32) % PYTHON_SEEN];
	if (seen->process != p || seen->pc != pc) {
		uint64_t address = (uintptr_t)python_frame(s->python, p, pc);
		*seen = (struct seen){ p, pc,
				       stacks_place(s, PYTHON, address | (pc & MT_PY_ENTRY ? PYTHON_ENTRY : 0)) };
	}
	return seen->place;
}

static uint64_t address_of(const struct mt_node *n, const struct process_module *m)
{
	uint64_t pc = n->flags & MT_NODE_EXACT ? n->pc : n->pc - 1;
	return m ? pc - m->bias : pc;
}

static uint32_t place_of_node(struct stacks *s, const struct process *p, uint32_t node)
{
	const struct mt_node *n = process_node(p, node);
	if (!n)
		return 0;
	if (n->flags & MT_NODE_PYTHON)
		return python_place(s, p, n->pc);
	const struct process_module *m = reader_module_of(p, node);
	return stacks_place(s, m ? module_of(s, p, m) : NULL, address_of(n, m));
}

/* In place of a node's id: it is not merged yet, but its place is known. */
#define NOTED (1u << 31)

void stacks_prepare(struct stacks *s, const struct process *p, uint32_t node)
{
	uint32_t *known;
	for (const struct mt_node *n; node && (n = process_node(p, node)); node = n->parent) {
		known = known_id(s, owner_of(p, node), node);
		if (!known || *known)
			return;
		uint32_t place = place_of_node(s, owner_of(p, node), node);
		*known_id(s, owner_of(p, node), node) = NOTED | place;
	}
}

void stacks_prepare_all(struct stacks *s, const struct process *p)
{
	for (uint32_t node = p->node_end; node-- > p->node_base;)
		stacks_prepare(s, p, node);
}

/* The stack of one node of the process's tree. */
static uint32_t merge_stack(struct stacks *s, const struct process *p, uint32_t node)
{
	size_t count = 0;
	uint32_t id = 0;
	for (const struct mt_node *n; node && (n = process_node(p, node)); node = n->parent) {
		uint32_t *known = known_id(s, owner_of(p, node), node);
		if (known && *known && !(*known & NOTED)) {
			id = *known;
			break;
		}
		if (!stacks_push(s, count, node))
			break;
		count++;
	}
	while (count--) {
		const struct process *owner = owner_of(p, s->chain[count]);
		uint32_t *known = known_id(s, owner, s->chain[count]);
		bool noted = known && *known & NOTED;
		id = stacks_node(s, id, noted ? *known & ~NOTED : place_of_node(s, owner, s->chain[count]));
		if (known)
			*known = id;
	}
	return id;
}

uint32_t stacks_of(struct stacks *s, const struct process *p, uint32_t node, uint32_t node2)
{
	uint32_t native = merge_stack(s, p, node);
	uint32_t pair = node2 ? stacks_pair(s, native, merge_stack(s, p, node2)) : 0;
	return pair ? PAIR | pair : native;
}

uint32_t stacks_of_site(struct stacks *s, const struct process *p, uint32_t site, uint32_t node, uint32_t node2)
{
	struct process_map *map = map_of(s, p);
	if (!map || vec_reserve(map->sites, map->site_room, site + 1ul))
		return stacks_of(s, p, node, node2);
	if (!map->sites[site]) {
		uint32_t id = stacks_of(s, p, node, node2);
		s->maps[p->id].sites[site] = id;
	}
	return s->maps[p->id].sites[site];
}

uint32_t stacks_merged(struct stacks *s, uint32_t id)
{
	if (!(id & PAIR))
		return id;
	struct triple pair = *pair_at(s, id);
	if (!pair.more) {
		pair.more = stacks_spliced(s, pair.a, pair.b);
		s->pairs.list[id & ~PAIR].more = pair.more; /* only now: the list may have moved */
	}
	return pair.more;
}

uint32_t stacks_count(const struct stacks *s)
{
	return s->nodes.table.count;
}

uint32_t stacks_outer(const struct stacks *s, uint32_t id)
{
	return outer_of(s, id);
}

struct stack_gaps stacks_gaps(const struct stacks *s)
{
	struct stack_gaps gaps = { 0 };
	for (struct symbol_module *m = NULL; (m = symbols_next(s->symbols, m));) {
		const char *path = symbols_path(m);
		if (path[0] != '/' || !symbols_is_used(m))
			continue;
		if (symbols_state(m) == SYMBOLS_MISSING) {
			gaps.missing++;
			gaps.missing_path = path;
		} else if (symbols_state(m) == SYMBOLS_REPLACED) {
			gaps.replaced++;
			gaps.replaced_path = path;
		} else if (symbols_state(m) == SYMBOLS_GIVEN_UP) {
			gaps.given_up++;
			gaps.given_up_path = path;
			gaps.given_up_why = symbols_why(m);
		}
	}
	return gaps;
}
