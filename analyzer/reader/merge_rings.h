/*
 * Raw events of one image in one order: those that are in the rings still, behind what the recorder has put into the
 * trace's blocks.
 *
 * Each ring has a cursor with a window of slots that are read ahead and checked. The cursors are a heap, earliest event
 * first, so a step costs log(rings). Of several events at one tick frees come first: memory that is given back and
 * taken again within a tick must not be alive twice.
 *
 * What holds:
 * - Events of one ring stay in the order in which they were written, whatever their ticks say.
 * - A slot and its MT_EXT are in one window and are handed out together.
 * - No event is handed out that blocks of the trace hold: a cursor begins behind what they cover.
 * - A hole in a ring is counted as lost where its process has ended. Where it runs, what follows the hole is younger
 *   than our look at the chunks, and the ring ends there. Events behind the horizon are left for the next time for the
 *   same reason: those of other threads may be missing.
 *
 * It maps nothing, since a file that is cut off must not kill the reader. The recorder's own merge is ring_cut.h: it
 * works on files that are being written and frees chunks. Both have the order of slots from util/ring_slots.h.
 */
#ifndef MT_READER_MERGE_RINGS_H
#define MT_READER_MERGE_RINGS_H

#include "analyzer/reader/image.h"
#include "analyzer/util/event_check.h"

struct merge;

/* covered[i] is the position in ring i, of `rings`, up to which blocks of the trace hold its events: slots before are
 * left out. 0 or -MT_E*. */
int merge_rings_new(struct merge **out, struct image *im, const uint64_t *covered, size_t rings,
		    struct slot_limits limits);
void merge_rings_free(struct merge *m);

/* Fills in up to `room` (>= 2) slots, the ring of each and its position there. *count is how many; 0 = the end. A slot
 * and its MT_EXT stay together. 0 or -MT_E*. */
int merge_rings_next(struct merge *m, struct mt_event *slots, uint32_t *rings, uint64_t *positions, size_t room,
		     size_t *count);

/* One more than the highest number of a ring. */
size_t merge_rings(const struct merge *m);

/* The thread that owns the ring where merging begins; UINT32_MAX = unknown. */
uint32_t merge_rings_first_thread(const struct merge *m, uint32_t ring);

#endif
