/*
 * Thinning: leaves pairs of allocation and free out of a process's events, so that what a model makes of the rest is right.
 * docs/DESIGN.md (Folding) says which pairs, and why peaks and totals stay exact.
 *
 * The slots of one process go through in order, in windows. Each window is looked at, then written:
 *
 *   thin_begin(t, level)                  0: nothing is left out, only what lives is noted
 *   thin_look(t, slots) ... thin_decide(t)
 *   thin_write(t, the same slots again) ... with thin_finish() wherever a block is to end
 */
#ifndef MT_THIN_H
#define MT_THIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

#define THIN_LEVELS       5u        /* at the last one size and time between no longer matter */
#define THIN_WINDOW_SLOTS (32u << 20)
#define THIN_MAX_LIVE     (4u << 20) /* blocks; more are an error: 56 bytes each */

struct thin;

/* Slots of all rings in causal order, decoded. */
struct thin_slots {
	const struct mt_event *slots;
	const uint32_t *rings, *threads; /* slot i's ring, and who owned it then */
	size_t count;
};

/* The events of a folded block on their way. Freed by thin_out_fini(). */
struct thin_out {
	struct mt_event *slots;
	uint32_t *rings;
	size_t count, slot_room, ring_room;
};

/* What is known of the process. The arrays are allocated; thin_facts_fini() frees them. */
struct thin_facts {
	bool exact_sizes;     /* stacks are sampled, and what a block stands for depends on its size */
	uint64_t *forks;      /* sorted ticks: children inherit what was alive then */
	size_t fork_count;
	uint32_t *parents;    /* of nodes node_base, ...; NULL = unknown */
	uint32_t node_base, node_count;
};

void thin_facts_fini(struct thin_facts *facts);

/* Takes the facts over unless it is NULL: without memory. */
struct thin *thin_new(const struct thin_facts *facts);
void thin_free(struct thin *t);

/* 0 or an error, as all of these. */
int thin_begin(struct thin *t, unsigned level);
int thin_look(struct thin *t, const struct thin_slots *s);
int thin_decide(struct thin *t);
int thin_write(struct thin *t, const struct thin_slots *s, struct thin_out *out);

/* Completes a block: sums of what it lacks, and its first and last slot. How many events it leaves out at the most, for
 * the room that this takes: thin_sums() records of two slots, and four slots and two for each device. */
int thin_finish(struct thin *t, struct thin_out *out);
size_t thin_sums(const struct thin *t);

void thin_out_fini(struct thin_out *out);

#endif
