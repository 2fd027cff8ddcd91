/*
 * Finds the loop that a program trains in, in the first of two passes, from what recurs. In the second pass steps.h
 * cuts time into steps by it.
 *
 * Where steps begin is said, in this order, by
 *   marks      memtrace_step()
 *   ranges     NVTX or mstx ranges called "step 12", "iteration", "ProfilerStep#3" and so on
 *   optimizer  visits to an optimizer's step: a step ends with one, however many micro-steps came before it. Of several
 *              optimizers that of the line which is visited most
 *   sites      sites that recur: allocations of one stack at regular intervals. Sites with the same count are one level
 *              of nested loops. A loop within a step (layers) is left out: its short intervals cover only a part of
 *              what is allocated. Of the other levels it is the innermost. The level outside of that one is taken
 *              instead if it is a unit of work that repeats as a whole: each of its turns has up to LEAST_MICRO turns
 *              of the inner one (micro-steps), or it has more sites. Among several loops it is one that makes most of
 *              the blocks on devices and frees them, however short and fast; else a long one; else the one that the
 *              process ends with
 *   lines      lines of Python to which the program comes from another line at regular intervals. They are used where
 *              no site recurs regularly, because a loop that works for devices makes blocks only in inner loops of any
 *              length. A step begins with the first of these lines
 *
 * What holds: whether something recurs regularly is measured in allocations, which do not depend on what else the
 * machine does. Times only say over which stretch a loop ran, and which of several covers most of the run. A Python
 * stack is looked at once, whatever its number of blocks. Where nothing recurs there is no loop, and growth is judged
 * without one: a loop gives rates "per step", and decides nothing about what leaks.
 *
 * Imports are left out, and what a virtual machine (Java's, .NET's) allocates for itself. Memory: 64 bytes for each
 * site, 112 more for one that recurs, and in a process that uses a device 64 for each line of a Python stack.
 */
#ifndef MT_TIMELINE_LOOP_FINDER_H
#define MT_TIMELINE_LOOP_FINDER_H

#include "analyzer/model/model.h"

#define LOOP_LOADS 0.05 /* of what its steps make: where less is freed meanwhile, a loop only loads */

enum loop_source { LOOP_NONE = 0, LOOP_MARKS, LOOP_NVTX, LOOP_MSTX, LOOP_OPTIMIZER, LOOP_SITES };

enum loop_role {
	ROLE_LOOP = 1,  /* allocates in most steps */
	ROLE_STEP = 2,  /* LOOP_OPTIMIZER: of the optimizer, which ends a step; LOOP_SITES: begins one */
	ROLE_MICRO = 4, /* begins a micro-step */
};

/* How to find the steps of one process. */
struct loop {
	enum loop_source source;
	uint64_t count; /* steps that were seen, about */
	uint64_t first_ns, last_ns;
	uint32_t thread; /* that makes them; of OPTIMIZER and SITES */
	unsigned micro;  /* micro-steps in each; 1 = none */
	bool whole;      /* of SITES: each calls a whole model, and is no layer of one */
	uint8_t *roles;  /* by index of the process's sites: enum loop_role */
	size_t role_count;
	uint32_t node2; /* of SITES: the Python stack that steps begin with; 0 = none */
	bool enters;    /* of SITES: of a row of allocations by sites with ROLE_STEP only the first one begins a step */
};

struct loop_finder;

struct loop_finder *loop_finder_new(void); /* NULL when there is no memory */
void loop_finder_free(struct loop_finder *finder);

/* To be called for every slot, change and level of the pass. */
void loop_finder_event(struct loop_finder *finder, const struct process *p, const struct mt_event *slot);
void loop_finder_change(struct loop_finder *finder, const struct model_change *c);
void loop_finder_level(struct loop_finder *finder, const struct model_level_change *l);

/* After the pass: the loop of a process, borrowed from `finder`. NULL: that process did nothing. */
const struct loop *loop_finder_loop(struct loop_finder *finder, unsigned process);

/* Frees everything but the result. The processes of the first pass need not live any longer. */
void loop_finder_settle(struct loop_finder *finder);

/* Whether a range with this name is a step. */
bool loop_finder_is_step_name(const char *name);

#endif
