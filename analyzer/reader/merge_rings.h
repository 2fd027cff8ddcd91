/* Raw events of one image in one order: the rings are merged by time, a free before anything else at the same tick, and
 * within a ring position is order whatever the ticks say. */
#ifndef MT_READER_MERGE_RINGS_H
#define MT_READER_MERGE_RINGS_H

#include "analyzer/reader/image.h"
#include "analyzer/util/event_check.h"

struct merge;

/* `covered` says per ring (of `rings`) how far blocks hold its events; slots before that are left out. */
int merge_rings_new(struct merge **out, struct image *im, const uint64_t *covered, size_t rings,
		    struct slot_limits limits);
void merge_rings_free(struct merge *m);

/* Up to `room` (>= 2) slots with their places in their rings; *count = 0 at the end. A mapping's two slots stay
 * together. */
int merge_rings_next(struct merge *m, struct mt_event *slots, uint32_t *rings, uint64_t *positions, size_t room,
		     size_t *count);

/* Rings it knows have numbers below. */
size_t merge_rings(const struct merge *m);

/* The thread that owns the ring where merging begins; UINT32_MAX = unknown. */
uint32_t merge_rings_first_thread(const struct merge *m, uint32_t ring);

#endif
