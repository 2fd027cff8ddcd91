#include "analyzer/report/export/pickle.h"

#include "analyzer/util/error.h"
#include "analyzer/util/pickle_opcode.h"
#include "analyzer/util/print.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct pickle_text {
	UT_hash_handle hh;
	uint32_t number;
	char text[];
};

struct pickle_key {
	UT_hash_handle hh;
	const void *key;
	uint32_t number;
};

static void put(enum pickle_opcode code)
{
	char byte = (char)code;
	print_as_is(&byte, 1);
}

/* Little endian. */
static void put_number(uint64_t n, unsigned bytes)
{
	char out[8];
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (char)(n >> 8 * i);
	print_as_is(out, bytes);
}

void pickle_open(struct pickle *p)
{
	*p = (struct pickle){ 0 };
	put(PROTO);
	put_number(4, 1);
}

int pickle_close(struct pickle *p)
{
	struct pickle_text *t, *next_text;
	struct pickle_key *k, *next_key;
	bool failed = p->failed;
	put(STOP);
	HASH_ITER(hh, p->texts, t, next_text)
	{
		HASH_DEL(p->texts, t);
		free(t);
	}
	HASH_ITER(hh, p->keys, k, next_key)
	{
		HASH_DEL(p->keys, k);
		free(k);
	}
	*p = (struct pickle){ 0 };
	return failed ? error_memory() : 0;
}

/* LONG1 is signed: a number with the highest bit has one byte more. */
void pickle_int(struct pickle *p, uint64_t n)
{
	(void)p;
	if (n < 1u << 8) {
		put(BININT1);
		put_number(n, 1);
	} else if (n < 1u << 16) {
		put(BININT2);
		put_number(n, 2);
	} else if (n < 1u << 31) {
		put(BININT);
		put_number(n, 4);
	} else {
		unsigned bytes = 4;
		while (bytes < 8 && n >> (8 * bytes - 1))
			bytes++;
		bool high = bytes == 8 && n >> 63;
		put(LONG1);
		put_number(bytes + high, 1);
		put_number(n, bytes);
		if (high)
			put_number(0, 1);
	}
}

void pickle_bool(struct pickle *p, bool truth)
{
	(void)p;
	put(truth ? NEWTRUE : NEWFALSE);
}

void pickle_pair(struct pickle *p, uint64_t a, uint64_t b)
{
	pickle_int(p, a);
	pickle_int(p, b);
	put(TUPLE2);
}

static void recall(uint32_t number)
{
	put(number < 256 ? BINGET : LONG_BINGET);
	put_number(number, number < 256 ? 1 : 4);
}

static uint32_t memoize(struct pickle *p)
{
	put(MEMOIZE);
	return p->memoized++;
}

void pickle_text(struct pickle *p, const char *text)
{
	struct pickle_text *t;
	size_t size = strlen(text);
	HASH_FIND(hh, p->texts, text, size, t);
	if (t) {
		recall(t->number);
		return;
	}
	put(size < 256 ? SHORT_BINUNICODE : BINUNICODE);
	put_number(size, size < 256 ? 1 : 4);
	print_as_is(text, size);
	t = malloc(sizeof(*t) + size + 1);
	if (!t) {
		p->failed = true;
		return;
	}
	t->number = memoize(p);
	memcpy(t->text, text, size + 1);
	HASH_ADD_KEYPTR(hh, p->texts, t->text, size, t);
}

void pickle_dict(struct pickle *p)
{
	(void)p;
	put(EMPTY_DICT);
	put(MARK);
}

void pickle_dict_end(struct pickle *p)
{
	(void)p;
	put(SETITEMS);
}

void pickle_list(struct pickle *p)
{
	(void)p;
	put(EMPTY_LIST);
}

void pickle_append(struct pickle *p)
{
	(void)p;
	put(APPEND);
}

bool pickle_recall(struct pickle *p, const void *key)
{
	struct pickle_key *k;
	HASH_FIND_PTR(p->keys, &key, k);
	if (k)
		recall(k->number);
	return k;
}

void pickle_remember(struct pickle *p, const void *key)
{
	struct pickle_key *k = malloc(sizeof(*k));
	if (!k) {
		p->failed = true;
		return;
	}
	k->key = key;
	k->number = memoize(p);
	HASH_ADD_PTR(p->keys, key, k);
}
