/*
 * Offline symbolization: what function, file and line an address of a module is.
 *
 * A module is opened when the first address of it is looked up, and only if it is still the one that was recorded.
 * Results are cached, so asking again for the same address costs a hash look-up.
 */
#ifndef MT_ANALYZER_SYMBOLS_H
#define MT_ANALYZER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings are borrowed from the struct symbols. */
struct frame {
	const char *function; /* in full; NULL = unknown */
	const char *name;     /* short form of it; NULL = unknown */
	const char *file;     /* of the source; NULL = unknown */
	const char *library;  /* path as recorded; NULL: no module (JIT code, or unloaded memory) */
	const char *language; /* "c", "c++", "rust", ...; NULL = unknown */
	uint64_t offset;      /* in the library; without one the address itself */
	uint32_t line;        /* 0 = unknown */
	bool inlined;         /* into the next frame */
};

enum symbol_state {
	SYMBOLS_UNREAD,   /* nothing was looked up yet */
	SYMBOLS_READ,
	SYMBOLS_MISSING,  /* no such file here */
	SYMBOLS_REPLACED, /* the file isn't the one that was recorded */
};

struct module_id {
	const char *path;
	const void *build_id;
	size_t build_id_bytes;
	uint64_t seen_ns; /* wall clock; a file without build id must not be younger. 0 = unknown */
};

struct symbols;
struct symbol_module;

struct symbols *symbols_new(void);
void symbols_free(struct symbols *);

/* The module for this path and build id, shared by all processes. Borrowed; NULL when there is no memory. */
struct symbol_module *symbols_module(struct symbols *, const struct module_id *);

/* Frames at `address` (run-time address minus bias; of a return address minus 1), innermost first. At least one,
 * borrowed. `module` may be NULL. */
size_t symbols_find(struct symbols *, struct symbol_module *, uint64_t address, const struct frame **frames);

enum symbol_state symbols_state(const struct symbol_module *);
const char *symbols_path(const struct symbol_module *);

/* Walks the modules: NULL gives the first, and the last gives NULL. */
struct symbol_module *symbols_next(const struct symbols *, const struct symbol_module *);

#endif
