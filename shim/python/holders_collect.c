/*
 * All objects that the collector tracks. Since 3.12 the interpreter visits them itself. Before that they are in lists
 * whose heads are found by what they look like (Include/internal/pycore_gc.h, struct _gc_runtime_state of 3.8 to 3.11;
 * up to 3.13 and again from 3.14.5 on it is the same): three generations of 24 bytes, each the head of a circular list,
 * then a pointer to the first of them, then the permanent generation of gc.freeze(). 3.8 has them in _PyRuntime, later
 * versions in the interpreter's state.
 */
#include "shim/python/holders_internal.h"

#define GENERATION 24u
#define MAX_STATE  (256u << 10) /* bytes of a state that are searched */
#define MAX_LIST   (1ull << 32)

static int is_head(uintptr_t at)
{
	uintptr_t next = mt_word(at), previous = mt_word(at + 8) & ~(uintptr_t)3;

	return mt_hold_readable(next, 16) && mt_hold_readable(previous, 16) &&
	       (mt_word(next + 8) & ~(uintptr_t)3) == at && mt_word(previous) == at;
}

/* Where the generations are, or 0. */
static uintptr_t find_generations(uintptr_t from)
{
	for (uintptr_t at = from + 3 * GENERATION; at < from + MAX_STATE && mt_hold_readable(at, 8 + GENERATION);
	     at += 8) {
		uintptr_t first = at - 3 * GENERATION;
		if (mt_word(at) == first && is_head(first) && is_head(first + GENERATION) &&
		    is_head(first + 2 * GENERATION) && is_head(at + 8))
			return first;
	}
	return 0;
}

/* Their number; into `out` unless that is NULL. */
static uint64_t collect_list(uintptr_t head, struct mt_hold_words *out)
{
	uint64_t n = 0;

	for (uintptr_t at = mt_word(head); at != head && n < MAX_LIST; at = mt_word(at), n++)
		if (out && !mt_hold_push(out, at + 16))
			break;
	return n;
}

static int on_object(void *object, void *out)
{
	return mt_hold_push(out, (uintptr_t)object);
}

/* Of one interpreter; objects too unless `out` is NULL. */
static void collect_interpreter(uintptr_t state, struct mt_hold_words *out, struct mt_hold_head *head)
{
	uintptr_t first = find_generations(state);

	if (!first)
		return;
	for (unsigned i = 0; out && i < 3; i++)
		collect_list(first + i * GENERATION, out);
	head->frozen += collect_list(first + 3 * GENERATION + 8, out);
	if (!mt_holders_python.gc_is_enabled && !*(const int32_t *)(first - 12)) /* enabled, debug, generations */
		head->flags |= MT_HOLD_GC_OFF;
}

void mt_hold_collect(struct mt_hold_words *out, struct mt_hold_head *head)
{
	const struct mt_holders_python *p = &mt_holders_python;
	struct mt_hold_words *lists = p->visit_objects ? NULL : out;

	if (p->version < 0x309)
		collect_interpreter(p->runtime, lists, head);
	else
		for (void *interp = p->interp_head(); interp; interp = p->interp_next(interp))
			collect_interpreter((uintptr_t)interp, lists, head);
	if (p->visit_objects)
		p->visit_objects(on_object, out);
}
