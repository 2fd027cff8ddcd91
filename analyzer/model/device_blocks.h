/*
 * What the parts of device_blocks.c share: device_block_sums.c counts, device_extents.c knows segments and mappings,
 * device_graphs.c which of them are private, device_physical.c the handles of the virtual memory API, device_undo.c
 * frees that did not happen. Only these and device_fork_exit.c include it.
 */
#ifndef MT_MODEL_DEVICE_BLOCKS_H
#define MT_MODEL_DEVICE_BLOCKS_H

#include "analyzer/model/device.h"

/* ---- device_block_sums.c ---- */

enum device_counter { COUNT_FREES, COUNT_MISSED, COUNT_UNKNOWN, COUNT_TEMPORARY };

void device_count_up(struct process_memory *memory, struct share *s, enum event_space space, enum device_counter c,
		     uint64_t n);

/* A block begins to be live (delta 1) or ends (-1). */
void device_move_block(struct share *s, enum event_space space, const struct block *b, int64_t delta, uint64_t ns);
/* It ended without a word. */
void device_end_block(struct share *s, enum event_space space, struct block *b, uint64_t ns);

/* Blocks of all spaces lie in one table of what a parent had. */
static inline uint64_t inherited_blocks_key(enum event_space space, uint64_t addr)
{
	return addr ^ (uint64_t)(space + 1) << 60;
}

/* ---- device_extents.c ---- */

int extent_put(struct share *s, const struct extent *x, uint64_t ns);
/* The first one that overlaps; borrowed until the next change. */
static inline struct extent *extent_at(struct share *s, uint64_t start, uint64_t end)
{
	const struct range *r = ranges_overlap(&s->extents, start, end);
	return r ? &s->extent[r->file] : NULL;
}
/* Takes it out; returns what it was. */
struct extent extent_remove(struct share *s, struct extent *x, uint64_t ns);
/* What is mapped in an extent is one view less. *u, unless NULL, remembers it. */
int extent_unmap(struct process_memory *memory, struct share *s, struct extent *x, struct device_undo *u, uint64_t ns);
/* Whatever lies in [start, end) has ended without a word. */
int extents_clear(struct share *s, uint64_t start, uint64_t end, uint64_t ns);
/* A block of the pool lies in [start, end), `capture` is the number of the capture it was made in (0 = none). *newest
 * is when the newest memory in it that ring `ring` got was got; 0 = none. 0 or -MT_EMEMORY. */
int extents_note_pool(struct share *s, const struct device_event *e, uint64_t *newest);
struct range *reservation_at(const struct process_memory *memory, uint64_t addr);

/* ---- device_graphs.c ---- */

/* A block was made in capture `number`: index + 1 of its entry, made if it is new; or -MT_EMEMORY. */
int64_t graphs_capture(struct share *s, uint32_t number);
/* A block of that capture lies in *x, whose reserved range (NULL = none) is *r; `empty`: none did before. */
void graphs_add_block(struct share *s, struct extent *x, struct range *r, uint32_t capture, bool empty, uint64_t ns);
/* A private segment begins (delta 1) or ends (-1). */
void graphs_change(struct share *s, const struct extent *x, int64_t delta, uint64_t ns);
/* A block of the pool begins or ends, while what it lies in is there. */
void graphs_move_block(struct share *s, const struct block *b, int64_t delta, uint64_t ns);

/* ---- device_physical.c ---- */

enum event_space physical_space(const struct physical *p);
/* Adds one, unreleased or not; returns its index or -MT_EMEMORY. */
int64_t physical_put(struct process_memory *memory, const struct physical *p, uint64_t ns);
/* By its handle; NULL = none. Valid until the next put. */
struct physical *physical_find(const struct process_memory *memory, uint64_t handle);
int physical_hold(struct process_memory *memory, uint64_t handle, uint32_t index);
/* The handle was given back. */
void physical_release(struct process_memory *memory, struct physical *p, uint64_t ns);
void physical_drop_if_unused(struct process_memory *memory, struct physical *p, uint64_t ns);
void physical_count_maps(struct physical *p, int delta, uint64_t ns);

/* ---- device_undo.c ---- */

/* The ring's place to remember this free; NULL = no memory. */
struct device_undo *device_undo_of(struct process_memory *memory, const struct device_event *e);

#endif
