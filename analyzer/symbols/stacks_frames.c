/* What is at a place, and walking outwards through it. */
#include "analyzer/symbols/stacks_internal.h"

void stacks_look_ahead(struct stacks *s, symbols_progress *progress)
{
	size_t count = 0, most = s->place_table.count - s->looked_ahead;
	struct symbol_place *list = malloc(most * sizeof(*list) + 1);
	for (uint32_t i = s->looked_ahead; list && i < s->place_table.count; i++)
		if (s->places[i].module && s->places[i].module != PYTHON && !(s->places[i].classes & CLASSES_KNOWN))
			list[count++] = (struct symbol_place){ .module = s->places[i].module,
							       .address = s->places[i].address,
							       .number = i };
	if (list)
		symbols_look_ahead(s->symbols, list, count, progress);
	for (size_t i = 0; i < count; i++) {
		s->places[list[i].number].frames = list[i].frames;
		s->places[list[i].number].frame_count = list[i].count;
	}
	s->looked_ahead = s->place_table.count;
	free(list);
}

size_t stacks_frames(struct stacks *s, uint32_t id, const struct frame **frames)
{
	const struct place *p = stacks_place_facts(s, place_of(s, stacks_merged(s, id)));
	*frames = p->frames;
	return p->frame_count;
}

static enum frame_class class_of(struct stacks *s, uint32_t id, size_t i)
{
	const struct place *p = stacks_place_facts(s, place_of(s, id));
	if (i >= CLASSES_KEPT)
		return frame_classify(&p->frames[i]);
	return p->classes >> i * CLASS_BITS & ((1 << CLASS_BITS) - 1);
}

bool stack_step(struct stacks *s, struct stack_walk *w)
{
	w->index++;
	while (w->index >= w->count) { /* a place may have no frames: an evaluator that has left its frame */
		if (!w->next)
			return false;
		w->id = stacks_merged(s, w->next);
		w->count = stacks_frames(s, w->id, &w->frames);
		w->index = 0;
		w->next = outer_of(s, w->id);
	}
	w->frame = &w->frames[w->index];
	w->class = class_of(s, w->id, w->index);
	return true;
}

bool frame_hidden(const struct frame *f, unsigned flags)
{
	if (python_thread(f))
		return false;
	return flags & (python_is_frame(f) ? STACK_NO_PYTHON : STACK_NO_NATIVE);
}

bool stack_shows(const struct stack_walk *w, unsigned flags)
{
	return !frame_hidden(w->frame, flags) && (w->class == FRAME_PLAIN || flags & STACK_ALL_FRAMES);
}

bool stack_step_shown(struct stacks *s, struct stack_walk *w, unsigned flags)
{
	while (stack_step(s, w))
		if (stack_shows(w, flags))
			return true;
	return false;
}
