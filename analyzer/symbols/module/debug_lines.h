/* What DWARF says about one address: the function, its source line, and what was inlined into it. */
#ifndef MT_SYMBOLS_MODULE_DEBUG_LINES_H
#define MT_SYMBOLS_MODULE_DEBUG_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings live as long as the Dwarf. */
struct source {
	const char *linkage; /* mangled name; NULL where the language has none */
	const char *name;
	const char *file;
	uint32_t line;
	int language; /* DW_LANG_*; 0 = unknown */
	bool inlined; /* into the next one */
};

struct debug_lines_index;

/* NULL = no memory. Reads an entry of each compilation unit, so it is best made when a first address is looked up. */
struct debug_lines_index *debug_lines_index_new(Dwarf *dwarf);
void debug_lines_index_free(struct debug_lines_index *);

/* The number of the compilation unit that covers `address` (in the ELF file); UINT32_MAX = none does. The same in each
 * index of one file. */
uint32_t debug_lines_unit(const struct debug_lines_index *, uint64_t address);

/* True if look-ups have read so much that the file is better closed and opened anew: libdw frees nothing before. */
bool debug_lines_is_large(const struct debug_lines_index *);

/* The functions at `address`, innermost first. Returns how many of `max` were filled in; 0 = nothing covers it. */
size_t debug_lines_find(struct debug_lines_index *, uint64_t address, struct source *out, size_t max);

#endif
