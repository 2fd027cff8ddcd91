/*
 * Finds the loop that a program trains in, in the first of two passes, from what recurs. In the second pass steps.h cuts time
 * into steps by it.
 *
 * Where steps begin is said, in this order, by
 *   marks      memtrace_step()
 *   ranges     NVTX or mstx ranges called "step 12", "iteration", "ProfilerStep#3" and so on
 *   optimizer  visits to an optimizer's step: a step ends with one, however many micro-steps came before it. Of several
 *              optimizers that of the line which is visited most
 *   sites      sites that recur: allocations of one and the same stack at regular intervals. Sites with the same count are one
 *              level of nested loops. A loop within a step (layers) is no step: its short intervals take only a part of
 *              what is allocated. What is left is the innermost level that covers the time; or the one outside it, a unit of
 *              work that repeats as a whole: with up to LEAST_MICRO turns of the inner one in each of its own (micro-steps), or
 *              with more sites than those have. Of loops that make most of the blocks on devices and free them it is one,
 *              however short and fast; else a long one; else the one that the process ends with
 *
 * Imports are left out. Memory: some 70 bytes a site, and 112 for one that recurs.
 */
#ifndef MT_ANALYZER_RHYTHM_H
#define MT_ANALYZER_RHYTHM_H

#include "analyzer/model.h"

enum rhythm_source { RHYTHM_NONE = 0, RHYTHM_MARKS, RHYTHM_NVTX, RHYTHM_MSTX, RHYTHM_OPTIMIZER, RHYTHM_SITES };

enum rhythm_role {
	ROLE_LOOP = 1,  /* recurs at least once in most steps */
	ROLE_BEAT = 2,  /* RHYTHM_OPTIMIZER: of the optimizer, which ends a step; RHYTHM_SITES: begins one */
	ROLE_MICRO = 4, /* begins a micro-step */
};

/* How to find the steps of one process. */
struct beat {
	enum rhythm_source source;
	uint64_t count;    /* steps that were seen, about */
	uint64_t first_ns, last_ns;
	uint32_t thread;   /* that makes them; of OPTIMIZER and SITES */
	unsigned micro;    /* micro-steps in each; 1 = none */
	bool whole;        /* of SITES: each calls a whole model, and is no layer of one */
	uint8_t *roles;    /* by index of the process's sites: enum rhythm_role */
	size_t role_count;
};

struct rhythm;

struct rhythm *rhythm_new(void); /* NULL when there is no memory */
void rhythm_free(struct rhythm *r);

/* To be called for every slot, change and level of the pass. */
void rhythm_event(struct rhythm *r, const struct process *p, const struct mt_event *slot);
void rhythm_change(struct rhythm *r, const struct model_change *c);
void rhythm_level(struct rhythm *r, const struct model_level_change *l);

/* Behind the pass. Owned by `r`; NULL: that process did nothing. */
const struct beat *rhythm_beat(struct rhythm *r, unsigned process);

/* From now on nothing but the result is kept, and no process of the first pass is looked at. */
void rhythm_settle(struct rhythm *r);

/* Whether a range with this name is a step. */
bool rhythm_is_step_name(const char *name);

#endif
