/* Whose a stack is. */
#include "analyzer/symbols/stacks_internal.h"
#include "analyzer/util/vec.h"

#include <string.h>

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

/* In `more` of a node: the place that speaks for it, and whether it is known and of the program itself. */
#define VOICED (1u << 31)
#define OWN    (1u << 30)

static bool speaks(struct stacks *s, uint32_t place, bool own)
{
	const struct place *p = stacks_place_facts(s, place);
	return p->module == PYTHON && p->frame_count && !(p->classes & ((1 << CLASS_BITS) - 1)) && (!own || p->own);
}

/* What Python says of a stack: its innermost frame of the program itself, else of a library; a thread without Python
 * frames is named by its outermost frame. Known for every stack outwards of one that was asked for, so each node is
 * visited once. */
static const struct frame *voice_of(struct stacks *s, uint32_t id)
{
	struct triple *nodes = s->nodes.list;
	size_t count = 0;
	for (; id && !(nodes[id].more & VOICED); id = nodes[id].a)
		if (!stacks_push(s, count++, id))
			return NULL;
	uint32_t voice = id ? nodes[id].more : VOICED;
	while (count--) {
		id = s->chain[count];
		uint32_t place = nodes[id].b;
		if (speaks(s, place, voice & OWN))
			voice = VOICED | (s->places[place].own ? OWN : 0) | place;
		nodes[id].more = voice;
	}
	uint32_t place = voice & ~(VOICED | OWN);
	return place ? s->places[place].frames : NULL;
}

/* A line that somebody wrote for this program, and no template of a library's. */
static bool is_own_line(const struct stacks *s, const struct stack_walk *w)
{
	return w->class == FRAME_PLAIN && w->frame->file && s->places[place_of(s, w->id)].ours &&
	       strncmp(w->frame->file, "/usr/", 5) != 0;
}

/* Where the innermost function is of a library without lines, or the system's, the line that called it speaks. */
static struct stack_site own_site(struct stacks *s, uint32_t id, unsigned flags, struct stack_site site)
{
	const char *library = site.frame ? site.frame->library : NULL;
	for (struct stack_walk w = { .next = id }; library && stack_step(s, &w);)
		if (stack_shows(&w, flags) && is_own_line(s, &w))
			return strcmp(w.frame->library, library) == 0
				       ? site
				       : (struct stack_site){ .frame = w.frame, .callee = site.frame };
	return site;
}

/* The frames that Python does not speak for, from the inside; as few as it takes. */
static struct stack_site native_site(struct stacks *s, uint32_t id, unsigned flags, const struct frame *voice)
{
	struct stack_site site = { 0 };
	struct fallback f = { 0 };
	for (struct stack_walk w = { .next = id }; !site.caller && stack_step(s, &w);) {
		if (frame_hidden(w.frame, flags))
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
	return voice ? site : own_site(s, id, flags, site);
}

/* A program in Python is read by its own lines: the innermost one, and what that called of a library in Python, else
 * who called it, else what it called that is none of Python. */
static struct stack_site python_site(struct stacks *s, uint32_t id, unsigned flags, const struct frame *voice,
				     const struct frame *inner)
{
	struct stack_site site = { .frame = voice };
	bool outside = false;
	for (struct stack_walk w = { .next = id }; !site.caller && stack_step(s, &w);) {
		if (w.frame == voice && site.callee)
			break;
		outside = outside || w.frame == voice;
		if (w.frame == voice || w.class != FRAME_PLAIN || !python_is_frame(w.frame) || !stack_shows(&w, flags))
			continue;
		if (!outside)
			site.callee = site.callee ? site.callee : w.frame;
		else if (s->places[s->nodes.list[w.id].b].own &&
			 (w.frame->file != voice->file || w.frame->line != voice->line))
			site.caller = w.frame;
	}
	if (!site.callee && !site.caller && inner != voice)
		site.callee = inner;
	return site;
}

/* Python's lines speak for a stack wherever it can, and need no splicing to be found. */
const struct frame *stacks_site_frame(struct stacks *s, uint32_t id, unsigned flags)
{
	const struct triple *pair = flags & STACK_NO_PYTHON ? NULL : pair_at(s, id);
	const struct frame *voice = pair ? voice_of(s, pair->b) : NULL;
	return voice && python_is_frame(voice) ? voice : stacks_site(s, id, flags).frame;
}

/* The native function that the thread was started with, or what that called first. */
static const struct frame *start_of(struct stacks *s, uint32_t id)
{
	const struct frame *start = NULL;
	for (struct stack_walk w = { .next = id }; stack_step(s, &w);)
		if (w.class == FRAME_PLAIN && w.frame->name && !python_is_frame(w.frame) && !python_thread(w.frame))
			start = w.frame;
	return start;
}

struct stack_site stacks_site(struct stacks *s, uint32_t id, unsigned flags)
{
	id = stacks_merged(s, id);
	const struct frame *voice = voice_of(s, id);
	if (voice && flags & STACK_NO_PYTHON && python_is_frame(voice))
		voice = NULL;
	struct stack_site site = native_site(s, id, flags, voice);
	if (voice && python_thread(voice))
		voice = python_thread_role(s->python, voice, start_of(s, id));
	if (voice && python_thread(voice))
		site.caller = same_name(site.frame, voice) ? site.caller : voice;
	else if (voice && python_is_frame(voice))
		site = python_site(s, id, flags, voice, site.frame);
	return site;
}

static int add_frame(struct frame_list *list, const struct frame *f)
{
	int e = vec_reserve(list->frames, list->room, list->count + 1);
	if (e == 0)
		list->frames[list->count++] = f;
	return e;
}

int stacks_list_shown(struct stacks *s, uint32_t id, unsigned flags, struct frame_list *list)
{
	int e = 0;
	list->count = 0;
	for (struct stack_walk w = { .next = id }; e == 0 && stack_step_shown(s, &w, flags);)
		e = add_frame(list, w.frame);
	const struct frame *only = e < 0 || list->count ? NULL : stacks_site(s, id, flags).frame;
	return only ? add_frame(list, only) : e;
}

const struct frame *stacks_extension(struct stacks *s, uint32_t id)
{
	const struct frame *own = NULL;
	for (struct stack_walk w = { .next = stacks_merged(s, id) }; stack_step(s, &w);) {
		if (w.frame->language && !strcmp(w.frame->language, "python"))
			return own;
		own = !own && w.class == FRAME_PLAIN && frame_is_ours(w.frame) ? w.frame : own;
	}
	return NULL;
}
