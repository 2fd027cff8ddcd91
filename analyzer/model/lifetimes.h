/*
 * How old the blocks of one site get, in stretches of a loop, and whether live blocks are older than earlier blocks
 * were when they were freed. The busiest moment of a server grows like a leak, but its blocks are no older than others:
 * they will be freed as those were.
 */
#ifndef MT_MODEL_LIFETIMES_H
#define MT_MODEL_LIFETIMES_H

#include <stdbool.h>
#include <stdint.h>

enum { LIFETIMES_STRETCHES = 128 };

struct lifetimes; /* 3 KB */

struct lifetimes *lifetimes_new(void); /* NULL: no memory */
void lifetimes_free(struct lifetimes *l);

/* A block is allocated in stretch `now`; a block is freed in stretch `now` that was allocated in stretch `made`. */
void lifetimes_add(struct lifetimes *l, uint32_t now, uint64_t bytes);
void lifetimes_remove(struct lifetimes *l, uint32_t now, uint32_t made, uint64_t bytes);

/* A stretch begins. If more bytes are alive than ever before, what is found below is of this moment. So what a program
 * frees as it ends does not count. */
void lifetimes_begin_stretch(struct lifetimes *l, uint32_t now);

/* Stretches are twice as long from now on. */
void lifetimes_halve(struct lifetimes *l);

/* Of a site that has grown since a stretch, at that moment: bytes. */
struct lifetimes_found {
	double overdue; /* alive, and older than nearly all freed blocks had become */
	double freed;   /* freed so far, of blocks that lived for longer than a stretch */
	double since;   /* part of `freed` that was freed since the site grows */
};

/* `l` may be NULL: then nothing is overdue or freed. */
struct lifetimes_found lifetimes_since(const struct lifetimes *l, uint32_t stretch);

/* Whether `grown` bytes are blocks that come and go: less than a quarter is overdue, and others were freed. */
bool lifetimes_passes(const struct lifetimes_found *f, double grown);

#endif
