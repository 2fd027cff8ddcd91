/*
 * What the file of a module and its debug files say of an address. They are somebody's files, and libdw takes what they
 * say for true: symbol_worker.c calls this, in a process of its own.
 */
#ifndef MT_SYMBOLS_MODULE_FILE_H
#define MT_SYMBOLS_MODULE_FILE_H

#include "analyzer/symbols/symbols.h"

struct module_files; /* what all of them share: names, and where debug files are */
struct module_file;

struct module_files *module_files_new(void);
void module_files_free(struct module_files *);

/* The file that `id` names, if it is as it was recorded; else *state says why not and NULL is returned. `id` is copied.
 * */
struct module_file *module_file_open(struct module_files *, const struct module_id *id, enum symbol_state *state);
void module_file_close(struct module_file *);

/* Neither grown, cut nor written to since it was opened. */
bool module_file_is_unchanged(const struct module_file *);

/* Frames at `address`, innermost first, at least one; returns how many of `max` were filled in. Of a frame these are
 * set: function (in full), file, line, language, inlined; they live until the file is closed. */
size_t module_file_find(struct module_file *, uint64_t address, struct frame *frames, size_t max);

/* As debug_lines_unit() and debug_lines_is_large(). */
uint32_t module_file_unit(const struct module_file *, uint64_t address);
bool module_file_is_large(const struct module_file *);

#endif
