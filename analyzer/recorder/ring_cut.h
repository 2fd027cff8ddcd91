/*
 * A cut: the events of all rings of one process up to one moment, in one order.
 *
 * The moment (horizon) lies some milliseconds back and is chosen before any ring is looked at. So an event that is
 * published later is causally later than everything in the cut, even if its thread was held up between stamp and
 * publication and its tick is older: it goes into the next cut. That makes position in the trace causal order.
 *
 * Slots are read by position, not mapped: a file that is cut off must not kill the recorder.
 */
#ifndef MT_RECORDER_RING_CUT_H
#define MT_RECORDER_RING_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

/* How far a ring is in the trace. */
struct ring_place {
	uint64_t position;
	uint32_t thread; /* that owns the ring there */
	bool known;      /* thread is */
};

/* What the cut is made of. */
struct ring_cut_rings {
	int fd;          /* PID-N.ring */
	uint8_t *states; /* mapped */
	uint32_t chunks;
	bool ended; /* nobody appends any more: everything is taken, and holes are skipped */
	/* then what is taken gives back its disk space at once, which the next block may need */
	bool gives_back;
	uint64_t horizon;          /* unless ended */
	struct ring_place *places; /* by ring */
	size_t place_room;
};

struct cut;

struct cut *ring_cut_new(void);
void ring_cut_free(struct cut *c);

/* Looks at all chunks. 0 or an error; then ring_cut_next() until it gives less than asked for. */
int ring_cut_begin(struct cut *c, struct ring_cut_rings *r);

/* Up to `room` (>= 2) slots; a mapping's two stay together. Returns how many there were. */
size_t ring_cut_next(struct cut *c, struct mt_event *slots, uint32_t *rings, size_t room);

/* What the slots of the last ring_cut_next() cover; borrowed. */
const struct mt_cover *ring_cut_covers(const struct cut *c, uint32_t *count);

/* Slots of an ended process that were there and can't be read, as its file was cut off or overwritten; so far of this
 * cut. */
uint64_t ring_cut_skipped(const struct cut *c);

/* They are in the trace: notes the places and frees chunks that are wholly there. Returns how many became free. */
uint32_t ring_cut_commit(struct cut *c);

#endif
