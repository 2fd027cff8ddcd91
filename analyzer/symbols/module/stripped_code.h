/*
 * Names for code in stripped modules that has no symbol, found by looking at the machine code:
 *
 *   parts of functions       Compilers move what is seldom executed out of a function (foo.cold). The symbol of such a
 *                            part is local, and strip removes it. But it has a range of its own in .eh_frame, and its
 *                            function jumps into it.
 *   functions of the loader  Its entry point calls _dl_start and _dl_init and passes _dl_fini on; the other function
 *                            that calls _dl_init is _dl_open.
 */
#ifndef MT_SYMBOLS_MODULE_STRIPPED_CODE_H
#define MT_SYMBOLS_MODULE_STRIPPED_CODE_H

#include "analyzer/symbols/module/symbol_table.h"

struct symbol_parts;

/* The arguments must outlive it. `path` tells whether the module is the loader. NULL = no memory. */
struct symbol_parts *stripped_code_new(Dwfl_Module *module, struct symbol_table *table, const char *path);
void stripped_code_free(struct symbol_parts *);

/* The mangled name of the function that the code at `address` is a part of; NULL = unknown. */
const char *stripped_code_find(struct symbol_parts *, uint64_t address);

#endif
