/*
 * Which memory of this process can be read and written, by the list in /proc/self/maps. Used with MT_QUIET_USUAL, where
 * a seccomp filter may kill the program for system calls that would test memory. The list holds for a millisecond, or
 * until something is unmapped, and is not read more often.
 */
#ifndef MT_STACK_MAPS_H
#define MT_STACK_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often mt_range_unmapped() has told that memory was unmapped: what was learnt before may not hold. */
extern uint32_t mt_maps_generation __attribute__((visibility("hidden")));

/* Whether all of the memory can be read (`to_write`: written). False also if that isn't known. Async-signal-safe, with
 * little stack. */
bool mt_maps_has(uint64_t at, size_t bytes, bool to_write);

/* Reads the list, if that is harmless. */
void mt_maps_look(void);

/* Whether all memory from `from`, an address on a stack, up to `to` can be read, because that is the stack of the first
 * thread: it only grows, and no mapping is made close below it. Known from the first reading of the list on; does not
 * read it. */
bool mt_maps_in_first_stack(uint64_t from, uint64_t to);

struct mt_tables;
void mt_maps_tables(struct mt_tables *t);

#endif
