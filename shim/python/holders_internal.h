/* What the parts of a snapshot share. All of it but mt_holders_layout is the child's alone. */
#ifndef MT_PYTHON_HOLDERS_INTERNAL_H
#define MT_PYTHON_HOLDERS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "shim/base/holders.h"
#include "shim/python/pyfind.h"

typedef int mt_visit(void *object, void *arg);

/* What is used of the interpreter. Functions are its public ones, and none of them allocates, runs Python code or takes
 * a lock. NULL = this version has none. */
struct mt_holders_python {
	uint32_t version;
	uint32_t head; /* bytes of PyObject */
	int (*add_pending)(int (*)(void *), void *);
	void (*visit_objects)(mt_visit *, void *); /* PyUnstable_GC_VisitObjects, since 3.12 */
	void *(*interp_head)(void);
	void *(*interp_next)(void *);
	void *(*thread_head)(void *);
	void *(*thread_next)(void *);
	int (*dict_next)(void *, intptr_t *, void **, void **);
	int (*line_of)(void *code, int offset); /* PyCode_Addr2Line */
	int (*gc_is_enabled)(void);
	int (*is_initialized)(void);
	uintptr_t runtime; /* _PyRuntime */
	uintptr_t dict, tuple, list, module, function, type, frame, text, integer, none, boolean, cell;
	/* offsets of a frame and its code: locals, names of these, value stack's bound in slots */
	uint32_t frame_locals, code_names, code_stack, frame_size_at, cached_keys;
};
extern struct mt_holders_python mt_holders_python;

/* ---- holders_out.c: the file ---- */

struct mt_holders_shared {       /* one page that parent and child share */
	volatile uint64_t type;  /* of the object that is being looked at, or one of the two below; 0 = none */
	volatile uint64_t bytes; /* of the whole snapshot, 0 = not finished */
	volatile uint64_t cut;
};
#define MT_HOLDERS_BLOCKS 1
#define MT_HOLDERS_FRAMES 2
extern struct mt_holders_shared *mt_holders_shared;

/* Nonzero = the file is open at `offset`, behind what is there to stay. */
int mt_hold_open(uint64_t offset, struct mt_hold_head *head);
void mt_hold_number(uint64_t value);
void mt_hold_address(uintptr_t at);
void mt_hold_bytes(const void *data, size_t bytes);
int mt_hold_is_cut(void);
void mt_hold_cut(void);
void mt_hold_close(struct mt_hold_head *head);

/* A table from address to number, in pages of its own; it grows. */
struct mt_hold_map {
	struct mt_hold_entry {
		uintptr_t key;
		uint32_t value;
	} *entry;
	uint64_t mask, used;
};
/* The value of a key, which is `value` if it is new; *added tells. UINT32_MAX = no memory. */
uint32_t mt_hold_map_add(struct mt_hold_map *m, uintptr_t key, uint32_t value, int *added);
int mt_hold_map_has(const struct mt_hold_map *m, uintptr_t key);

/* A growing array of words. Zero = no memory, and the snapshot is cut. */
struct mt_hold_words {
	uintptr_t *at;
	size_t count, room;
};
int mt_hold_push(struct mt_hold_words *w, uintptr_t word);

/* ---- holders_maps.c: which memory is whose ---- */

enum mt_hold_place {
	MT_PLACE_NONE,  /* not mapped, or nothing that an object can have: code, stacks, files */
	MT_PLACE_HEAP,  /* private and anonymous, to be read */
	MT_PLACE_OTHER, /* shared, or address space alone: what a device or another process has */
	MT_PLACE_FILE,  /* of a module or another file, to be read */
	MT_PLACE_CODE,  /* the same, to be executed, too */
};
int mt_hold_maps(void);
enum mt_hold_place mt_hold_place(uintptr_t at);
int mt_hold_readable(uintptr_t at, size_t bytes);

/* ---- holders_walk.c ---- */

void mt_hold_walk(struct mt_hold_head *head, const uintptr_t *skip, unsigned skips, const uintptr_t *tracked,
		  size_t count);
/* All that the collector tracks, into `out`. */
void mt_hold_collect(struct mt_hold_words *out, struct mt_hold_head *head);

/* ---- holders_frames.c ---- */

void mt_hold_frames(void);
/* Names the edges to a generator's local variables. Its label, or 0. `bytes`: of its head. */
uint32_t mt_hold_generator(uintptr_t object, uintptr_t bytes);
/* Notes the frames of a greenlet that waits, for mt_hold_frames(). */
void mt_hold_greenlet(uintptr_t object, uintptr_t bytes);
/* The same of a frame that is an object. */
uint32_t mt_hold_frame_object(uintptr_t object);

/* Edges to the variables of a closure, by their names: its tuple has none. */
void mt_hold_closure(uintptr_t code, uintptr_t closure);

/* ---- holders_items.c: what an item is made of ---- */

uint32_t mt_hold_text(const char *text, size_t bytes);
uint32_t mt_hold_text_of(uintptr_t object); /* of a str; number + 1, or 0 */
void mt_hold_edge(uint32_t name, uintptr_t to);
void mt_hold_meet(uintptr_t object);       /* so that it gets an item if it is none that is tracked */
void mt_hold_meet_maybe(uintptr_t object); /* the same of what only a word points to */
int mt_hold_is_object(uintptr_t at);
void mt_hold_name(uintptr_t value, uint32_t name); /* of the edge to this value */
uint32_t mt_hold_code_label(uintptr_t code);

static inline uintptr_t mt_word(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

#endif
