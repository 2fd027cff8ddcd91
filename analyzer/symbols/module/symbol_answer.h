/*
 * What the symbol worker says of a module, as bytes: they come through a socket, and lie in the files of the cache.
 * They are believed as far as they make sense.
 *
 *   files    path, size and 1 (0 = it could not be opened), when it was written to last (ns)
 *   places   address, number of frames, and for each frame function, file, language, and line << 1 | inlined
 *
 * Numbers are varints. A text is its length with its NUL, and these bytes; 0 = unknown.
 */
#ifndef MT_SYMBOLS_MODULE_SYMBOL_ANSWER_H
#define MT_SYMBOLS_MODULE_SYMBOL_ANSWER_H

#include "analyzer/symbols/module/symbols.h"
#include "format/varint.h"

#include <stdio.h>

/* A file that was asked for while a module was read: its own, or one with debug information. */
struct symbol_opened {
	const char *path;
	uint64_t size_and_1; /* 0 = there was none that could be read */
	uint64_t written_ns;
};

/* Whether the file is as it was then: the same size, written to last at the same time; or missing still. */
bool symbol_opened_is_unchanged(const struct symbol_opened *);

void symbol_answer_put_opened(FILE *to, const struct symbol_opened *);
void symbol_answer_put_place(FILE *to, uint64_t address, const struct frame *frames, size_t count);

/* The next of them. False: it makes no sense, nor does the rest. Texts are borrowed from the bytes; `frames` has room
 * for MT_SYMBOLS_MAX_FRAMES. */
bool symbol_answer_get_opened(struct varint_in *in, struct symbol_opened *opened);
bool symbol_answer_get_place(struct varint_in *in, uint64_t *address, struct frame *frames, size_t *count);

#endif
