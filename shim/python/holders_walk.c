/*
 * The walk over all objects, in the child. Each object is an item with its references, as tp_traverse tells them.
 * Beside these an object has words that no reference explains: a list's array, an array's data, a C++ object. They are
 * candidates: the analyzer knows which of them are blocks that the program allocated.
 *
 * Objects that the collector does not track (strings, numbers, arrays, tuples of such) come when something refers to
 * them. Small ones that one object alone refers to are added up there, and shared small strings and integers are left
 * out.
 *
 * Memory of C and C++ that objects point to is followed as far as it can be told to be a block: by the sizes that
 * glibc's malloc keeps in front of each. So the tensors that a graph of autograd saves are seen behind its nodes.
 *
 * Where what is: the stable ABI's order of PyTypeObject (Include/cpython/object.h), unchanged since 3.8 as far as
 * tp_dictoffset; Include/cpython/dictobject.h and Include/internal/pycore_dict.h of 3.11 to 3.14 for keys and inline
 * values; Include/structmember.h for members.
 */
#include <string.h>

#include "format/output_name.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/python/holders_items.h"
#include "shim/python/pycode.h"

#define SMALL       512u /* bytes; larger ones pymalloc leaves to malloc */
#define MAX_NAMED   10000u
#define MAX_WORDS   128u /* of a body that are looked at */
#define MAX_SCANNED (64u << 10)
#define MAX_BLOCKS  4000000u
#define MAX_PLAIN   3u
static struct mt_hold_words words, pending_blocks;
static int small_too, of_type, to_check;
static int is_guess; /* only a word says that there is an object */
static uint64_t atom_count, atom_bytes;
static uintptr_t current, current_type;
static struct mt_hold_map blocks_seen;
static uint64_t blocks_scanned;
static unsigned plain; /* of the block that is being scanned: how many without a class it came by, itself among them */

/* ---- what an object is ---- */

/* References that count; 0 = it is immortal (since 3.12: the lower half is negative). */
static uint64_t references(uintptr_t object)
{
	uint64_t count = mt_word(object);

	if (mt_holders_python.version >= 0x30e) /* flags are above */
		count = (uint32_t)count;
	return mt_holders_python.version >= 0x30c && (int32_t)count < 0 ? 0 : count;
}

static int64_t var_size(uintptr_t object)
{
	int64_t n = (int64_t)mt_word(object + mt_holders_python.head);

	n = n < 0 ? -n : n;
	return n < (int64_t)1 << 40 ? n : 0;
}

static uint64_t text_bytes(uintptr_t object)
{
	uint64_t length = mt_word(object + mt_pyruntime->at.text_length);
	uint32_t state = *(const uint32_t *)(object + mt_pyruntime->at.text_state), shift;

	for (shift = 2; shift <= 16; shift = shift == 2 ? 8 : shift + 8) {
		uint32_t kind = state >> shift & 7, ascii = state >> shift & 16;
		if ((state >> shift & 8) && (kind == 1 || kind == 2 || kind == 4))
			return (ascii ? mt_pyruntime->at.text_ascii : mt_pyruntime->at.text_other) +
			       (length + 1) * kind;
	}
	return mt_pyruntime->at.text_other;
}

static uint64_t bytes_of(uintptr_t object, const struct mt_hold_type *t)
{
	uint64_t bytes = (uint64_t)t->basic + (t->flags & HAVE_GC ? 16 : 0);

	if (t->flags & IS_TEXT)
		return text_bytes(object);
	if (t->flags & IS_LONG) {
		int64_t n = var_size(object);
		return 24 + 4 * (uint64_t)(mt_holders_python.version >= 0x30c ? n >> 3 : n);
	}
	return t->item > 0 ? bytes + (uint64_t)(var_size(object) * t->item) : bytes;
}

static int64_t items_of(uintptr_t object, const struct mt_hold_type *t)
{
	if (t->items == NO_ITEMS)
		return -1;
	return t->items == VAR_ITEMS ? var_size(object)
				     : (int64_t)mt_word(object + mt_holders_python.head + 8); /* used */
}

static int is_plain(const struct mt_hold_type *t)
{
	const struct mt_holders_python *p = &mt_holders_python;

	return t->at == p->text || t->at == p->integer || t->at == p->none || t->at == p->boolean;
}

/* ---- references ---- */

static int on_reference(void *object, void *unused)
{
	uintptr_t to = (uintptr_t)object;
	struct mt_hold_type *t;
	(void)unused;

	if (to == current_type) {
		of_type = 1;
		return 0;
	}
	/* a tuple that is kept for later use is found by words that point to it, and has anything in it */
	if (to & 7 || !mt_hold_readable(to, mt_holders_python.head) ||
	    (to_check && !mt_hold_is_type(mt_hold_type_of(to))))
		return 0;
	t = mt_hold_find_type(to);
	if (!t)
		return 0;
	if (!(t->flags & HAVE_GC) && !small_too) {
		uint64_t bytes = bytes_of(to, t);
		if (bytes <= SMALL && is_plain(t) && references(to) != 1)
			return 0;
		if (bytes <= SMALL && references(to) == 1 && t->no_words) {
			atom_count++;
			atom_bytes += bytes;
			return 0;
		}
	}
	mt_hold_edge(0, to);
	mt_hold_meet(to);
	return 0;
}

/* ---- names ---- */

/* The next edge to `value` from *at on gets the key's name; what is not found soon is not looked for. */
static void name_next(size_t *at, uintptr_t value, uintptr_t key)
{
	for (size_t i = *at; i < mt_hold_edges.count && i < *at + 4; i++)
		if (mt_hold_edges.at[i] == value) {
			mt_hold_names.at[i] = mt_hold_text_of(key);
			*at = i + 1;
			return;
		}
}

static void name_dict(uintptr_t object)
{
	intptr_t position = 0;
	size_t at = 0;
	void *key, *value;

	if (mt_hold_edges.count > MAX_NAMED)
		return;
	while (at < mt_hold_edges.count && mt_holders_python.dict_next((void *)object, &position, &key, &value))
		name_next(&at, (uintptr_t)value, (uintptr_t)key);
}

/* struct PyMemberDef: name, type (6, 16: an object), offset, flags, doc */
static void name_members(uintptr_t object, uintptr_t t)
{
	for (int depth = 0; t && depth < 16; depth++, t = mt_word(t + mt_hold_field(TP_BASE))) {
		uintptr_t m = mt_word(t + mt_hold_field(TP_MEMBERS));
		for (int i = 0; m && i < 256 && mt_word(m); i++, m += 40) {
			int32_t kind = *(const int32_t *)(m + 8);
			const char *name = (const char *)mt_word(m);
			uintptr_t value;
			if (kind != 6 && kind != 16)
				continue;
			value = mt_word(object + mt_word(m + 16));
			if (value)
				mt_hold_name(value, mt_hold_text_once(name));
		}
	}
}

/* Attributes of an instance that has no dict of its own yet: keys are the type's, values are the instance's. */
static uintptr_t values_of(uintptr_t object, const struct mt_hold_type *t)
{
	uint32_t version = mt_holders_python.version;
	uintptr_t word;

	if (!(t->flags & HAS_MANAGED_DICT))
		return 0;
	if (version == 0x30b)
		return mt_word(object - 32);
	word = mt_word(object - 24);
	if (version == 0x30c)
		return word & 1 ? word + 1 : 0;
	if (!(t->flags & HAS_INLINE_VALUES) || !((const uint8_t *)(object + (uintptr_t)t->basic))[3])
		return 0;
	return object + (uintptr_t)t->basic + 8;
}

static void name_attributes(uintptr_t object, const struct mt_hold_type *t)
{
	uintptr_t values = values_of(object, t), keys, entries;
	uint8_t log_index;
	uint64_t count;

	if (!values || !(t->flags & IS_HEAP))
		return;
	keys = mt_word(t->at + mt_holders_python.cached_keys);
	if (!keys || !mt_hold_readable(keys, 32))
		return;
	log_index = *(const uint8_t *)(keys + 9);
	count = mt_word(keys + 24); /* dk_nentries */
	if (log_index > 16 || count > 1024 || *(const uint8_t *)(keys + 10) != 2 /* DICT_KEYS_SPLIT */)
		return;
	entries = keys + 32 + ((uintptr_t)1 << log_index);
	for (uint64_t i = 0; i < count; i++)
		mt_hold_name(mt_word(values + 8 * i), mt_hold_text_of(mt_word(entries + 16 * i)));
}

/* The dict of an object's attributes, or of a class's. */
static uintptr_t dict_of(uintptr_t object, const struct mt_hold_type *t)
{
	int64_t offset;

	if (t->flags & IS_TYPE)
		return mt_word(object + mt_hold_field(TP_DICT));
	if (t->flags & HAS_MANAGED_DICT) {
		uintptr_t word = mt_word(object - 24);
		return mt_holders_python.version == 0x30c && word & 1 ? 0 : word;
	}
	offset = (int64_t)mt_word(t->at + mt_hold_field(TP_DICTOFFSET));
	return offset > 0 ? mt_word(object + (uintptr_t)offset) : 0;
}

static void name_own_dict(uintptr_t object, const struct mt_hold_type *t)
{
	uintptr_t dict = dict_of(object, t);

	if (dict)
		mt_hold_name(dict, mt_hold_text_once("__dict__"));
}

static void name_function(uintptr_t object)
{
	unsigned code = mt_holders_python.version < 0x30a ? 16 : 48, closure = code == 16 ? 48 : 72;
	static const struct {
		const char *name;
		unsigned old, new;
	} fields[] = {
		{ "default", 32, 56 }, { "keyword default", 40, 64 }, { "closure", 48, 72 }, { "globals", 24, 16 }
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		unsigned at = mt_holders_python.version < 0x30a ? fields[i].old : fields[i].new;
		mt_hold_name(mt_word(object + mt_hold_field(at)), mt_hold_text_once(fields[i].name));
	}
	mt_hold_closure(mt_word(object + mt_hold_field(code)), mt_word(object + mt_hold_field(closure)));
}

static uint32_t label_of(uintptr_t object, const struct mt_hold_type *t)
{
	const struct mt_holders_python *p = &mt_holders_python;
	const char *name;

	if (t->at == p->module)
		return mt_hold_text_of(mt_word(object + p->head + 32)); /* md_name */
	if (t->at == p->function)
		return mt_hold_code_label(mt_word(object + mt_hold_field(p->version < 0x30a ? 16 : 48)));
	if (t->at == mt_pyruntime->code_type)
		return mt_hold_code_label(object);
	if (t->flags & IS_TYPE) {
		name = (const char *)mt_word(object + mt_hold_field(TP_NAME));
		return mt_hold_text(name, strlen(name));
	}
	if (t->at == p->frame)
		return mt_hold_edges.count ? mt_hold_frame_object(object) : 0;
	return t->is_generator ? mt_hold_generator(object, (uintptr_t)t->basic) : 0;
}

/* ---- words ---- */

static int is_edge(uintptr_t word)
{
	for (size_t i = 0; i < mt_hold_edges.count && i < 256; i++)
		if (mt_hold_edges.at[i] == word)
			return 1;
	return 0;
}

/* Size of glibc's chunk whose memory begins here, as it and the next chunk say; 0 = it is none, or not to be scanned.
 */
static uint64_t chunk_of(uintptr_t at)
{
	uint64_t size, next;

	if (at & 15 || !mt_hold_readable(at - 16, 64))
		return 0;
	size = mt_word(at - 8);
	if (size & 2 || (size & ~7ull) < 32 || (size & ~7ull) > MAX_SCANNED || size & 8)
		return 0;
	size &= ~7ull;
	if (!mt_hold_readable(at - 16, size + 16))
		return 0;
	next = mt_word(at - 8 + size);
	return next & 1 && (next & ~7ull) >= 32 && !(next & 8) ? size - 8 : 0;
}

static void add_word(uintptr_t word, int scan)
{
	enum mt_hold_place place;
	int added;

	if (!word || word & 7 || word == current_type || word == current)
		return;
	place = mt_hold_place(word);
	if (place != MT_PLACE_HEAP && place != MT_PLACE_OTHER)
		return;
	mt_hold_push(&words, word);
	if (place != MT_PLACE_HEAP)
		return;
	if (mt_hold_is_object(word))
		mt_hold_meet_maybe(word);
	else if (scan && blocks_scanned + pending_blocks.count < MAX_BLOCKS && chunk_of(word) &&
		 mt_hold_map_add(&blocks_seen, word, 0, &added) != UINT32_MAX && added)
		mt_hold_push(&pending_blocks, word | plain);
}

static void add_words(uintptr_t object, const struct mt_hold_type *t)
{
	uintptr_t at = object + mt_holders_python.head, weak = mt_word(t->at + mt_hold_field(TP_WEAKLIST));
	uintptr_t end = object + (uintptr_t)t->basic;

	if (t->no_words || t->basic < 16)
		return;
	if (end > at + 8 * MAX_WORDS)
		end = at + 8 * MAX_WORDS;
	for (; at < end; at += 8)
		if (at != object + weak && !is_edge(mt_word(at)))
			add_word(mt_word(at), t->scan);
	if (t->flags & HAS_MANAGED_DICT) {
		uintptr_t word = mt_word(object - (mt_holders_python.version == 0x30b ? 32 : 24));
		word = (word + 7) & ~(uintptr_t)7;
		if (!is_edge(word))
			add_word(word, 0);
	}
}

static void put_words(void)
{
	mt_hold_number(words.count);
	for (size_t i = 0; i < words.count; i++)
		mt_hold_address(words.at[i]);
}

/* ---- items ---- */

static void put_edges(int named)
{
	mt_hold_number(mt_hold_edges.count);
	for (size_t i = 0; i < mt_hold_edges.count; i++) {
		if (named)
			mt_hold_number(mt_hold_names.at[i]);
		mt_hold_address(mt_hold_edges.at[i]);
	}
}

static void put_object(uintptr_t object, const struct mt_hold_type *t, uint32_t label)
{
	int64_t items = items_of(object, t);
	unsigned bits = mt_hold_is_tracked(object, t) ? MT_HOLD_TRACKED : 0;
	int named = 0;

	for (size_t i = 0; i < mt_hold_names.count && !named; i++)
		named = mt_hold_names.at[i] != 0;
	bits |= (named ? MT_HOLD_NAMED : 0) | (label ? MT_HOLD_LABEL : 0) | (items >= 0 ? MT_HOLD_ITEMS : 0) |
		(atom_count ? MT_HOLD_ATOMS : 0) | (words.count ? MT_HOLD_WORDS : 0) | (of_type ? MT_HOLD_OF_TYPE : 0);
	mt_hold_number(MT_HOLD_OBJECT);
	mt_hold_number(bits);
	mt_hold_number((uint64_t)(t - mt_hold_types));
	mt_hold_address(object);
	mt_hold_number(references(object));
	mt_hold_number(bytes_of(object, t));
	if (label)
		mt_hold_number(label - 1);
	if (items >= 0)
		mt_hold_number((uint64_t)items);
	if (atom_count) {
		mt_hold_number(atom_count);
		mt_hold_number(atom_bytes);
	}
	put_edges(named);
	if (words.count)
		put_words();
}

/* Of a static type nothing is followed: its tp_traverse ends the program for them. */
static int may_traverse(uintptr_t object, const struct mt_hold_type *t)
{
	if (is_guess && (t->at != mt_holders_python.tuple || !mt_hold_readable(object, bytes_of(object, t))))
		return 0;
	return t->traverse && t->flags & HAVE_GC && !t->skipped &&
	       (!(t->flags & IS_TYPE) || mt_word(object + mt_hold_field(TP_FLAGS)) & IS_HEAP);
}

static void traverse(uintptr_t object, const struct mt_hold_type *t)
{
	to_check = !mt_hold_is_tracked(object, t);
	t->traverse((void *)object, on_reference, NULL);
}

static void visit(uintptr_t object)
{
	size_t index;
	struct mt_hold_type *t = mt_hold_find_type(object);
	uint32_t label;

	if (!t)
		return;
	index = (size_t)(t - mt_hold_types); /* the table may move */
	mt_hold_edges.count = mt_hold_names.count = words.count = 0;
	atom_count = atom_bytes = 0;
	of_type = 0;
	current = object;
	current_type = t->at;
	mt_holders_shared->type = t->at;
	if (may_traverse(object, t)) {
		traverse(object, t);
		t = &mt_hold_types[index];
		if (t->flags & IS_DICT)
			name_dict(object);
		else if (t->at == mt_holders_python.function)
			name_function(object);
		else if (mt_hold_edges.count) {
			name_own_dict(object, t);
			if (t->has_members)
				name_members(object, t->at);
			name_attributes(object, t);
		}
	}
	if (t->is_greenlet)
		mt_hold_greenlet(object, (uintptr_t)t->basic);
	label = t->skipped ? 0 : label_of(object, t);
	if (!t->skipped)
		add_words(object, t);
	t = &mt_hold_types[index];
	mt_holders_shared->type = 0;
	put_object(object, t, label);
}

static void visit_pending(void)
{
	while (mt_hold_pending.count && !mt_hold_is_cut())
		visit(mt_hold_pending.at[--mt_hold_pending.count]);
}

/* What looks like an object where only words point to it may be one that is gone: it is told, and not followed. */
static void visit_maybes(void)
{
	while (mt_hold_maybes.count && !mt_hold_is_cut()) {
		uintptr_t object = mt_hold_maybes.at[--mt_hold_maybes.count];
		struct mt_hold_type *t = mt_hold_find_type(object);
		if (!t || mt_hold_is_tracked(object, t) || !mt_hold_is_new(object))
			continue;
		is_guess = 1;
		visit(object);
		is_guess = 0;
		visit_pending();
	}
}

/* Is it the table of a class, the first entry of which is a function? */
static int is_class(uintptr_t table)
{
	return mt_hold_place(table) == MT_PLACE_FILE && mt_hold_readable(table, 8) && !(table & 7) &&
	       mt_hold_place(mt_word(table)) == MT_PLACE_CODE;
}

/* Memory of C++: what begins with a pointer to such a table is an object of a class. Of what doesn't, an array or a
 * node of a container, some few are followed in a row: lists that allocators keep of their blocks lead from each to
 * all. */
static void visit_block(uintptr_t pending)
{
	uintptr_t at = pending & ~(uintptr_t)15, first = mt_word(at);
	uint64_t bytes = chunk_of(at);

	words.count = mt_hold_edges.count = 0;
	mt_holders_shared->type = MT_HOLDERS_BLOCKS;
	current = at;
	current_type = 0;
	blocks_scanned++;
	if (!is_class(first))
		first = 0;
	plain = first ? 0 : (unsigned)(pending & 15) + 1;
	for (uint64_t i = 0; i + 8 <= bytes; i += 8)
		add_word(mt_word(at + i), plain < MAX_PLAIN);
	plain = 0;
	mt_hold_number(MT_HOLD_BLOCK);
	mt_hold_address(at);
	mt_hold_number(first);
	put_words();
}

static void visit_blocks(void)
{
	while (pending_blocks.count && !mt_hold_is_cut()) {
		visit_block(pending_blocks.at[--pending_blocks.count]);
		visit_maybes();
	}
}

static void put_faults(const uintptr_t *skip, unsigned skips)
{
	for (unsigned i = 0; i < skips; i++) {
		const char *name = skip[i] == MT_HOLDERS_BLOCKS ? "(blocks of C++)"
				   : skip[i] == MT_HOLDERS_FRAMES
					   ? "(frames)"
					   : (const char *)mt_word(skip[i] + mt_hold_field(TP_NAME));
		mt_hold_number(MT_HOLD_FAULT);
		mt_hold_number(strlen(name) < MT_HOLD_MAX_TEXT ? strlen(name) : MT_HOLD_MAX_TEXT);
		mt_hold_bytes(name, strlen(name) < MT_HOLD_MAX_TEXT ? strlen(name) : MT_HOLD_MAX_TEXT);
	}
}

void mt_hold_walk(struct mt_hold_head *head, const uintptr_t *broken, unsigned count, const uintptr_t *tracked,
		  size_t n)
{
	mt_hold_skip(broken, count);
	small_too = (head->flags & MT_HOLD_SMALL_TOO) != 0;
	put_faults(broken, count);
	for (size_t i = 0; i < n && !mt_hold_is_cut(); i++) {
		visit(tracked[i]);
		visit_pending();
	}
	mt_hold_edges.count = mt_hold_names.count = 0;
	mt_holders_shared->type = MT_HOLDERS_FRAMES;
	if (!mt_hold_is_skipped(MT_HOLDERS_FRAMES))
		mt_hold_frames();
	mt_holders_shared->type = 0;
	visit_pending();
	visit_maybes();
	if (!mt_hold_is_skipped(MT_HOLDERS_BLOCKS))
		visit_blocks();
}
