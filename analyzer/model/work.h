/*
 * Whether a process works: what it makes of its own memory on the host and frees again, by time. A program that only
 * fills a table frees next to nothing of what it makes meanwhile; one that answers requests frees what each of them
 * needed, and makes it by the same stacks again and again: one large piece of work (a table that is turned over) also
 * frees most of what it makes, but hardly any of its stacks recurs. In stretches of time, which are twice as long when
 * there are too many.
 */
#ifndef MT_MODEL_WORK_H
#define MT_MODEL_WORK_H

#include "analyzer/model/model.h"

struct work;

struct work_done {
	double made;  /* bytes on its heap; of a block that realloc moves by how much it changes */
	double again; /* of these what stacks made that had allocated some times before */
	/* of these what was not kept: freed before the most was live, so that what is freed as it ends is none */
	double passing;
	double busy; /* the part of the time in which something was freed, 0 to 1 */
};

#define WORK_RESTS  0.1  /* of the time, in which something is made: where it is less the process does not work */
#define WORK_CLEANS 0.25 /* of what it had, that is freed in the first half of such a time */

/* How it went on behind a moment. */
struct work_behind {
	double making; /* the part of the time in which something was made, 0 to 1 */
	double freed;  /* by so many bytes less was live after half of the time */
};

struct work *work_new(void); /* NULL when there is no memory */
void work_free(struct work *w);

/* To be called for every change of a pass. */
void work_change(struct work *w, const struct model_change *c);

struct work_done work_between(const struct work *w, unsigned process, uint64_t from_ns, uint64_t to_ns);
struct work_behind work_behind(const struct work *w, unsigned process, uint64_t from_ns, uint64_t to_ns);

/* Since when, until then, it has made next to nothing; `to_ns`: it makes something still. */
uint64_t work_rests_since(const struct work *w, unsigned process, uint64_t to_ns);

#endif
