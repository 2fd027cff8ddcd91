/*
 * Two sorted arrays stand between an address and its function: address ranges of compilation units, built from
 * the head of each unit, and address ranges of functions, built for a unit the first time an address falls in
 * it. libdw's own ways are .debug_aranges, which clang doesn't write, and dwarf_getscopes, which walks a
 * whole unit for each address.
 */
#include "analyzer/symbols/module/debug_lines.h"

#include "analyzer/util/search.h"

#include <dwarf.h>
#include <stdlib.h>

#define LARGE        100000 /* lines, which are some 50 bytes each ... */
#define LINES_A_UNIT 100    /* ... and more where there is more to be read anew */
#define MAX_DEPTH    64     /* of nested scopes; real ones stay below 20 */

/* Addresses [start, end) belong to `item`: a unit's index, or a function's offset in .debug_info. */
struct span {
	uint64_t start, end;
	uint64_t item;
};

struct spans {
	struct span *at;
	size_t count, room;
};

struct unit {
	Dwarf_Die head; /* has the line table */
	Dwarf_Die body; /* has the functions: the same, but for split DWARF */
	struct spans functions;
	bool built, lined;
};

struct debug_lines_index {
	struct unit *units;
	size_t count, room;
	struct spans spans;
	size_t lines; /* of units whose lines were read */
};

static void spans_add(struct spans *s, uint64_t start, uint64_t end, uint64_t item)
{
	if (start == 0 || start >= end) /* the linker leaves 0 where it dropped a function */
		return;
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 64;
		struct span *at = realloc(s->at, room * sizeof(*at));
		if (!at)
			return;
		s->at = at;
		s->room = room;
	}
	s->at[s->count++] = (struct span){ start, end, item };
}

static void spans_add_die(struct spans *s, Dwarf_Die *die, uint64_t item)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;
	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0)
		spans_add(s, start, end, item);
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end); /* the enclosing one first */
}

static void spans_sort(struct spans *s)
{
	if (s->count)
		qsort(s->at, s->count, sizeof(*s->at), by_start);
}

/* The innermost span that covers the address. A few steps back suffice: spans hardly ever nest. */
static const struct span *spans_find(const struct spans *s, uint64_t address)
{
	const size_t low = SEARCH_FIRST(i, s->count, s->at[i].start > address);
	for (size_t i = low; i > 0 && low - i < 8; i--)
		if (address < s->at[i - 1].end)
			return &s->at[i - 1];
	return NULL;
}

static struct unit *units_add(struct debug_lines_index *index)
{
	if (index->count == index->room) {
		size_t room = index->room ? index->room * 2 : 64;
		struct unit *units = realloc(index->units, room * sizeof(*units));
		if (!units)
			return NULL;
		index->units = units;
		index->room = room;
	}
	struct unit *unit = &index->units[index->count++];
	*unit = (struct unit){ 0 };
	return unit;
}

struct debug_lines_index *debug_lines_index_new(Dwarf *dwarf)
{
	struct debug_lines_index *index = calloc(1, sizeof(*index));
	if (!index)
		return NULL;
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die head, body;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &head, &body) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		struct unit *unit = units_add(index);
		if (!unit)
			break;
		unit->head = head;
		unit->body = type == DW_UT_skeleton && dwarf_tag(&body) == DW_TAG_compile_unit ? body : head;
		spans_add_die(&index->spans, &head, index->count - 1);
	}
	spans_sort(&index->spans);
	return index;
}

void debug_lines_index_free(struct debug_lines_index *index)
{
	if (!index)
		return;
	for (size_t i = 0; i < index->count; i++)
		free(index->units[i].functions.at);
	free(index->units);
	free(index->spans.at);
	free(index);
}

uint32_t debug_lines_unit(const struct debug_lines_index *index, uint64_t address)
{
	const struct span *span = spans_find(&index->spans, address);
	return span ? (uint32_t)span->item : UINT32_MAX;
}

bool debug_lines_is_large(const struct debug_lines_index *index)
{
	return index->lines > LARGE + LINES_A_UNIT * index->count;
}

static bool holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	}
	return false;
}

/* Entries lie in the order of this walk, so one that is not behind all that were seen (a sibling that is a child, too)
 * belongs to a file that lies: to go there would take time without bounds. `seen` is the offset of the last one. */
static void collect_functions(struct spans *spans, Dwarf_Die *parent, int depth, Dwarf_Off *seen)
{
	Dwarf_Die die;
	if (depth > MAX_DEPTH || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		if (dwarf_dieoffset(&die) <= *seen)
			return;
		*seen = dwarf_dieoffset(&die);
		if (tag == DW_TAG_subprogram)
			spans_add_die(spans, &die, *seen);
		if (holds_functions(tag))
			collect_functions(spans, &die, depth + 1, seen);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static const struct span *find_function(struct unit *unit, uint64_t address)
{
	if (!unit->built) {
		Dwarf_Off seen = 0;
		unit->built = true;
		collect_functions(&unit->functions, &unit->body, 0, &seen);
		spans_sort(&unit->functions);
	}
	return spans_find(&unit->functions, address);
}

/* Goes one scope inwards, to the child that covers the address; false at the innermost. */
static bool step_inwards(Dwarf_Die *scope, uint64_t address)
{
	Dwarf_Die die;
	if (dwarf_child(scope, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
		     tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&die, address) > 0) {
			*scope = die;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* The function and what is inlined at the address, outermost first. */
static size_t inline_chain(Dwarf_Die function, uint64_t address, Dwarf_Die *chain, size_t max)
{
	size_t count = 0;
	Dwarf_Die scope = function;
	chain[count++] = function;
	for (int depth = 0; depth < MAX_DEPTH && count < max && step_inwards(&scope, address); depth++)
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine)
			chain[count++] = scope;
	return count;
}

static const char *string_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	if (!dwarf_attr_integrate(die, name, &attribute))
		return NULL;
	return dwarf_formstring(&attribute);
}

static void name_source(struct source *s, Dwarf_Die *die)
{
	s->linkage = string_attribute(die, DW_AT_linkage_name);
	if (!s->linkage)
		s->linkage = string_attribute(die, DW_AT_MIPS_linkage_name);
	s->name = string_attribute(die, DW_AT_name);
}

static uint64_t number_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
		return 0;
	return value;
}

static void line_of_call(struct source *s, struct unit *unit, Dwarf_Die *inlined)
{
	Dwarf_Files *files;
	size_t count;
	size_t file = number_attribute(inlined, DW_AT_call_file);
	s->line = (uint32_t)number_attribute(inlined, DW_AT_call_line);
	if (dwarf_getsrcfiles(&unit->body, &files, &count) == 0 && file < count)
		s->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void line_of_address(struct debug_lines_index *index, struct source *s, struct unit *unit, uint64_t address)
{
	int number;
	size_t count;
	Dwarf_Lines *lines;
	Dwarf_Line *line = dwarf_getsrc_die(&unit->head, address);
	if (!unit->lined && dwarf_getsrclines(&unit->head, &lines, &count) == 0)
		index->lines += count;
	unit->lined = true;
	if (!line)
		return;
	s->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		s->line = (uint32_t)number;
}

static size_t describe(struct debug_lines_index *index, struct unit *unit, uint64_t address, Dwarf_Die *chain,
		       size_t count, struct source *out)
{
	int language = dwarf_srclang(&unit->body);
	for (size_t i = 0; i < count; i++) {
		struct source *s = &out[i];
		Dwarf_Die *die = &chain[count - 1 - i];
		*s = (struct source){ .language = language > 0 ? language : 0, .inlined = i + 1 < count };
		name_source(s, die);
		if (i == 0)
			line_of_address(index, s, unit, address);
		else
			line_of_call(s, unit, die + 1);
	}
	return count;
}

size_t debug_lines_find(struct debug_lines_index *index, uint64_t address, struct source *out, size_t max)
{
	Dwarf_Die chain[MAX_DEPTH];
	const struct span *span = spans_find(&index->spans, address);
	if (!span || max == 0)
		return 0;
	struct unit *unit = &index->units[span->item];
	if (max > MAX_DEPTH)
		max = MAX_DEPTH;
	const struct span *function = find_function(unit, address);
	if (function) {
		Dwarf *dwarf = dwarf_cu_getdwarf(unit->body.cu);
		if (dwarf_offdie(dwarf, function->item, &chain[0]))
			return describe(index, unit, address, chain, inline_chain(chain[0], address, chain, max), out);
	}
	*out = (struct source){ 0 }; /* assembly has lines but no functions */
	line_of_address(index, out, unit, address);
	return out->file != NULL;
}
