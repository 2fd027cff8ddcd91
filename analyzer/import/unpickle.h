/*
 * A reader of Python's pickles that makes no objects and calls nothing: None, truth, numbers, texts, tuples, lists and
 * dictionaries are all it knows. A pickle with anything else is refused, so what a file says is never done.
 *
 * It keeps no whole: a dictionary or a list is handed to the caller once it is put into another, and what the caller
 * returns stands for it from then on, also where the pickle refers to it again. So a file of any size takes 4 bytes for
 * each value that it could refer to, its different texts, and what the caller keeps.
 *
 *   static const char *const keys[] = { "name", "line", NULL };
 *   struct unpickle_caller c = { .keys = keys, .whole = f, .arg = a };
 *   int e = unpickle(&input, &c);
 */
#ifndef MT_IMPORT_UNPICKLE_H
#define MT_IMPORT_UNPICKLE_H

#include "analyzer/import/input.h"

#define UNPICKLE_KEYS 32

enum value_kind {
	VALUE_NONE, /* also what is not said, and numbers with a fraction */
	VALUE_INT,  /* also True and False */
	VALUE_TEXT, /* n: its number; unpickle_text() */
	VALUE_PAIR, /* a tuple of two numbers below 16384: n is the first << 14, plus the second */
	VALUE_LIST, /* n: the list's number, if the caller made nothing else of it */
	VALUE_MINE, /* of the caller's: n, below 2^28 */
	VALUE_GONE, /* the caller has taken it: no list has it among its items */
	VALUE_OPEN, /* the reader's own */
};

struct value {
	enum value_kind kind;
	uint64_t n;
};

struct unpickle;

/* A dictionary or a list that is whole. */
struct unpickled {
	bool list;
	uint32_t number;           /* of the list, from 1 on */
	uint32_t into;             /* number of the list that it is put into; 0 = none */
	const struct value *items; /* of a list those that are not gone */
	size_t count;
	const struct value *fields; /* of a dictionary, by index in `keys` */
	const struct unpickle *reader;
};

struct unpickle_caller {
	const char *const *keys; /* of dictionaries those that matter; at most UNPICKLE_KEYS, then NULL */
	/* Sets *as (VALUE_NONE, of a list VALUE_LIST). 0 or an error, which ends it. */
	int (*whole)(void *arg, const struct unpickled *u, struct value *as);
	void *arg;
};

/* Borrowed; NULL if it is none. */
const char *unpickle_text(const struct unpickle *u, struct value v);

/* What is not a pickle, or holds other things, is -MT_EFORMAT. */
int unpickle(struct input *in, const struct unpickle_caller *caller);

#endif
