/* What an item of a snapshot is made of, and the tables that say what is there already: texts, types, objects to visit,
 * the references of the object that is looked at. The child's alone. */
#include <string.h>

#include "format/output_name.h"
#include "shim/base/state.h"
#include "shim/base/sys.h"
#include "shim/python/holders_items.h"
#include "shim/python/pycode.h"

static struct mt_hold_map types, texts, seen, maybe_seen;
static size_t type_count, type_room;
static uint32_t text_count;
static const uintptr_t *skip;
static unsigned skips;
struct mt_hold_type *mt_hold_types;
struct mt_hold_words mt_hold_edges, mt_hold_names, mt_hold_pending, mt_hold_maybes;

/* ---- texts and types ---- */

uint32_t mt_hold_text(const char *text, size_t bytes)
{
	bytes = bytes < MT_HOLD_MAX_TEXT ? bytes : MT_HOLD_MAX_TEXT;
	mt_hold_number(MT_HOLD_TEXT);
	mt_hold_number(bytes);
	mt_hold_bytes(text, bytes);
	return ++text_count;
}

uint32_t mt_hold_text_of(uintptr_t object)
{
	static char text[MT_PYCODE_TEXT];
	uint32_t id;
	int added;

	if (object & 7 || !mt_hold_readable(object, 64) || mt_hold_type_of(object) != mt_holders_python.text)
		return 0;
	id = mt_hold_map_add(&texts, object, text_count + 1, &added);
	if (!added)
		return id == UINT32_MAX ? 0 : id;
	mt_pycode_text(mt_pyruntime, object, text);
	return mt_hold_text(text, strlen(text));
}

uint32_t mt_hold_text_once(const char *text)
{
	int added;
	uint32_t id = mt_hold_map_add(&texts, (uintptr_t)text, text_count + 1, &added);

	if (id == UINT32_MAX)
		return 0;
	return added ? mt_hold_text(text, strlen(text)) : id;
}

void mt_hold_skip(const uintptr_t *list, unsigned count)
{
	skip = list;
	skips = count;
}

int mt_hold_is_skipped(uintptr_t t)
{
	for (unsigned i = 0; i < skips; i++)
		if (skip[i] == t)
			return 1;
	return 0;
}

/* Is it a type, or derived from one, whose name begins so? */
static int is_kind_of(uintptr_t t, const char *begin)
{
	for (int depth = 0; t && depth < 16; depth++, t = mt_word(t + mt_hold_field(TP_BASE)))
		if (!strncmp((const char *)mt_word(t + mt_hold_field(TP_NAME)), begin, strlen(begin)))
			return 1;
	return 0;
}

static int has_members(uintptr_t t)
{
	for (int depth = 0; t && depth < 16; depth++, t = mt_word(t + mt_hold_field(TP_BASE))) {
		uintptr_t m = mt_word(t + mt_hold_field(TP_MEMBERS));
		if (m && mt_word(m))
			return 1;
	}
	return 0;
}

static int is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return 1;
	return 0;
}

static uint8_t items_kind(const struct mt_hold_type *t, const char *name)
{
	static const char *const sets[] = { "set", "frozenset", NULL };

	if (t->flags & (IS_DICT | IS_TUPLE) || t->at == mt_holders_python.list || !strcmp(name, "collections.deque"))
		return VAR_ITEMS; /* of a dict ma_used is in the same place */
	return is_one_of(name, sets) ? SET_ITEMS : NO_ITEMS;
}

static struct mt_hold_type *add_type(uintptr_t t)
{
	const struct mt_holders_python *p = &mt_holders_python;
	const char *name = (const char *)mt_word(t + mt_hold_field(TP_NAME));
	static const char *const generators[] = { "generator", "coroutine", "async_generator", NULL };
	struct mt_hold_type *new;

	if (type_count == type_room) {
		size_t room = type_room ? type_room * 2 : 256;
		new = mt_sys_pages(room * sizeof(*new));
		if (!new) {
			mt_hold_cut();
			return NULL;
		}
		memcpy(new, mt_hold_types, type_count * sizeof(*new));
		mt_hold_types = new;
		type_room = room;
	}
	new = &mt_hold_types[type_count++];
	*new = (struct mt_hold_type){ .at = t,
				      .flags = mt_word(t + mt_hold_field(TP_FLAGS)),
				      .basic = (int64_t)mt_word(t + mt_hold_field(TP_BASICSIZE)),
				      .item = (int64_t)mt_word(t + mt_hold_field(TP_ITEMSIZE)),
				      .skipped = (uint8_t)mt_hold_is_skipped(t) };
	new->has_members = (uint8_t)has_members(t);
	new->is_generator = (uint8_t)is_one_of(name, generators);
	new->items = items_kind(new, name);
	new->traverse = (int (*)(void *, mt_visit *, void *))mt_word(t + mt_hold_field(TP_TRAVERSE));
	new->is_greenlet = (uint8_t)is_kind_of(t, "greenlet.greenlet");
	/* weakref (weakref.ref, ReferenceType), weakproxy, weakcallableproxy */
	new->no_words = is_kind_of(t, "weak") || t == p->tuple || new->flags &IS_TYPE || t == p->function ||
			t == p->module || t == p->frame || t == p->cell ||
			(new->flags &(IS_LONG | IS_BYTES | IS_TEXT)) != 0;
	new->scan = t != p->dict &&t != p->list &&t != mt_pyruntime->code_type &&strncmp(name, "set", 4) &&
		    strncmp(name, "frozenset", 10);
	mt_hold_number(MT_HOLD_TYPE);
	mt_hold_address(t);
	mt_hold_number(new->flags);
	mt_hold_number(strlen(name) < MT_HOLD_MAX_TEXT ? strlen(name) : MT_HOLD_MAX_TEXT);
	mt_hold_bytes(name, strlen(name) < MT_HOLD_MAX_TEXT ? strlen(name) : MT_HOLD_MAX_TEXT);
	return new;
}

struct mt_hold_type *mt_hold_find_type(uintptr_t object)
{
	uintptr_t t = mt_hold_type_of(object);
	int added;
	uint32_t i = mt_hold_map_add(&types, t, (uint32_t)type_count, &added);

	if (i == UINT32_MAX)
		return NULL;
	return added ? add_type(t) : &mt_hold_types[i];
}

/* ---- objects ---- */

int mt_hold_is_tracked(uintptr_t object, const struct mt_hold_type *t)
{
	if (!(t->flags & HAVE_GC))
		return 0;
	if (t->flags & IS_TYPE && !(mt_word(object + mt_hold_field(TP_FLAGS)) & IS_HEAP))
		return 0;                 /* it has no head */
	return mt_word(object - 16) != 0; /* _gc_next */
}

int mt_hold_is_type(uintptr_t t)
{
	return !(t & 7) && mt_hold_readable(t, 424) &&
	       (mt_hold_map_has(&types, t) || mt_hold_type_of(t) == mt_holders_python.type);
}

/* Some types keep objects that have died for the next one; the first word of free memory points to the next. */
static int is_dead(uintptr_t object)
{
	uint64_t count = mt_word(object);

	return !(uint32_t)count || (mt_holders_python.version >= 0x30e ? count >> 32 & 0xffff : count >> 40) != 0;
}

int mt_hold_is_object(uintptr_t at)
{
	return !(at & 7) && mt_hold_place(at) == MT_PLACE_HEAP && mt_hold_readable(at, mt_holders_python.head) &&
	       !is_dead(at) && mt_hold_is_type(mt_hold_type_of(at));
}

int mt_hold_is_new(uintptr_t object)
{
	int added;

	return mt_hold_map_add(&seen, object, 0, &added) != UINT32_MAX && added;
}

void mt_hold_meet(uintptr_t object)
{
	struct mt_hold_type *t = mt_hold_find_type(object);

	if (t && !mt_hold_is_tracked(object, t) && mt_hold_is_new(object))
		mt_hold_push(&mt_hold_pending, object);
}

void mt_hold_meet_maybe(uintptr_t object)
{
	int added;

	if (mt_hold_map_add(&maybe_seen, object, 0, &added) != UINT32_MAX && added)
		mt_hold_push(&mt_hold_maybes, object);
}

void mt_hold_edge(uint32_t name, uintptr_t to)
{
	mt_hold_push(&mt_hold_edges, to);
	mt_hold_push(&mt_hold_names, name);
}

/* ---- names ---- */

void mt_hold_name(uintptr_t value, uint32_t name)
{
	for (size_t i = 0; value && i < mt_hold_edges.count && i < 256; i++)
		if (mt_hold_edges.at[i] == value && !mt_hold_names.at[i]) {
			mt_hold_names.at[i] = name;
			return;
		}
}

uint32_t mt_hold_code_label(uintptr_t code)
{
	static char text[2 * MT_PYCODE_TEXT], part[MT_PYCODE_TEXT];
	char *at = text, *end = text + sizeof(text);
	const char *base, *slash;
	const struct mt_pylayout *l = &mt_pyruntime->at;

	if (!code || code & 7 || mt_hold_type_of(code) != mt_pyruntime->code_type)
		return 0;
	mt_pycode_text(mt_pyruntime, mt_word(code + l->code_name), part);
	at = mt_put(at, end, part);
	mt_pycode_text(mt_pyruntime, mt_word(code + l->code_filename), part);
	for (base = slash = part; *slash; slash++)
		base = *slash == '/' ? slash + 1 : base;
	at = mt_put(mt_put(at, end, " ("), end, base);
	at = mt_put_number(mt_put(at, end, ":"), end, *(const uint32_t *)(code + l->code_first_line));
	mt_put(at, end, ")");
	return mt_hold_text(text, strlen(text));
}
