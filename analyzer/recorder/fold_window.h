/*
 * Thinning: leaves pairs of allocation and free out of a process's events, so that what a model makes of the rest is
 * right. docs/design/folding.md says which pairs, and why peaks and totals stay exact.
 *
 * The slots of one process go through in order, in windows. Each window is looked at, then written:
 *
 *   fold_window_begin(t, level)                  0: nothing is left out, only what lives is noted
 *   fold_window_scan(t, slots) ... fold_window_decide(t)
 *   fold_window_write(t, the same slots again) ... with fold_window_finish() wherever a block is to end
 */
#ifndef MT_RECORDER_FOLD_WINDOW_H
#define MT_RECORDER_FOLD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

#define FOLD_LEVELS       5u /* at the last one size and time between no longer matter */
#define FOLD_WINDOW_SLOTS (32u << 20)
#define FOLD_MAX_LIVE     (4u << 20) /* blocks; more are an error: 56 bytes each */

struct fold_window;

/* Slots of all rings in causal order, decoded. */
struct fold_slots {
	const struct mt_event *slots;
	const uint32_t *rings, *threads; /* slot i's ring, and who owned it then */
	size_t count;
};

/* The events of a folded block on their way. Freed by fold_out_fini(). */
struct fold_out {
	struct mt_event *slots;
	uint32_t *rings;
	size_t count, slot_room, ring_room;
};

/* What is known of the process. The arrays are allocated; fold_facts_fini() frees them. */
struct fold_facts {
	bool exact_sizes; /* stacks are sampled, and what a block stands for depends on its size */
	uint64_t *forks;  /* sorted ticks: children inherit what was alive then */
	size_t fork_count;
	uint32_t *parents; /* of nodes node_base, ...; NULL = unknown */
	uint32_t node_base, node_count;
};

void fold_facts_fini(struct fold_facts *facts);

/* Takes the facts over unless it is NULL: without memory. */
struct fold_window *fold_window_new(const struct fold_facts *facts);
void fold_window_free(struct fold_window *t);

/* 0 or an error, as all of these. */
int fold_window_begin(struct fold_window *t, unsigned level);
int fold_window_scan(struct fold_window *t, const struct fold_slots *s);
int fold_window_decide(struct fold_window *t);
int fold_window_write(struct fold_window *t, const struct fold_slots *s, struct fold_out *out);

/* Completes a block: sums of what it lacks, and its first and last slot. How many events it leaves out at the most, for
 * the room that this takes: fold_window_sums() records of two slots, and four slots and two for each device. */
int fold_window_finish(struct fold_window *t, struct fold_out *out);
size_t fold_window_sums(const struct fold_window *t);

void fold_out_fini(struct fold_out *out);

#endif
