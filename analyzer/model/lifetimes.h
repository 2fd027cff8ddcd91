/*
 * How old the blocks of one site get, in stretches of a loop: whether what is alive is older than what earlier ones had
 * reached when they were freed. A server's busiest moment grows like a leak, but each of its requests would go as those
 * before did.
 */
#ifndef MT_MODEL_LIFETIMES_H
#define MT_MODEL_LIFETIMES_H

#include <stdbool.h>
#include <stdint.h>

enum { LIFETIMES_STRETCHES = 128 };

struct lifetimes; /* 3 KB */

struct lifetimes *lifetimes_new(void); /* NULL: no memory */
void lifetimes_free(struct lifetimes *l);

/* A block is made in that stretch; freed in one, which was made in another. */
void lifetimes_add(struct lifetimes *l, uint32_t now, uint64_t bytes);
void lifetimes_remove(struct lifetimes *l, uint32_t now, uint32_t made, uint64_t bytes);

/* A stretch begins: what is alive is looked at where it was never more. What a program frees at its end comes behind.
 * */
void lifetimes_begin_stretch(struct lifetimes *l, uint32_t now);

/* Stretches are twice as long from now on. */
void lifetimes_halve(struct lifetimes *l);

/* At that look, of a site that has grown since a stretch: bytes. */
struct lifetimes_found {
	double overdue; /* alive, and older than nearly all of what was freed had been */
	double freed;   /* so far, of blocks that lived for longer than a stretch */
	double since;   /* of these, since it grows */
};

/* NULL: nothing is overdue or freed */
struct lifetimes_found lifetimes_since(const struct lifetimes *l, uint32_t stretch);

/* So many bytes grew, but of blocks that come and go: less than a quarter of it is overdue, and as they came others
 * went. */
bool lifetimes_passes(const struct lifetimes_found *f, double grown);

#endif
