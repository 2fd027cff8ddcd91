/* What DWARF says about one address: the function, its source line, and what was inlined into it. */
#ifndef MT_SYMBOLS_DEBUG_LINES_H
#define MT_SYMBOLS_DEBUG_LINES_H

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

/* NULL when there is no memory. Reads one entry per compilation unit, so call it when a first look-up comes. */
struct debug_lines_index *debug_lines_index_new(Dwarf *dwarf);
void debug_lines_index_free(struct debug_lines_index *);

/* The number of the compilation unit that has `address`; UINT32_MAX where none has. Equal for each index of the same
 * file. */
uint32_t debug_lines_unit(const struct debug_lines_index *, uint64_t address);

/* So much was read for single addresses that it's better begun anew: libdw gives nothing back. */
bool debug_lines_is_large(const struct debug_lines_index *);

/* Innermost first; returns how many of `max` were filled, 0 when nothing covers `address`. */
size_t debug_lines_find(struct debug_lines_index *, uint64_t address, struct source *out, size_t max);

#endif
