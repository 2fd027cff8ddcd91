/*
 * Offline symbolization: which function, file and line an address of a module is.
 *
 * The file of a module is opened when its first address is looked up, and only if it is still the one that was
 * recorded. A process of its own reads it (symbol_worker.h): if a file takes too much memory or time, only its names
 * are lost. Results are cached: asking again for the same address costs a hash look-up.
 */
#ifndef MT_SYMBOLS_MODULE_SYMBOLS_H
#define MT_SYMBOLS_MODULE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings are borrowed from the struct symbols. */
struct frame {
	const char *function; /* in full; NULL = unknown */
	const char *name;     /* short form of it; NULL = unknown */
	const char *file;     /* of the source; NULL = unknown */
	const char *library;  /* path as recorded, but symbols_show_as(); NULL = in no module (JIT, or unloaded) */
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
	SYMBOLS_GIVEN_UP, /* it is the right file, but can't be read within bounds: symbols_why() */
};

/* Which file a module was recorded from. */
struct module_id {
	const char *path;
	const void *build_id;
	size_t build_id_bytes;
	uint64_t seen_ns;  /* wall clock; a file without build id must not be younger. 0 = unknown */
	bool any_build_id; /* whoever recorded it noted none, so the file may have one */
};

struct symbols;
struct symbol_module;

struct symbols *symbols_new(void);
void symbols_free(struct symbols *);

/* The module of this path and build id, made if it is new; all processes share it. Borrowed; NULL = no memory. */
struct symbol_module *symbols_module(struct symbols *, const struct module_id *);

/* Of a program that was called by another name than its file's (redis-server of redis-check-rdb, an applet of busybox):
 * frames show that one. A version (python3 of python3.11) is none; nor are two of them. */
void symbols_show_as(struct symbol_module *, const char *name);

/* The frames at `address` in the module's file (run-time address - bias; of a return address 1 less), innermost first.
 * Returns how many, at least one; borrowed. `module` NULL = the address is in no module. */
size_t symbols_find(struct symbols *, struct symbol_module *, uint64_t address, const struct frame **frames);

/* An address and its frames. */
struct symbol_place {
	struct symbol_module *module;
	uint64_t address;
	const struct frame *frames; /* borrowed */
	uint32_t count;             /* of frames */
	uint32_t number;            /* for the caller's use */
};

/* Called now and then: so many of all places are looked up. */
typedef void symbols_progress(size_t done, size_t all);

/* Looks up many places (their modules are not NULL), and sorts and fills in `places`. It goes file by file, and within
 * a file by compilation unit, and closes each when it is done: reading them takes far more memory than their results.
 * `progress` may be NULL. */
void symbols_look_ahead(struct symbols *, struct symbol_place *places, size_t count, symbols_progress *progress);

/* Adds the frames at an address from elsewhere, so that the module's file is not needed for it. Strings are copied;
 * `name`, `library` and `offset` are worked out from the rest. Frames that were read from the module's own file are not
 * replaced. Returns 0 or -MT_EMEMORY. */
int symbols_add_known(struct symbols *, struct symbol_module *, uint64_t address, const struct frame *frames,
		      size_t count);

/* Lets libdwfl ask the servers of DEBUGINFOD_URLS from now on; without this nothing is ever asked of the network. */
void symbols_use_servers(struct symbols *);

/* Starts the symbol worker, best before this process grows. If this is called at all, it has to be before the first
 * thread is made. */
void symbols_prepare(struct symbols *);

/* Of a kept analysis (analysis/index.h): whether the files that names come from are as they were; and what begins anew
 * in another process. */
bool symbols_are_unchanged(const struct symbols *);
void symbols_resume(struct symbols *);

/* From now on no file of a module is opened: only addresses given to symbols_add_known() have names. */
void symbols_open_none(struct symbols *);

/* All places that are known so far, from modules' files or from symbols_add_known(), sorted by build id, path and
 * address. The array is freed by the caller, what it points to is borrowed. Returns 0 or -MT_EMEMORY. */
int symbols_places(const struct symbols *, struct symbol_place **places, size_t *count);

enum symbol_state symbols_state(const struct symbol_module *);
const char *symbols_why(const struct symbol_module *);     /* with SYMBOLS_GIVEN_UP: "would take too long" */
struct module_id symbols_id(const struct symbol_module *); /* borrowed */

/* Marks the module: frames of it that were looked up ahead are used now. Whether that was done. */
void symbols_mark_used(struct symbol_module *);
bool symbols_is_used(const struct symbol_module *);
const char *symbols_path(const struct symbol_module *);
const char *symbols_shown(const struct symbol_module *); /* `library` of its frames, the same pointer */

/* Walks the modules: NULL gives the first, and the last gives NULL. */
struct symbol_module *symbols_next(const struct symbols *, const struct symbol_module *);

#endif
