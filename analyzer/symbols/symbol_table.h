/* The symbols of one module by address: an array that is sorted when the first one is wanted. */
#ifndef MT_SYMBOLS_SYMBOL_TABLE_H
#define MT_SYMBOLS_SYMBOL_TABLE_H

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_table;

/* module may be NULL, and must outlive it; NULL: no memory */
struct symbol_table *symbol_table_new(Dwfl_Module *module);
void symbol_table_free(struct symbol_table *);

/* The mangled name of the function there, of several the one that is to be shown; NULL = none. *kept is what the caller
 * has put there for this symbol, at first NULL. */
const char *symbol_table_find(struct symbol_table *, uint64_t address, const void ***kept);

#endif
