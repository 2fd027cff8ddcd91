#include <string.h>

#include "format/format.h"
#include "shim/base/holders.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/state.h"
#include "shim/base/tables.h"
#include "shim/python/peek.h"
#include "shim/python/pycode.h"

#define START_SLOTS (1u << 12)
#define MAX_CODES   (1u << 20)
#define MAX_TABLE   65535u               /* bytes of a line table; what is beyond has no lines */
#define MAX_TEXT    (MT_PYCODE_TEXT - 1) /* bytes of a file's or a function's name */

/* Entries are never removed, their ids are set to 0; a table that has become too small is replaced, and who still
 * reads the old one asks again under the lock. */
struct entry {
	uintptr_t code;
	uint32_t id;
};
struct table {
	uint64_t mask;
	struct entry entry[];
};

static struct table *table;
static uint32_t used, ids;
static void (*real_dealloc)(void *);
uint32_t mt_pycode_deaths;

/* Scratch under the process lock. */
static uint8_t *lines, *raw; /* MAX_TABLE, 4 * MAX_TEXT */
static char file[MAX_TEXT + 1], name[MAX_TEXT + 1];
static int careful;

void mt_pycode_tables(struct mt_tables *t)
{
	lines = mt_tables_take(t, MAX_TABLE);
	raw = mt_tables_take(t, 4 * MAX_TEXT);
}

/* ---- by address ---- */

static struct entry *slot_of(struct table *t, uintptr_t code)
{
	uint64_t i = (code >> 4) * 0x9E3779B97F4A7C15ull >> 20;

	for (;; i++) {
		struct entry *e = &t->entry[i & t->mask];
		uintptr_t at = __atomic_load_n(&e->code, __ATOMIC_ACQUIRE);
		if (at == code || !at)
			return e;
	}
}

static struct entry *look_up(uintptr_t code)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	struct entry *e = t ? slot_of(t, code) : NULL;

	return e && e->code ? e : NULL;
}

static uint32_t id_of(uintptr_t code)
{
	struct entry *e = look_up(code);

	return e ? __atomic_load_n(&e->id, __ATOMIC_ACQUIRE) : 0;
}

static struct table *new_table(uint64_t slots)
{
	struct table *t = mt_sys_pages(sizeof(*t) + slots * sizeof(t->entry[0]));

	if (t)
		t->mask = slots - 1;
	return t;
}

static int make_room(void)
{
	struct table *old = table, *new;

	if (old && (used + 1) * 2 <= old->mask)
		return 1;
	if (used >= MAX_CODES || !(new = new_table(old ? (old->mask + 1) * 4 : START_SLOTS)))
		return 0;
	for (uint64_t i = 0; old && i <= old->mask; i++)
		if (old->entry[i].code)
			*slot_of(new, old->entry[i].code) = old->entry[i];
	__atomic_store_n(&table, new, __ATOMIC_RELEASE);
	return 1;
}

static void remember(uintptr_t code, uint32_t id)
{
	struct entry *e = slot_of(table, code);

	used += !e->code;
	__atomic_store_n(&e->id, id, __ATOMIC_RELEASE);
	__atomic_store_n(&e->code, code, __ATOMIC_RELEASE);
}

/* ---- what is in it ---- */

static int copy(void *to, uintptr_t at, size_t bytes)
{
	if (careful)
		return mt_peek_copy(to, at, bytes);
	memcpy(to, (const void *)at, bytes);
	return 1;
}

static uint64_t word_at(uintptr_t at)
{
	uint64_t word = 0;

	return copy(&word, at, sizeof(word)) ? word : 0;
}

/* UTF-8; lone surrogates that stand for bytes of a file name become these bytes again. */
static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* `state` is a bit field: how it is interned, then 3 bits of bytes per character, then "compact", then "ASCII".
 * The first part has 2 bits, or 8 or 16 in interpreters without a GIL and in later ones. */
static uint32_t kind_of(uint32_t state, int *ascii)
{
	static const unsigned shifts[] = { 2, 8, 16 };

	for (unsigned i = 0; i < sizeof(shifts) / sizeof(*shifts); i++) {
		uint32_t kind = state >> shifts[i] & 7, compact = state >> shifts[i] & 8;
		*ascii = (state >> shifts[i] & 16) != 0;
		if (compact && (kind == 1 || (!*ascii && (kind == 2 || kind == 4))))
			return kind;
	}
	return 0;
}

void mt_pycode_text(const struct mt_pyruntime *rt, uintptr_t text, char *to)
{
	char *end = to + MAX_TEXT - 4;
	uint64_t length;
	uint32_t kind;
	int ascii;

	*to = 0;
	if (!mt_peek_plausible(text) || word_at(text + rt->at.object_type) != rt->text_type)
		return;
	length = word_at(text + rt->at.text_length);
	length = length < MAX_TEXT ? length : MAX_TEXT;
	kind = kind_of((uint32_t)word_at(text + rt->at.text_state), &ascii);
	if (!kind || !copy(raw, text + (ascii ? rt->at.text_ascii : rt->at.text_other), length * kind))
		return;
	for (uint64_t i = 0; i < length && to < end; i++) {
		uint32_t c = 0;
		memcpy(&c, raw + i * kind, kind);
		to += put_utf8(to, c ? c : '?');
	}
	*to = 0;
}

static uint32_t copy_lines(const struct mt_pyruntime *rt, uintptr_t bytes)
{
	uint64_t n;

	if (!mt_peek_plausible(bytes))
		return 0;
	n = word_at(bytes + rt->at.bytes_size);
	n = n < MAX_TABLE ? n : MAX_TABLE;
	return copy(lines, bytes + rt->at.bytes_data, n) ? (uint32_t)n : 0;
}

static void record(const struct mt_pyruntime *rt, uintptr_t code, uint32_t id)
{
	struct mt_rec_code rec = { .id = id, .version = rt->version };

	rec.first_line = (uint32_t)word_at(code + rt->at.code_first_line);
	rec.table_bytes = copy_lines(rt, word_at(code + rt->at.code_lines));
	mt_pycode_text(rt, word_at(code + rt->at.code_filename), file);
	mt_pycode_text(rt, word_at(code + rt->at.code_name), name);
	mt_log_write(MT_REC_CODE,
		     (struct mt_part[]){ { &rec, sizeof(rec) },
					 { lines, rec.table_bytes },
					 { file, strlen(file) + 1 },
					 { name, strlen(name) + 1 } },
		     4);
}

/* Its file's name is its own name, one and the same object, and it begins at no line: code of a program begins at line
 * 1 or later. */
static int is_plumbing(const struct mt_pyruntime *rt, uintptr_t code)
{
	return rt->version >= 0x30d && word_at(code + rt->at.code_filename) == word_at(code + rt->at.code_name) &&
	       !(uint32_t)word_at(code + rt->at.code_first_line);
}

static uint32_t meet(const struct mt_pyruntime *rt, uintptr_t code)
{
	uint32_t id = id_of(code);

	careful = mt_pyruntime_careful(rt);
	if (id || ids == MT_PY_MAX_CODE || word_at(code + rt->at.object_type) != rt->code_type || !make_room())
		return id;
	id = is_plumbing(rt, code) ? MT_PYCODE_PLUMBING : ++ids;
	if (id != MT_PYCODE_PLUMBING)
		record(rt, code, id);
	remember(code, id);
	return id;
}

uint32_t mt_pycode_id(const struct mt_pyruntime *rt, uintptr_t code)
{
	uint32_t id = id_of(code);
	uint64_t signals;

	if (id)
		return id;
	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		id = meet(rt, code);
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return id;
}

uint32_t mt_pycode_named(const char *text)
{
	struct mt_rec_code rec = { .version = 0x30b };
	uint64_t signals;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		if (ids < MT_PY_MAX_CODE) {
			rec.id = ++ids;
			mt_log_write(MT_REC_CODE,
				     (struct mt_part[]){ { &rec, sizeof(rec) }, { "", 1 }, { text, strlen(text) + 1 } },
				     3);
		}
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return rec.id;
}

/* ---- deaths ---- */

/* Under the lock, so that the entry isn't just being copied to a larger table. */
static void forget(uintptr_t code)
{
	uint64_t signals;
	int locked;

	mt_sys_block_signals(&signals);
	locked = mt_lock_take(&mt_process.lock);
	__atomic_store_n(&look_up(code)->id, 0, __ATOMIC_RELEASE);
	if (locked)
		mt_lock_drop(&mt_process.lock);
	mt_sys_restore_signals(&signals);
	/* release pairs with the acquire in a capture: who has seen the change asks for the id anew */
	__atomic_fetch_add(&mt_pycode_deaths, 1, __ATOMIC_RELEASE);
}

static void on_death(void *code)
{
	if (id_of((uintptr_t)code))
		forget((uintptr_t)code);
	real_dealloc(code);
	mt_holders_idle();
}

static int watch(const struct mt_pyruntime *rt)
{
	uintptr_t slot = rt->code_type + rt->at.type_dealloc, old = 0, new = (uintptr_t)on_death;

	if (!mt_peek_copy(&old, slot, sizeof(old)) || !old)
		return 0;
	if (old == new)
		return 1;
	real_dealloc = (void (*)(void *))old;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return mt_peek_store(slot, new);
}

int mt_pycode_watch(struct mt_pyruntime *rt)
{
	uint64_t signals;
	int ok = 0;

	mt_sys_block_signals(&signals);
	if (mt_lock_take(&mt_process.lock)) {
		ok = rt->watched || watch(rt);
		rt->watched |= (uint32_t)ok;
		mt_lock_drop(&mt_process.lock);
	}
	mt_sys_restore_signals(&signals);
	return ok;
}
