/* Events of young blocks stand in their ring where they were written, with the time of the allocation, which was
 * before. In a piece of a stream they are put where that time belongs. */
#ifndef MT_UTIL_LATE_SLOTS_H
#define MT_UTIL_LATE_SLOTS_H

#include "format/format.h"

#include <stddef.h>
#include <stdint.h>

/* Slots in the order of docs/FORMAT.md, merged by ticks. Each ALLOC and FREE with a time from before that of a slot
 * before it moves back to behind all slots that are not later, but not beyond the THREAD before it in its ring, since
 * that says whose it is. 0 or -MT_EMEMORY. */
int late_slots_sort(struct mt_event *slots, uint32_t *rings, size_t count);

#endif
