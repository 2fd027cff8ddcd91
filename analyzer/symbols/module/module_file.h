/*
 * What the file of a module and its debug files say of an address. Such files can come from anybody, and libdw trusts
 * what is in them. So only symbol_worker.c calls this, in a process of its own.
 */
#ifndef MT_SYMBOLS_MODULE_MODULE_FILE_H
#define MT_SYMBOLS_MODULE_MODULE_FILE_H

#include "analyzer/symbols/module/symbols.h"

struct module_files; /* what module files share: strings of names, and where debug files are */
struct module_file;

struct module_files *module_files_new(void);
void module_files_free(struct module_files *);

/* Opens the file that `id` names, if it is the one that was recorded. Else returns NULL, and *state says why. `id` is
 * copied. */
struct module_file *module_file_open(struct module_files *, const struct module_id *id, enum symbol_state *state);
void module_file_close(struct module_file *);

/* True if the file has not been written to or changed its size since it was opened. */
bool module_file_is_unchanged(const struct module_file *);

/* The frames at `address` (in the ELF file), innermost first, at least one. Returns how many of `max` were filled in.
 * Set are function (in full), file, line, language and inlined; strings live until the file is closed. */
size_t module_file_find(struct module_file *, uint64_t address, struct frame *frames, size_t max);

/* See debug_lines_unit() and debug_lines_is_large(). */
uint32_t module_file_unit(const struct module_file *, uint64_t address);
bool module_file_is_large(const struct module_file *);

#endif
