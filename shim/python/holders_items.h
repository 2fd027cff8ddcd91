/* What a snapshot's items are made of: holders_items.c, for holders_walk.c. */
#ifndef MT_PYTHON_HOLDERS_ITEMS_H
#define MT_PYTHON_HOLDERS_ITEMS_H

#include "shim/python/holders_internal.h"

/* Of PyTypeObject, where PyObject has 16 bytes; see mt_hold_field(). */
enum {
	TP_NAME = 24,
	TP_BASICSIZE = 32,
	TP_ITEMSIZE = 40,
	TP_FLAGS = 168,
	TP_TRAVERSE = 184,
	TP_WEAKLIST = 208,
	TP_MEMBERS = 240,
	TP_BASE = 256,
	TP_DICT = 264,
	TP_DICTOFFSET = 288,
};
enum {
	HAS_INLINE_VALUES = 1 << 2,   /* 3.13 */
	HAS_MANAGED_WEAKREF = 1 << 3, /* 3.12 */
	HAS_MANAGED_DICT = 1 << 4,    /* 3.11 */
	IS_HEAP = 1 << 9,
	HAVE_GC = 1 << 14,
	IS_LONG = 1 << 24,
	IS_TUPLE = 1 << 26,
	IS_BYTES = 1 << 27,
	IS_TEXT = 1 << 28,
	IS_DICT = 1 << 29,
	IS_TYPE = 1u << 31,
};

#define MT_HOLD_MAX_TEXT 200u

enum { NO_ITEMS, VAR_ITEMS, SET_ITEMS };

struct mt_hold_type {
	uintptr_t at;
	uint64_t flags;
	int64_t basic, item;
	int (*traverse)(void *, mt_visit *, void *);
	uint8_t skipped, no_words, scan, has_members, is_generator, is_greenlet;
	uint8_t items; /* enum: what says how many it has */
};
extern struct mt_hold_type *mt_hold_types; /* it moves as it grows */

/* References of the object that is looked at, the texts that name them (number + 1, or 0), and objects to visit yet:
 * what is one, and what only a word says is one. */
extern struct mt_hold_words mt_hold_edges, mt_hold_names, mt_hold_pending, mt_hold_maybes;

static inline uintptr_t mt_hold_field(unsigned offset)
{
	return offset + mt_holders_python.head - 16;
}

static inline uintptr_t mt_hold_type_of(uintptr_t object)
{
	return mt_word(object + mt_holders_python.head - 8);
}

/* Types and parts of the walk that faults have ended before. */
void mt_hold_skip(const uintptr_t *list, unsigned count);
int mt_hold_is_skipped(uintptr_t type);

/* Text of C, which has one number however often it is asked for: number + 1, or 0. */
uint32_t mt_hold_text_once(const char *text);

struct mt_hold_type *mt_hold_find_type(uintptr_t object);
int mt_hold_is_type(uintptr_t at);
int mt_hold_is_tracked(uintptr_t object, const struct mt_hold_type *t);
/* Nonzero = it was not seen before. */
int mt_hold_is_new(uintptr_t object);

#endif
