/*
 * Thinning leaves pairs of an allocation and its free out of a process's events, and puts sums in their place, from
 * which the model gets the same figures. docs/design/folding.md says which pairs, and why peaks and totals stay exact.
 *
 * The slots of one process pass through in order, in windows. Each window is looked at, then written:
 *
 *   fold_window_begin(t, level)                  level 0: nothing is left out, only live blocks are noted
 *   fold_window_scan(t, slots) ... fold_window_decide(t)
 *   fold_window_write(t, the same slots again) ... with fold_window_finish() wherever a block is to end
 */
#ifndef MT_RECORDER_FOLD_FOLD_WINDOW_H
#define MT_RECORDER_FOLD_FOLD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

#define FOLD_LEVELS       5u          /* the last level leaves out pairs of any size, however far apart */
#define FOLD_WINDOW_SLOTS (32u << 20) /* of the longest window */
#define FOLD_MAX_LIVE     (4u << 20)  /* live blocks, of 56 bytes each; more are an error */

struct fold_window;

/* Slots of all rings in causal order, decoded. */
struct fold_slots {
	const struct mt_event *slots;
	const uint32_t *rings, *threads; /* slot i's ring, and who owned it then */
	size_t count;
};

/* Slots that were written and are not yet encoded into a folded block, and the ring of each. fold_out_fini() frees. */
struct fold_out {
	struct mt_event *slots;
	uint32_t *rings;
	size_t count, slot_room, ring_room;
};

/* What is known of the process. The arrays are allocated; fold_facts_fini() frees them. */
struct fold_facts {
	bool exact_sizes; /* sums are kept by exact size: where blocks or stacks are sampled a weight depends on it */
	uint64_t mean;    /* MT_RECORD_SAMPLED: a smaller block of the heap stands for others; else 0 */
	uint64_t *forks;  /* ticks of its forks, sorted: children inherit what lived then, so that is kept */
	size_t fork_count;
	uint32_t *parents; /* of nodes node_base, node_base + 1, ...; NULL = unknown */
	uint32_t node_base, node_count;
};

void fold_facts_fini(struct fold_facts *facts);

/* Takes over what `facts` points to, unless it returns NULL: no memory. */
struct fold_window *fold_window_new(const struct fold_facts *facts);
void fold_window_free(struct fold_window *t);

/* Functions that return int: 0 or a negative -MT_E*. */
int fold_window_begin(struct fold_window *t, unsigned level);
int fold_window_scan(struct fold_window *t, const struct fold_slots *s);
int fold_window_decide(struct fold_window *t);
int fold_window_write(struct fold_window *t, const struct fold_slots *s, struct fold_out *out);

/* Completes a block: adds the sums of what it leaves out, and its first and last records. For that it needs room:
 * fold_window_sums() records of two slots each, four slots more, and two for each device. */
int fold_window_finish(struct fold_window *t, struct fold_out *out);
size_t fold_window_sums(const struct fold_window *t);

void fold_out_fini(struct fold_out *out);

#endif
