/*
 * Which memory of this process can be read and written, as /proc/self/maps says: for where a filter may kill for the
 * calls that would try it (MT_QUIET_USUAL). The list is good for a millisecond and until something is unmapped, and is
 * not read more often than that.
 */
#ifndef MT_MAPS_H
#define MT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False also if it isn't known. Async-signal-safe, and needs little stack. */
bool mt_maps_has(uint64_t at, size_t bytes, bool to_write);

/* Reads the list, as far as that is harmless. */
void mt_maps_look(void);

/* Can all from `from`, where a stack is known to be, up to `to` be read since it is the stack of the first thread? That
 * one only grows, and no mapping is made close below it. Known from the first look on, and without a look. */
bool mt_maps_in_first_stack(uint64_t from, uint64_t to);

#endif
