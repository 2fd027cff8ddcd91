/*
 * Whether a process works, or only fills memory: what it allocates on its heap and frees again, by time.
 *
 *   fills a table      it frees next to nothing of what it allocates meanwhile
 *   answers requests   it frees what each request needed, and allocates by the same stacks again and again
 *   one large piece    (a table that is converted) it also frees most of what it allocates, but hardly any stack recurs
 *
 * Figures are kept by stretches of time. When there are too many, two become one.
 */
#ifndef MT_MODEL_WORK_H
#define MT_MODEL_WORK_H

#include "analyzer/model/model.h"

struct work;

struct work_done {
	double made;  /* bytes allocated on the heap; a block that realloc moves counts by how much it grows */
	double again; /* part of these by stacks that had allocated some times before */
	/* part of these that was freed before the process had the most live: not what it frees at its end */
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

/* Bytes that it had made on its heap by then. */
double work_made_until(const struct work *w, unsigned process, uint64_t ns);

/* Since when, until then, it has made next to nothing; `to_ns`: it makes something still. */
uint64_t work_rests_since(const struct work *w, unsigned process, uint64_t to_ns);

#endif
