#include "analyzer/import/unpickle.h"

#include "analyzer/util/error.h"
#include "analyzer/util/hash_index.h"
#include "analyzer/util/pickle_opcode.h"
#include "analyzer/util/vec.h"
#include "format/fnv.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_TEXT = 1 << 24, /* of a longer one only the beginning is kept */
	KEPT_TEXT = 1 << 14,
	MAX_STACK = 1 << 22,
	MAX_OPEN = 1 << 18,
	MAX_MEMO = 1 << 28,
	MEMO_BITS = 28,
};

/* A dictionary or a list. It is given away, and used for another, when it is whole and nothing on the stack is it. */
struct open_value {
	bool list, whole;
	uint32_t refs;   /* on the stack */
	uint32_t memo;   /* plus 1; 0 = nobody refers to it */
	uint32_t number; /* of a list */
	struct value as; /* once it is whole */
	struct value *items;
	size_t count, room;
	struct value fields[UNPICKLE_KEYS];
};

struct text {
	char *bytes;
	uint64_t hash;
	uint32_t key; /* index in the caller's keys, plus 1 */
};

struct unpickle {
	struct input *in;
	const struct unpickle_caller *caller;
	struct value *stack;
	size_t count, room;
	size_t *marks;
	size_t mark_count, mark_room;
	uint32_t *memo; /* kind << 28 | n */
	size_t memo_count, memo_room;
	struct open_value **open;
	size_t open_count, open_room;
	uint32_t *idle; /* numbers of `open` that are free */
	size_t idle_count, idle_room;
	struct text *texts; /* by number, from 0 */
	size_t text_count, text_room;
	struct hash_index text_index;
	uint32_t lists;
	char *scratch;
};

static const struct value nothing = { VALUE_NONE, 0 };

static int bad(const struct unpickle *u, const char *why)
{
	return input_bad(u->in, why);
}

/* ---- texts ----------------------------------------------------------------------------------------------- */

const char *unpickle_text(const struct unpickle *u, struct value v)
{
	return v.kind == VALUE_TEXT ? u->texts[v.n].bytes : NULL;
}

static uint64_t text_hash(const void *things, uint32_t number)
{
	return ((const struct unpickle *)things)->texts[number - 1].hash;
}

static uint32_t key_of(const struct unpickle *u, const char *text)
{
	for (uint32_t i = 0; u->caller->keys[i]; i++)
		if (strcmp(u->caller->keys[i], text) == 0)
			return i + 1;
	return 0;
}

/* A text with a NUL in it ends there. */
static int intern(struct unpickle *u, const char *bytes, struct value *out)
{
	uint64_t hash = mt_fnv_stir(mt_fnv_text(MT_FNV_START, bytes));
	int e = hash_index_is_full(&u->text_index, u->text_count)
			? hash_index_grow(&u->text_index, u, u->text_count, text_hash)
			: 0;
	if (e || (e = vec_reserve_raw(u->texts, u->text_room, u->text_count + 1)) != 0)
		return e;
	size_t at = hash_index_home(&u->text_index, hash);
	for (uint32_t n; (n = hash_index_candidate(&u->text_index, hash, &at)) != 0;
	     at = hash_index_after(&u->text_index, at)) {
		if (strcmp(u->texts[n - 1].bytes, bytes) == 0) {
			*out = (struct value){ VALUE_TEXT, n - 1 };
			return 0;
		}
	}
	char *copy = strdup(bytes);
	if (!copy)
		return error_memory();
	*out = (struct value){ VALUE_TEXT, u->text_count };
	u->texts[u->text_count++] = (struct text){ copy, hash, key_of(u, copy) };
	hash_index_set(&u->text_index, at, u->text_count, hash);
	return u->text_count < 1u << MEMO_BITS ? 0 : bad(u, "has too many texts");
}

/* ---- the stack ------------------------------------------------------------------------------------------- */

static int push(struct unpickle *u, struct value v)
{
	if (u->count >= MAX_STACK)
		return bad(u, "is nested too deeply");
	int e = vec_reserve_raw(u->stack, u->room, u->count + 1);
	if (!e)
		u->stack[u->count++] = v;
	return e;
}

static struct open_value *open_of(const struct unpickle *u, struct value v)
{
	return v.kind == VALUE_OPEN ? u->open[v.n] : NULL;
}

static int push_open(struct unpickle *u, bool list)
{
	if (!u->idle_count) {
		if (u->open_count >= MAX_OPEN)
			return bad(u, "is nested too deeply");
		int e = vec_reserve_raw(u->open, u->open_room, u->open_count + 1);
		if (!e)
			e = vec_reserve_raw(u->idle, u->idle_room, u->open_count + 1);
		if (e || !(u->open[u->open_count] = calloc(1, sizeof(struct open_value))))
			return error_memory();
		u->idle[u->idle_count++] = (uint32_t)u->open_count++;
	}
	uint32_t number = u->idle[--u->idle_count];
	struct open_value *o = u->open[number];
	struct value *items = o->items;
	size_t room = o->room;
	*o = (struct open_value){ .list = list, .refs = 1, .items = items, .room = room };
	if (list)
		o->number = ++u->lists;
	return u->lists < 1u << MEMO_BITS ? push(u, (struct value){ VALUE_OPEN, number })
					  : bad(u, "has too many lists");
}

static void release(struct unpickle *u, struct value v)
{
	struct open_value *o = open_of(u, v);
	if (!o || --o->refs)
		return;
	if (o->memo && !o->whole)
		u->memo[o->memo - 1] = VALUE_NONE;
	if (o->room > 4096) { /* a long list; most are short */
		free(o->items);
		o->items = NULL;
		o->room = 0;
	}
	u->idle[u->idle_count++] = (uint32_t)v.n;
}

static uint32_t memo_of(struct value v)
{
	bool fits = v.kind != VALUE_INT && v.n < 1u << MEMO_BITS;
	return fits ? (uint32_t)v.kind << MEMO_BITS | (uint32_t)v.n : VALUE_NONE;
}

/* A value of the stack that is put into list `into`, or a dictionary: what stands for it. */
static int finish(struct unpickle *u, struct value *v, uint32_t into)
{
	struct open_value *o = open_of(u, *v);
	int e = 0;
	if (!o)
		return 0;
	if (!o->whole) {
		const struct unpickled what = { o->list, o->number, into, o->items, o->count, o->fields, u };
		o->whole = true;
		o->as = o->list ? (struct value){ VALUE_LIST, o->number } : nothing;
		e = u->caller->whole(u->caller->arg, &what, &o->as);
		if (o->memo)
			u->memo[o->memo - 1] = memo_of(o->as);
	}
	struct value as = o->as;
	release(u, *v);
	*v = as;
	return e;
}

static int pop(struct unpickle *u, struct value *v)
{
	size_t floor = u->mark_count ? u->marks[u->mark_count - 1] : 0;
	if (u->count <= floor)
		return bad(u, "takes a value that is not there");
	*v = u->stack[--u->count];
	return 0;
}

/* Where the values above the last mark begin; takes the mark away. */
static int take_mark(struct unpickle *u, size_t *from)
{
	if (!u->mark_count)
		return bad(u, "refers to a mark that is not there");
	*from = u->marks[--u->mark_count];
	return 0;
}

static int drop_to(struct unpickle *u, size_t from)
{
	while (u->count > from)
		release(u, u->stack[--u->count]);
	return 0;
}

/* ---- lists, dictionaries and tuples ---------------------------------------------------------------------- */

static struct open_value *target(const struct unpickle *u, size_t from, bool list)
{
	struct open_value *o = from ? open_of(u, u->stack[from - 1]) : NULL;
	return o && o->list == list && !o->whole ? o : NULL;
}

static int append(struct unpickle *u, size_t from)
{
	struct open_value *o = target(u, from, true);
	int e = o ? 0 : bad(u, "appends to what is no list");
	for (size_t i = from; !e && i < u->count; i++) {
		struct value v = u->stack[i];
		u->stack[i] = nothing;
		e = finish(u, &v, o->number);
		if (!e && v.kind != VALUE_GONE && (e = vec_reserve_raw(o->items, o->room, o->count + 1)) == 0)
			o->items[o->count++] = v;
	}
	return e < 0 ? e : drop_to(u, from);
}

static int set_items(struct unpickle *u, size_t from)
{
	struct open_value *o = target(u, from, false);
	int e = o && (u->count - from) % 2 == 0 ? 0 : bad(u, "sets items of what is no dictionary");
	for (size_t i = from; !e && i < u->count; i += 2) {
		struct value key = u->stack[i], v = u->stack[i + 1];
		u->stack[i + 1] = nothing;
		e = finish(u, &v, 0);
		uint32_t k = key.kind == VALUE_TEXT ? u->texts[key.n].key : 0;
		if (k)
			o->fields[k - 1] = v;
	}
	return e < 0 ? e : drop_to(u, from);
}

static int make_tuple(struct unpickle *u, size_t from)
{
	const struct value *v = u->stack + from;
	struct value made = nothing;
	if (u->count - from == 2 && v[0].kind == VALUE_INT && v[1].kind == VALUE_INT && v[0].n < 1 << 14 &&
	    v[1].n < 1 << 14)
		made = (struct value){ VALUE_PAIR, v[0].n << 14 | v[1].n };
	drop_to(u, from);
	return push(u, made);
}

static int make_short_tuple(struct unpickle *u, size_t count)
{
	size_t floor = u->mark_count ? u->marks[u->mark_count - 1] : 0;
	return u->count - floor < count ? bad(u, "takes values that are not there") : make_tuple(u, u->count - count);
}

/* ---- memo ------------------------------------------------------------------------------------------------ */

static int put_memo(struct unpickle *u, size_t at)
{
	if (!u->count || at >= MAX_MEMO || at > u->memo_count + (1 << 16))
		return bad(u, "numbers its values as no pickle does");
	int e = at < u->memo_count ? 0 : vec_extend(u->memo, u->memo_count, u->memo_room, at + 1);
	if (e)
		return e;
	struct open_value *o = open_of(u, u->stack[u->count - 1]);
	if (o && o->memo) /* only one number is mended when it is whole */
		return bad(u, "numbers a value twice");
	u->memo[at] = o && o->whole ? memo_of(o->as) : memo_of(u->stack[u->count - 1]);
	if (o && !o->whole)
		o->memo = (uint32_t)at + 1;
	return 0;
}

static int get_memo(struct unpickle *u, size_t at)
{
	if (at >= u->memo_count)
		return bad(u, "refers to a value that is not there");
	struct value v = { (enum value_kind)(u->memo[at] >> MEMO_BITS), u->memo[at] & ((1u << MEMO_BITS) - 1) };
	struct open_value *o = open_of(u, v);
	if (o)
		o->refs++;
	return push(u, v);
}

/* ---- opcodes --------------------------------------------------------------------------------------------- */

/* Little endian. */
static int number(struct unpickle *u, unsigned bytes, uint64_t *out)
{
	unsigned char in[8] = { 0 };
	int e = input_read(u->in, in, bytes);
	*out = 0;
	for (unsigned i = 0; i < bytes; i++)
		*out |= (uint64_t)in[i] << 8 * i;
	return e;
}

static int push_number(struct unpickle *u, unsigned bytes)
{
	uint64_t n = 0;
	int e = number(u, bytes, &n);
	if (bytes == 4)
		n = (uint64_t)(int32_t)n;
	return e < 0 ? e : push(u, (struct value){ VALUE_INT, n });
}

/* Signed and of any length: of more than 64 bits it is none that matters. */
static int push_long(struct unpickle *u, unsigned length)
{
	uint64_t bytes, n = 0;
	int e = number(u, length, &bytes);
	if (!e && bytes <= 9)
		e = number(u, bytes < 8 ? (unsigned)bytes : 8, &n);
	if (!e && bytes && bytes < 8 && n >> (8 * bytes - 1))
		n |= UINT64_MAX << 8 * bytes;
	if (!e && bytes > 8)
		e = input_read(u->in, NULL, bytes <= 9 ? 1 : bytes);
	return e < 0 ? e : push(u, bytes <= 9 ? (struct value){ VALUE_INT, n } : nothing);
}

static int push_text(struct unpickle *u, unsigned length)
{
	uint64_t bytes;
	struct value v = nothing;
	int e = number(u, length, &bytes);
	if (!e && bytes > MAX_TEXT)
		return bad(u, "has a text of more than 16 MiB");
	size_t kept = bytes < KEPT_TEXT ? bytes : KEPT_TEXT;
	if (!e)
		e = input_read(u->in, u->scratch, kept);
	u->scratch[kept] = '\0';
	if (!e)
		e = input_read(u->in, NULL, bytes - kept);
	if (!e)
		e = intern(u, u->scratch, &v);
	return e < 0 ? e : push(u, v);
}

static int skip_bytes(struct unpickle *u, unsigned length)
{
	uint64_t bytes;
	int e = number(u, length, &bytes);
	if (!e)
		e = input_read(u->in, NULL, bytes);
	return e < 0 ? e : push(u, nothing);
}

static int skip_fixed(struct unpickle *u, size_t bytes, bool pushes)
{
	int e = input_read(u->in, NULL, bytes);
	return e < 0 || !pushes ? e : push(u, nothing);
}

static int mark(struct unpickle *u)
{
	int e = vec_reserve_raw(u->marks, u->mark_room, u->mark_count + 1);
	if (!e)
		u->marks[u->mark_count++] = u->count;
	return e;
}

static int to_mark(struct unpickle *u, int (*f)(struct unpickle *, size_t))
{
	size_t from = 0;
	int e = take_mark(u, &from);
	return e < 0 ? e : f(u, from);
}

static int to_top(struct unpickle *u, size_t count, int (*f)(struct unpickle *, size_t))
{
	size_t floor = u->mark_count ? u->marks[u->mark_count - 1] : 0;
	return u->count < floor + count + 1 ? bad(u, "takes values that are not there") : f(u, u->count - count);
}

static int by_number(struct unpickle *u, unsigned bytes, int (*f)(struct unpickle *, size_t))
{
	uint64_t n;
	int e = number(u, bytes, &n);
	return e < 0 ? e : f(u, n);
}

static int forget(struct unpickle *u)
{
	struct value v = nothing;
	int e = pop(u, &v);
	if (!e)
		release(u, v);
	return e;
}

static int step(struct unpickle *u, unsigned char opcode)
{
	switch ((enum pickle_opcode)opcode) {
	case PROTO:
		return skip_fixed(u, 1, false);
	case FRAME:
		return skip_fixed(u, 8, false);
	case MARK:
		return mark(u);
	case POP:
		return forget(u);
	case POP_MARK:
		return to_mark(u, drop_to);
	case NONE:
		return push(u, nothing);
	case NEWTRUE:
	case NEWFALSE:
		return push(u, (struct value){ VALUE_INT, opcode == NEWTRUE });
	case BININT:
		return push_number(u, 4);
	case BININT1:
		return push_number(u, 1);
	case BININT2:
		return push_number(u, 2);
	case LONG1:
		return push_long(u, 1);
	case LONG4:
		return push_long(u, 4);
	case BINFLOAT:
		return skip_fixed(u, 8, true);
	case SHORT_BINUNICODE:
		return push_text(u, 1);
	case BINUNICODE:
		return push_text(u, 4);
	case BINUNICODE8:
		return push_text(u, 8);
	case SHORT_BINBYTES:
		return skip_bytes(u, 1);
	case BINBYTES:
		return skip_bytes(u, 4);
	case BINBYTES8:
		return skip_bytes(u, 8);
	case EMPTY_LIST:
		return push_open(u, true);
	case EMPTY_DICT:
		return push_open(u, false);
	case APPEND:
		return to_top(u, 1, append);
	case APPENDS:
		return to_mark(u, append);
	case SETITEM:
		return to_top(u, 2, set_items);
	case SETITEMS:
		return to_mark(u, set_items);
	case EMPTY_TUPLE:
		return push(u, nothing);
	case TUPLE:
		return to_mark(u, make_tuple);
	case TUPLE1:
	case TUPLE2:
	case TUPLE3:
		return make_short_tuple(u, opcode - TUPLE1 + 1u);
	case BINPUT:
		return by_number(u, 1, put_memo);
	case LONG_BINPUT:
		return by_number(u, 4, put_memo);
	case MEMOIZE:
		return put_memo(u, u->memo_count);
	case BINGET:
		return by_number(u, 1, get_memo);
	case LONG_BINGET:
		return by_number(u, 4, get_memo);
	case STOP:
		break;
	}
	return bad(u, "has a Python object or an opcode that is not needed for lists and numbers, and was not opened");
}

static int read_all(struct unpickle *u)
{
	unsigned char opcode = 0;
	int e = input_read(u->in, &opcode, 1);
	if (!e && opcode != PROTO)
		return bad(u, "is no pickle of protocol 2 or later");
	while (!e && opcode != STOP) {
		e = step(u, opcode);
		if (!e)
			e = input_read(u->in, &opcode, 1);
	}
	if (!e && u->count != 1)
		e = bad(u, "does not end with one value");
	return e < 0 ? e : finish(u, &u->stack[0], 0);
}

int unpickle(struct input *in, const struct unpickle_caller *caller)
{
	struct unpickle u = { .in = in, .caller = caller, .scratch = malloc(KEPT_TEXT + 1) };
	int e = u.scratch ? read_all(&u) : error_memory();
	for (size_t i = 0; i < u.open_count; i++) {
		free(u.open[i]->items);
		free(u.open[i]);
	}
	for (size_t i = 0; i < u.text_count; i++)
		free(u.texts[i].bytes);
	hash_index_fini(&u.text_index);
	free(u.stack);
	free(u.marks);
	free(u.memo);
	free(u.open);
	free(u.idle);
	free(u.texts);
	free(u.scratch);
	return e;
}
