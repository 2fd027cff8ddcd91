/*
 * A cut is the events of all rings of one process up to one moment, in one order.
 *
 * The moment, the horizon, lies some milliseconds back and is chosen before any ring is looked at. An event that is
 * published after that goes into the next cut, whatever its tick: its thread may have been held up between the stamp
 * and the publication. It is causally later than everything in this cut. So the order of events in the trace is causal.
 *
 * Slots are read by position, not mapped: a file that is cut off must not kill the recorder.
 *
 * The reader merges rings as well (reader/merge_rings.h): of files that nobody frees, as far as they go, each slot with
 * its place. Heap and order of slots are one (util/heap.h, util/ring_slots.h); the rest of a cut is chunks and their
 * states, which a reader has none of.
 */
#ifndef MT_RECORDER_RINGS_RING_CUT_H
#define MT_RECORDER_RINGS_RING_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

/* Up to where a ring's events are in the trace. */
struct ring_place {
	uint64_t position; /* in slots since the ring's beginning */
	uint32_t thread;   /* that owns the ring there */
	bool known;        /* thread is */
};

/* What a cut is made from; borrowed until ring_cut_commit(). */
struct ring_cut_rings {
	int fd;          /* PID-N.ring */
	uint8_t *states; /* enum mt_chunk_state of each chunk; mapped */
	uint32_t chunks;
	bool ended; /* nobody appends any more: all events are taken, and unreadable slots are skipped */
	/* with `ended`: disk space of slots that were taken is freed at once, as the next block may need it */
	bool gives_back;
	uint64_t horizon;          /* in ticks; not used with `ended` */
	struct ring_place *places; /* by ring */
	size_t place_room;
	/* with `ended`: PID-N.young, whose rest becomes rings from number young_rings on; NULL = none */
	const void *young;
	size_t young_bytes;
	uint32_t young_rings;
};

struct cut;

struct cut *ring_cut_new(void);
void ring_cut_free(struct cut *c);

/* Looks at all chunks. 0 or an error. Then call ring_cut_next() until it returns less than `room`. */
int ring_cut_begin(struct cut *c, struct ring_cut_rings *r);

/* Fills in up to `room` (>= 2) slots and the ring of each. A slot and its MT_EXT stay together. Returns how many. */
size_t ring_cut_next(struct cut *c, struct mt_event *slots, uint32_t *rings, size_t room);

/* Which part of which ring the slots of the last ring_cut_next() are; borrowed. */
const struct mt_cover *ring_cut_covers(const struct cut *c, uint32_t *count);

/* How many slots of an ended process could not be read so far in this cut, as its file was cut off or overwritten. */
uint64_t ring_cut_skipped(const struct cut *c);

/* The slots that were returned are in the trace now: updates `places` and frees chunks whose slots all are. Returns how
 * many chunks became free. */
uint32_t ring_cut_commit(struct cut *c);

#endif
