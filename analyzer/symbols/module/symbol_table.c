/*
 * A symbol counts only within its size. Taking the nearest one below, as many tools do, names a wrong function
 * wherever a library is stripped to its exported symbols.
 *
 * Names are only read of symbols that are found: libtorch_cpu's take 60 MiB of the file.
 */
#include "analyzer/symbols/module/symbol_table.h"

#include "analyzer/util/radix_sort.h"
#include "analyzer/util/search.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define UNSIZED_REACH 4096u /* assembly without .size: as far as the next symbol, but not further than this */
#define LOOKS         16    /* aliases, and a symbol within another */

struct symbol {
	uint64_t start;
	uint32_t size;
	int number; /* libdwfl's */
};

struct symbol_table {
	Dwfl_Module *module;
	struct symbol *list;
	size_t count;
	const void **kept; /* by symbol */
};

static bool is_code(const GElf_Sym *sym, GElf_Word section)
{
	int type = GELF_ST_TYPE(sym->st_info);
	return section != SHN_UNDEF && section != SHN_ABS && section != SHN_COMMON && sym->st_value != 0 &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && sym->st_size == 0));
}

/* A variable; not a class's table or the name of a type. */
static bool is_data(const GElf_Sym *sym, GElf_Word section, const char *name)
{
	return section != SHN_UNDEF && section != SHN_ABS && section != SHN_COMMON && sym->st_size &&
	       GELF_ST_TYPE(sym->st_info) == STT_OBJECT && strncmp(name, "_ZT", 3) != 0;
}

static const char *symbol_info(const struct symbol_table *t, int number, GElf_Sym *sym, GElf_Addr *address,
			       GElf_Word *section)
{
	return dwfl_module_getsym_info(t->module, number, sym, address, section, NULL, NULL);
}

static void add_symbol(struct symbol_table *t, int number)
{
	GElf_Sym sym;
	GElf_Addr address;
	GElf_Word section;
	const char *name = symbol_info(t, number, &sym, &address, &section);
	if (!name || (!is_code(&sym, section) && !is_data(&sym, section, name)))
		return;
	if (GELF_ST_TYPE(sym.st_info) == STT_NOTYPE && (!*name || *name == '$')) /* $x, $d: aarch64's mapping symbols */
		return;
	uint32_t size = sym.st_size < UINT32_MAX ? (uint32_t)sym.st_size : UINT32_MAX;
	t->list[t->count++] = (struct symbol){ .start = address, .size = size, .number = number };
}

/* In the order of their numbers before, and so those at one address after it. */
RADIX_SORT(sort_by_start, struct symbol, s->start)

static void bound_unsized(struct symbol *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct symbol *s = &symbols[i];
		size_t next = i + 1;
		if (s->size)
			continue;
		while (next < count && symbols[next].start == s->start)
			next++;
		s->size = UNSIZED_REACH;
		if (next < count && symbols[next].start - s->start < s->size)
			s->size = (uint32_t)(symbols[next].start - s->start);
	}
}

/* Only a complete table says where an unsized symbol ends: the next one of a stripped library may be far off. */
static bool has_full_table(Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

static void read_symbols(struct symbol_table *t)
{
	int count = t->module ? dwfl_module_getsymtab(t->module) : 0;
	t->list = count > 0 ? malloc((size_t)count * sizeof(*t->list)) : NULL;
	for (int i = 0; t->list && i < count; i++)
		add_symbol(t, i);
	if (!t->count)
		return;
	t->kept = calloc(t->count, sizeof(*t->kept));
	if (!t->kept || sort_by_start(&t->list, t->count))
		t->count = 0;
	if (has_full_table(t->module))
		bound_unsized(t->list, t->count);
}

struct symbol_table *symbol_table_new(Dwfl_Module *module)
{
	struct symbol_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->module = module;
	read_symbols(t);
	return t;
}

void symbol_table_free(struct symbol_table *t)
{
	if (!t)
		return;
	free(t->list);
	free(t->kept);
	free(t);
}

/* Of aliases at one address the lowest is shown. */
static uint32_t rank_of(const GElf_Sym *sym, const char *name)
{
	uint32_t underscores = (uint32_t)strspn(name, "_");
	uint32_t binding = GELF_ST_BIND(sym->st_info) == STB_GLOBAL ? 0
			   : GELF_ST_BIND(sym->st_info) == STB_WEAK ? 1
								    : 2;
	return (sym->st_size == 0) * 1000 + binding * 100 + (underscores < 99 ? underscores : 99);
}

/* Among symbols that start where `last` does, and reach as far as the address: [*first, last] of them. */
static const char *best_alias(const struct symbol_table *t, size_t last, uint64_t address, size_t *first, size_t *found)
{
	GElf_Sym sym;
	GElf_Addr at;
	GElf_Word section;
	uint32_t least = UINT32_MAX;
	const char *best = NULL;
	size_t i = last + 1;
	while (i-- > 0 && t->list[i].start == t->list[last].start) {
		const struct symbol *s = &t->list[i];
		const char *name = address - s->start < s->size ? symbol_info(t, s->number, &sym, &at, &section) : NULL;
		*first = i;
		if (!name || !*name || rank_of(&sym, name) >= least)
			continue;
		least = rank_of(&sym, name);
		best = name;
		*found = i;
	}
	return best;
}

const char *symbol_table_find(struct symbol_table *t, uint64_t address, const void ***kept)
{
	size_t found = 0;
	const size_t low = SEARCH_FIRST(i, t->count, t->list[i].start > address);
	for (size_t i = low, first = 0; i > 0 && low - i < LOOKS; i = first) {
		const char *name = best_alias(t, i - 1, address, &first, &found);
		*kept = &t->kept[found];
		if (name)
			return name;
	}
	return NULL;
}
