/*
 * Names of code that a stripped module has no symbol for, as far as the code itself tells them:
 *
 *   parts of functions  Compilers move what is seldom needed out of a function (foo.cold); the symbol of such a part is
 *                       local, and strip removes it. A part has a range of its own in .eh_frame, and its function jumps
 *                       into it.
 *   the loader's own    Its entry calls _dl_start and _dl_init and hands _dl_fini on; what leads to _dl_init otherwise
 *                       is _dl_open.
 */
#ifndef MT_SYMBOLS_STRIPPED_CODE_H
#define MT_SYMBOLS_STRIPPED_CODE_H

#include "analyzer/symbols/symbol_table.h"

struct symbol_parts;

/* All must outlive it; `path` says whether the module is the loader. NULL: no memory. */
struct symbol_parts *stripped_code_new(Dwfl_Module *module, struct symbol_table *table, const char *path);
void stripped_code_free(struct symbol_parts *);

/* The (mangled) name of the function that the code at this address is a part of; NULL = unknown. */
const char *stripped_code_find(struct symbol_parts *, uint64_t address);

#endif
