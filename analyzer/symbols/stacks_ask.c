/* Asking the frames of stacks, each place once. */
#include "analyzer/symbols/stacks_internal.h"

#include "analyzer/util/vec.h"

enum { UNASKED = 0, NOTHING = 1, MOST_ANSWERS = UINT16_MAX - 1 };

static struct memo *memo_of(struct stacks *s, enum stack_memo which)
{
	struct memo *m = s->memos[which] ? s->memos[which] : (s->memos[which] = calloc(1, sizeof(*m)));
	if (!m || vec_reserve(m->said, m->said_room, 2) || vec_grow(m->nodes, m->node_room, s->nodes.table.count) ||
	    vec_reserve(m->places, m->place_room, s->place_table.count))
		return NULL;
	m->said_count = m->said_count ? m->said_count : 2;
	return m;
}

static uint16_t number_of(struct memo *m, const void *said)
{
	size_t n = NOTHING;
	while (n < m->said_count && m->said[n] != said)
		n++;
	if (n < m->said_count)
		return (uint16_t)n;
	if (n > MOST_ANSWERS || vec_reserve(m->said, m->said_room, n + 1))
		return NOTHING;
	m->said[m->said_count++] = said;
	return (uint16_t)n;
}

static uint16_t ask_place(struct stacks *s, struct memo *m, uint32_t place, stack_ask *ask, void *arg)
{
	if (m->places[place] == UNASKED) {
		const struct place *p = stacks_place_facts(s, place);
		const void *said = NULL;
		for (size_t i = 0; !said && i < p->frame_count; i++)
			said = ask(arg, &p->frames[i]);
		m->places[place] = number_of(m, said);
	}
	return m->places[place];
}

/* Outwards until a node is known or says something, then back. */
static const void *ask_outwards(struct stacks *s, uint32_t id, enum stack_memo memo, bool stop, stack_ask *ask,
				void *arg)
{
	struct memo *m = memo_of(s, memo);
	uint16_t said = NOTHING;
	size_t count = 0;
	if (!m)
		return NULL;
	for (; id && said == NOTHING; id = outer_of(s, id)) {
		if (m->nodes[id] != UNASKED || (stop && is_evaluator(s, id))) {
			said = m->nodes[id] != UNASKED ? m->nodes[id] : NOTHING;
			break;
		}
		said = ask_place(s, m, place_of(s, id), ask, arg);
		if (!stacks_push(s, count++, id))
			return NULL;
	}
	while (count--)
		m->nodes[s->chain[count]] = said;
	return m->said[said];
}

const void *stacks_ask(struct stacks *s, uint32_t id, enum stack_memo memo, enum stack_part part, stack_ask *ask,
		       void *arg)
{
	const struct triple *pair = pair_at(s, id);
	if (part == PART_PYTHON)
		return pair ? ask_outwards(s, pair->b, memo, false, ask, arg) : NULL;
	if (part == PART_ALONE && pair)
		return NULL;
	return ask_outwards(s, pair ? pair->a : id, memo, part == PART_INNER, ask, arg);
}
