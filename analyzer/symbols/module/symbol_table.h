/* The symbols of one module, by address. The array is sorted when the first one is asked for. */
#ifndef MT_SYMBOLS_MODULE_SYMBOL_TABLE_H
#define MT_SYMBOLS_MODULE_SYMBOL_TABLE_H

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_table;

/* `module` must outlive the table; it may be NULL: then there are no symbols. Returns NULL if there is no memory. */
struct symbol_table *symbol_table_new(Dwfl_Module *module);
void symbol_table_free(struct symbol_table *);

/* The mangled name of the function or variable at `address`; of several the one that is best shown. NULL = none.
 * *kept points to a pointer that the caller may use for this symbol: it is NULL at first, and keeps what is stored
 * there. */
const char *symbol_table_find(struct symbol_table *, uint64_t address, const void ***kept);

#endif
