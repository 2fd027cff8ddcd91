/*
 * The analyzer's memory, which can be kept in a file and taken from it by another process of the same program.
 *
 * While mem_use(true) holds, what the analyzer allocates lies in one range of addresses. A file has this range as it
 * is, pointers and all, so whoever loads it has every structure as it was, whatever they are: nothing is written or
 * read field by field. For that the range is at the same addresses in each process, and so are the program's code and
 * constants (it is linked to fixed addresses; a file is good for the very same build alone).
 *
 * What is kept must not point to anything else: the C library's memory, a stack, the environment, file descriptors,
 * threads. Who loads a file renews these.
 *
 * Small blocks are of 64 sizes, each cut from spans of its own; large ones have mappings of their own. Sizes
 * of blocks aren't stored beside them, but of spans and mappings in tables in front.
 */
#ifndef MT_UTIL_MEMORY_MEMORY_H
#define MT_UTIL_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether mem_use() can do anything: the program lies at fixed addresses, and is no sanitizer's. */
bool mem_is_fixed(void);

/* From now on allocations come from the range, or from the C library again; for all threads. Returns what held before.
 * Blocks may be changed and freed at any time. Without room for the range all comes from the C library. */
bool mem_use(bool on);

/* Whether it points into the range. */
bool mem_has(const void *p);

/* Frees all that is in the range. */
void mem_clear(void);

/* A block of the C library's becomes one of the analyzer's: it may have moved. NULL: no memory; `p` is freed. */
void *mem_adopt(void *p, size_t bytes);

/* Writes all of the range to the file at its offset, compressed, and where its root is, which lies in it. No other
 * thread allocates. `most`: bytes that may be written. 0; -1: there was no room, or not all is in the range. */
int mem_save(int fd, void *root, uint64_t most);

/* Frees all that is in the range, and fills it from the file. Returns the root; NULL: the file is damaged, or there is
 * no room, and the range is empty. */
void *mem_load(int fd);

#endif
