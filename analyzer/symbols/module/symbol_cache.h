/*
 * What the symbol worker said of modules, kept on disk for the next trace: MEMTRACE_SYMBOL_CACHE=DIR. A fleet asks for
 * the same addresses of the same libraries a thousand times.
 *
 * A module has a file of its own, named after its build id. What is in it counts as long as every file that was asked
 * for to make it is as it was then, also those that were not there: who installs debug files has their lines at once.
 *
 * A file is written beside its place and renamed, so many processes may share a cache: the last one's stays. One that
 * is damaged, or of another version, is as none, and so is a directory that can't be used.
 */
#ifndef MT_SYMBOLS_MODULE_SYMBOL_CACHE_H
#define MT_SYMBOLS_MODULE_SYMBOL_CACHE_H

#include "analyzer/symbols/module/symbols.h"

#define SYMBOL_CACHE_SETTING "MEMTRACE_SYMBOL_CACHE"

struct symbol_cache; /* of one module */

/* What `dir` has of the module, which may be nothing. NULL: the module has no build id, or there is no memory. */
struct symbol_cache *symbol_cache_open(const char *dir, const struct module_id *);

/* The frames at an address, as the worker gave them; borrowed. `frames` has room for MT_SYMBOLS_MAX_FRAMES. False: not
 * known. */
bool symbol_cache_find(const struct symbol_cache *, uint64_t address, struct frame *frames, size_t *count);

/* Whether the files that its answers come from are as they were. `path`: the module's. */
bool symbol_cache_is_unchanged(const struct symbol_cache *, const char *path);

/* Adds an answer of the worker (symbol_answer.h): files, and places that are not known yet. */
void symbol_cache_add(struct symbol_cache *, const void *opened, size_t opened_bytes, const void *places,
		      size_t places_bytes);

/* Writes the file if something was added. */
void symbol_cache_close(struct symbol_cache *);

#endif
