/*
 * Offline symbolization: what function, file and line an address of a module is.
 *
 * A module is opened when the first address of it is looked up, and only if it is still the one that was recorded: by a
 * process of its own (symbol_worker.h), so that a file that would take all memory or all time costs no more than its
 * names. Results are cached, so asking again for the same address costs a hash look-up.
 */
#ifndef MT_SYMBOLS_SYMBOLS_H
#define MT_SYMBOLS_SYMBOLS_H

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
	SYMBOLS_UNREAD, /* nothing was looked up yet */
	SYMBOLS_READ,
	SYMBOLS_MISSING,  /* no such file here */
	SYMBOLS_REPLACED, /* the file isn't the one that was recorded */
	SYMBOLS_GIVEN_UP, /* it is, but it can't be read within bounds: symbols_why() */
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

struct symbol_place {
	struct symbol_module *module;
	uint64_t address;
	const struct frame *frames;
	uint32_t count;  /* of frames */
	uint32_t number; /* the caller's */
};

typedef void symbols_progress(size_t done, size_t all);

/* symbols_find() of them all, one file after the other and in it one unit, which are closed again: what it takes to
 * read them is much more than what is found. Fills in and sorts `places`, whose modules are not NULL. `progress` may be
 * NULL. */
void symbols_look_ahead(struct symbols *, struct symbol_place *places, size_t count, symbols_progress *progress);

/* Says what an address is, so that the module's file is not needed for it. The strings are copied; `name`, `library`
 * and `offset` follow from the others. What was read from the module's own file stays. Returns 0 or -MT_EMEMORY. */
int symbols_add_known(struct symbols *, struct symbol_module *, uint64_t address, const struct frame *frames,
		      size_t count);

/* Lets libdwfl ask the servers of DEBUGINFOD_URLS from now on; without this nothing is ever asked of the network. */
void symbols_use_servers(struct symbols *);

/* Looking up is prepared, before this process grows and has threads: it can be done without, but not behind the first
 * thread. */
void symbols_prepare(struct symbols *);

/* Opens no file of a module from now on: only what symbols_add_known() was told has names. */
void symbols_open_none(struct symbols *);

/* Everything known so far, from files that were as recorded or from symbols_add_known(): sorted by build id, path and
 * address, to be freed by the caller; what it points to is borrowed. Returns 0 or -MT_EMEMORY. */
int symbols_places(const struct symbols *, struct symbol_place **places, size_t *count);

enum symbol_state symbols_state(const struct symbol_module *);
const char *symbols_why(const struct symbol_module *);     /* "would take too long" */
struct module_id symbols_id(const struct symbol_module *); /* borrowed */

/* What was looked up of it ahead is in use now; whether that is so. */
void symbols_mark_used(struct symbol_module *);
bool symbols_is_used(const struct symbol_module *);
const char *symbols_path(const struct symbol_module *);

/* Walks the modules: NULL gives the first, and the last gives NULL. */
struct symbol_module *symbols_next(const struct symbols *, const struct symbol_module *);

#endif
