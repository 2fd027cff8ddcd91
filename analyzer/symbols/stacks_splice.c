/* One stack of a native one and one of Python's. */
#include "analyzer/symbols/stacks_internal.h"

/* Puts Python frames from `*python` outwards at the end of the chain, up to the one that an evaluator was entered for
 * or all of them. */
static bool push_run(struct stacks *s, size_t *count, uint32_t *python, bool all)
{
	bool entry = false;
	while (*python && (all || !entry)) {
		uint64_t address = s->places[place_of(s, *python)].address;
		entry = address & PYTHON_ENTRY;
		if (address & ~(uint64_t)PYTHON_ENTRY && !stacks_push(s, (*count)++, *python))
			return false;
		*python = outer_of(s, *python);
	}
	return true;
}

static uint32_t add_chain(struct stacks *s, size_t from, size_t to, uint32_t id)
{
	while (to-- > from) {
		uint32_t place = place_of(s, s->chain[to]);
		const struct place *p = &s->places[place];
		if (p->module == PYTHON && p->address & PYTHON_ENTRY)
			place = stacks_place(s, PYTHON, p->address & ~(uint64_t)PYTHON_ENTRY);
		id = stacks_node(s, id, place);
	}
	return id;
}

/* Frame by frame from the inside: each evaluator frame is replaced by the Python frames it ran. What lies outwards of
 * an evaluator is the same for many stacks, so those parts, which are pairs as well, are remembered. */
uint32_t stacks_spliced(struct stacks *s, uint32_t native, uint32_t python)
{
	struct {
		uint32_t pair;
		size_t at;
	} parts[64];
	size_t count = 0, n = 0;
	uint32_t id = 0;
	for (bool first = true; native; native = outer_of(s, native), first = false) {
		bool evaluates = python && is_evaluator(s, native);
		if ((first || evaluates) && n < sizeof(parts) / sizeof(*parts)) {
			uint32_t pair = stacks_pair(s, native, python);
			if (pair && (id = s->pairs.list[pair].more) != 0)
				break;
			parts[n].pair = pair;
			parts[n++].at = count;
		}
		if (!(evaluates ? push_run(s, &count, &python, false) : stacks_push(s, count++, native)))
			return native;
	}
	if (!id && !push_run(s, &count, &python, true))
		return native;
	if (n == 0 && !id) /* Python's stack alone */
		return add_chain(s, 0, count, 0);
	for (size_t end = count; n > 0; end = parts[n].at) {
		id = add_chain(s, parts[--n].at, end, id);
		s->pairs.list[parts[n].pair].more = id;
	}
	return id;
}
