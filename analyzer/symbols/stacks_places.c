/* The tables of stacks: places, nodes of the merged tree and pairs, by number; and what lies at a place. */
#include "analyzer/symbols/stacks_internal.h"

#include "analyzer/util/vec.h"

char stacks_python_mark;

/* ---- tables ---------------------------------------------------------------------------------------------- */

/* Room for one more. */
static bool has_room(struct table *t, const void *list, hash_index_hash *hash)
{
	return !hash_index_is_full(&t->index, t->count) || hash_index_grow(&t->index, list, t->count - 1, hash) == 0;
}

static uint64_t hash_place(const void *list, uint32_t n)
{
	const struct place *p = (const struct place *)list + n;
	return hash_words((uintptr_t)p->module, p->address);
}

uint32_t stacks_place(struct stacks *s, struct symbol_module *module, uint64_t address)
{
	struct table *t = &s->place_table;
	uint64_t hash = hash_words((uintptr_t)module, address);
	if (!has_room(t, s->places, hash_place) || vec_reserve(s->places, s->place_room, t->count + 1ul))
		return 0;
	size_t at = hash_index_home(&t->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&t->index, hash, &at)); at = hash_index_after(&t->index, at))
		if (s->places[n].module == module && s->places[n].address == address)
			return n;
	s->places[t->count] = (struct place){ .module = module, .address = address };
	hash_index_set(&t->index, at, t->count, hash);
	return t->count++;
}

static uint64_t hash_triple(const void *list, uint32_t n)
{
	const struct triple *w = (const struct triple *)list + n;
	return hash_words(w->a, w->b);
}

/* 0: there is no memory. */
static uint32_t number_of(struct words *w, uint32_t a, uint32_t b)
{
	struct table *t = &w->table;
	uint64_t hash = hash_words(a, b);
	if (!has_room(t, w->list, hash_triple) || vec_reserve_raw(w->list, w->room, t->count + 1ul))
		return 0;
	size_t at = hash_index_home(&t->index, hash);
	for (uint32_t n; (n = hash_index_candidate(&t->index, hash, &at)); at = hash_index_after(&t->index, at))
		if (w->list[n].a == a && w->list[n].b == b)
			return n;
	w->list[t->count] = (struct triple){ a, b, 0 };
	hash_index_set(&t->index, at, t->count, hash);
	return t->count++;
}

uint32_t stacks_node(struct stacks *s, uint32_t outer, uint32_t place)
{
	uint32_t node = place ? number_of(&s->nodes, outer, place) : 0;
	return node ? node : outer;
}

uint32_t stacks_pair(struct stacks *s, uint32_t native, uint32_t python)
{
	return number_of(&s->pairs, native, python);
}

bool stacks_push(struct stacks *s, size_t count, uint32_t node)
{
	if (vec_reserve_raw(s->chain, s->chain_room, count + 1))
		return false;
	s->chain[count] = node;
	return true;
}

/* ---- what lies there ------------------------------------------------------------------------------------- */

static void look_up(struct stacks *s, struct place *p)
{
	if (p->module == PYTHON) {
		p->frames = (const struct frame *)(uintptr_t)(p->address & ~(uint64_t)PYTHON_ENTRY);
		p->frame_count = p->frames != NULL;
		return;
	}
	if (!p->frame_count)
		p->frame_count = (uint32_t)symbols_find(s->symbols, p->module, p->address, &p->frames);
	if (p->module)
		symbols_mark_used(p->module);
}

bool frame_is_ours(const struct frame *f)
{
	static const char *const others[] = { "libpython", "/bin/python", "/lib-dynload/", "libffi", "libstdc++" };
	if (!f->library || !f->name)
		return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strstr(f->library, others[i]))
			return false;
	bool package = strstr(f->library, "-packages/"),
	     system = !strncmp(f->library, "/usr/lib", 8) || !strncmp(f->library, "/lib", 4);
	return package ? f->file != NULL : !system;
}

const struct place *stacks_place_facts(struct stacks *s, uint32_t place)
{
	struct place *p = &s->places[place];
	if (p->classes & CLASSES_KNOWN)
		return p;
	look_up(s, p);
	p->classes = CLASSES_KNOWN;
	for (size_t k = 0; k < p->frame_count && k < CLASSES_KEPT; k++)
		p->classes |= (uint64_t)frame_classify(&p->frames[k]) << k * CLASS_BITS;
	p->own = p->frame_count && python_is_frame(p->frames) && !python_is_library(p->frames->file);
	p->ours = p->frame_count && p->module != PYTHON && frame_is_ours(&p->frames[p->frame_count - 1]);
	p->evaluator = python_is_evaluator(p->frames, p->frame_count);
	return p;
}
