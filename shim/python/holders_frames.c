/*
 * What running functions hold. To the collector an object that only a local variable of a running frame refers to has
 * no referrer: since 3.11 such a frame is no object, and before that it is not tracked.
 *
 * Offsets: Include/internal/pycore_frame.h and Include/cpython/code.h of 3.11 and 3.12; of 3.13 and later those that
 * the interpreter says of itself (Include/internal/pycore_debug_offsets.h, in the table that pyfind.c reads); before
 * 3.11 Include/cpython/frameobject.h. The values above the locals (arguments of a call that is under way) are
 * candidates: how many there are is not kept while a frame runs.
 */
#include <string.h>

#include "shim/python/holders_items.h"
#include "shim/python/pycode.h"

#define MAX_FRAMES 100000u
#define MAX_STATES 100000u
#define MAX_LOCALS 4096u
#define CLASSIC(p) ((p)->version < 0x30b)

/* Of code before 3.11. */
enum { CODE_LOCALS = 28, CODE_STACK = 32, CODE_VARS = 72, CODE_FREE = 80, CODE_CELLS = 88 };

static uintptr_t untag(uintptr_t word)
{
	return word & ~(uintptr_t)7;
}

static uint64_t length(uintptr_t tuple)
{
	uint64_t n = tuple ? mt_word(tuple + mt_holders_python.head) : 0;

	return n < MAX_LOCALS ? n : MAX_LOCALS;
}

static uintptr_t item(uintptr_t tuple, uint64_t i)
{
	/* behind its size; since 3.14 its hash comes first (Include/cpython/tupleobject.h) */
	return mt_word(tuple + mt_holders_python.head + (mt_holders_python.version >= 0x30e ? 16 : 8) + 8 * i);
}

static uint64_t locals_of(uintptr_t code)
{
	const struct mt_holders_python *p = &mt_holders_python;

	if (!CLASSIC(p))
		return length(mt_word(code + p->code_names));
	return length(mt_word(code + CODE_VARS)) + length(mt_word(code + CODE_CELLS)) +
	       length(mt_word(code + CODE_FREE));
}

static uintptr_t name_of(uintptr_t code, uint64_t i)
{
	static const unsigned lists[] = { CODE_VARS, CODE_CELLS, CODE_FREE };

	if (!CLASSIC(&mt_holders_python))
		return item(mt_word(code + mt_holders_python.code_names), i);
	for (int k = 0; k < 3; k++) {
		uint64_t n = length(mt_word(code + lists[k]));
		if (i < n)
			return item(mt_word(code + lists[k]), i);
		i -= n;
	}
	return 0;
}

static int line_of(uintptr_t frame, uintptr_t code)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	int64_t offset;

	if (l->code_instr != MT_PY_NONE)
		offset = (int64_t)(mt_word(frame + l->frame_instr) - code - l->code_instr);
	else
		offset = *(const int32_t *)(frame + l->frame_instr) * (mt_pyruntime->version == 0x30a ? 2 : 1);
	if (offset < 0 || offset > INT32_MAX)
		offset = 0;
	return mt_holders_python.line_of ? mt_holders_python.line_of((void *)code, (int)offset) : 0;
}

/* Function, code and namespace are references of a frame, too, in places that changed with each version. */
static uint64_t add_candidate(uintptr_t *at, uint64_t count, uintptr_t slot)
{
	uintptr_t value = mt_hold_readable(slot, 8) ? untag(mt_word(slot)) : 0;

	if (value && mt_hold_is_object(value))
		at[count++] = value;
	return count;
}

static void put_frame(uintptr_t frame, uintptr_t code, uint32_t thread)
{
	const struct mt_holders_python *p = &mt_holders_python;
	uintptr_t slot = frame + p->frame_locals, names[512], at[512];
	uint64_t n = locals_of(code), count = 0, stack = *(const uint32_t *)(code + p->code_stack), candidates = 0;
	uint32_t file = mt_hold_text_of(mt_word(code + mt_pyruntime->at.code_filename));
	uint32_t function = mt_hold_text_of(mt_word(code + mt_pyruntime->at.code_name));

	for (uint64_t i = 0; i < n && count < 512; i++) {
		uintptr_t value = untag(mt_word(slot + 8 * i));
		if (!value)
			continue;
		names[count] = mt_hold_text_of(name_of(code, i));
		at[count++] = value;
		mt_hold_meet(value);
	}
	mt_hold_number(MT_HOLD_FRAME);
	mt_hold_address(frame);
	mt_hold_number(thread);
	mt_hold_number((uint64_t)(line_of(frame, code) < 0 ? 0 : line_of(frame, code)));
	mt_hold_number(file);
	mt_hold_number(function);
	mt_hold_number(count);
	for (uint64_t i = 0; i < count; i++) {
		mt_hold_number(names[i]);
		mt_hold_address(at[i]);
	}
	for (uintptr_t i = frame; i < frame + p->frame_locals && candidates < 64; i += 8)
		candidates = add_candidate(at, candidates, i);
	for (uint64_t i = n; i < n + stack && candidates < 512; i++)
		candidates = add_candidate(at, candidates, slot + 8 * i);
	mt_hold_number(candidates);
	for (uint64_t i = 0; i < candidates; i++)
		mt_hold_address(at[i]);
	for (uint64_t i = 0; i < candidates; i++)
		mt_hold_meet_maybe(at[i]);
}

/* One of the interpreter's own, not that of a frame object which has outlived it, in memory that can be read. */
static int is_frame(uintptr_t frame)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	const struct mt_holders_python *p = &mt_holders_python;
	uintptr_t code;

	if (frame & 7 || mt_hold_place(frame) != MT_PLACE_HEAP || !mt_hold_readable(frame, p->frame_locals) ||
	    (l->frame_owner != MT_PY_NONE && *(const uint8_t *)(frame + l->frame_owner) > 1))
		return 0;
	code = untag(mt_word(frame + l->frame_code));
	return mt_hold_is_object(code) && mt_hold_type_of(code) == mt_pyruntime->code_type &&
	       mt_hold_readable(frame,
				p->frame_locals + 8 * (locals_of(code) + *(const uint32_t *)(code + p->code_stack)));
}

/* All frames outwards. `sure`: they are a thread's that lives; else each is checked. */
static void walk_frames(uintptr_t frame, uint32_t thread, int sure)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;

	for (uint32_t i = 0; frame && i < MAX_FRAMES && !mt_hold_is_cut(); i++) {
		if (!sure && !is_frame(frame))
			return;
		uintptr_t code = untag(mt_word(frame + l->frame_code));
		int mark = l->frame_owner != MT_PY_NONE && *(const uint8_t *)(frame + l->frame_owner) > 2;
		if (!mark && mt_word(code + l->object_type) == mt_pyruntime->code_type)
			put_frame(frame, code, thread);
		frame = mt_word(frame + l->frame_previous);
	}
}

static void walk_thread(uintptr_t state, uint32_t thread)
{
	const struct mt_pylayout *l = &mt_pyruntime->at;
	uintptr_t frame = mt_word(state + l->state_frame);

	if (frame && l->cframe_frame != MT_PY_NONE)
		frame = mt_word(frame + l->cframe_frame);
	walk_frames(frame, thread, 1);
}

/* Of greenlets that wait: their innermost frames' objects. */
static struct mt_hold_words waiting;

/* A greenlet's own memory (class Greenlet, struct PythonState of greenlet 1 to 3) has its innermost frame while it
 * waits, and does not tell the collector. Nobody else has these frames: the thread's list has those of the running
 * one. */
void mt_hold_greenlet(uintptr_t object, uintptr_t bytes)
{
	enum { OWN_BYTES = 512 };

	for (uintptr_t at = object + mt_holders_python.head; at + 8 <= object + bytes; at += 8) {
		uintptr_t own = mt_word(at);
		if (own & 7 || mt_hold_place(own) != MT_PLACE_HEAP || mt_hold_is_object(own) ||
		    !mt_hold_readable(own, OWN_BYTES))
			continue;
		for (uintptr_t i = own; i < own + OWN_BYTES; i += 8) {
			uintptr_t word = mt_word(i);
			if (word && mt_hold_is_object(word) && mt_hold_type_of(word) == mt_holders_python.frame)
				mt_hold_push(&waiting, word);
		}
	}
}

static void walk_waiting(uint32_t thread)
{
	const struct mt_holders_python *p = &mt_holders_python;

	for (size_t i = 0; i < waiting.count; i++)
		walk_frames(CLASSIC(p) ? waiting.at[i] : mt_word(waiting.at[i] + p->head + 8), thread++, 0);
}

void mt_hold_frames(void)
{
	const struct mt_holders_python *p = &mt_holders_python;
	uint32_t thread = 0;

	for (char *interp = p->interp_head(); interp; interp = p->interp_next(interp))
		for (char *state = p->thread_head(interp); state && thread < MAX_STATES; state = p->thread_next(state))
			walk_thread((uintptr_t)state, thread++);
	walk_waiting(thread);
}

static void name_locals(uintptr_t frame, uintptr_t code)
{
	for (uint64_t i = 0; i < locals_of(code); i++) {
		uintptr_t value = untag(mt_word(frame + mt_holders_python.frame_locals + 8 * i));
		if (value)
			mt_hold_name(value, mt_hold_text_of(name_of(code, i)));
	}
}

/* A generator (coroutine, ...) has its frame within, a word of which is its code; of two it is the last. */
uint32_t mt_hold_generator(uintptr_t object, uintptr_t bytes)
{
	const struct mt_holders_python *p = &mt_holders_python;
	uintptr_t code = 0, frame = 0;

	for (uintptr_t at = object + p->head; at < object + bytes; at += 8) {
		uintptr_t word = untag(mt_word(at));
		if (word && mt_hold_is_object(word) &&
		    mt_word(word + mt_pyruntime->at.object_type) == mt_pyruntime->code_type) {
			code = word;
			frame = at - mt_pyruntime->at.frame_code;
		}
	}
	if (!code)
		return 0;
	if (!CLASSIC(p))
		name_locals(frame, code);
	return mt_hold_code_label(code);
}

/* PyFrameObject since 3.11: the frame that it stands for is behind f_back. */
uint32_t mt_hold_frame_object(uintptr_t object)
{
	const struct mt_holders_python *p = &mt_holders_python;
	uintptr_t frame = CLASSIC(p) ? object : mt_word(object + p->head + 8), code;

	if (!mt_hold_readable(frame, p->frame_locals))
		return 0;
	code = untag(mt_word(frame + mt_pyruntime->at.frame_code));
	if (!mt_hold_is_object(code) || mt_word(code + mt_pyruntime->at.object_type) != mt_pyruntime->code_type)
		return 0;
	name_locals(frame, code);
	return mt_hold_code_label(code);
}

/* Variables from outside are the last ones of a function's code. */
void mt_hold_closure(uintptr_t code, uintptr_t closure)
{
	static char text[MT_PYCODE_TEXT + 8] = "closure ";
	uint64_t n, all;

	if (!mt_hold_is_object(code) || mt_hold_type_of(code) != mt_pyruntime->code_type ||
	    !mt_hold_is_object(closure) || mt_hold_type_of(closure) != mt_holders_python.tuple)
		return;
	n = length(closure);
	all = locals_of(code);
	for (uint64_t i = 0; i < n && n <= all; i++) {
		mt_pycode_text(mt_pyruntime, name_of(code, all - n + i), text + 8);
		mt_hold_edge(mt_hold_text(text, strlen(text)), item(closure, i));
	}
}
