/*
 * Steps of each process, and the low and high point of memory in each of them; in the second of two passes, by what
 * loop_finder.h found in the first. Where no steps are known, windows of time take their place, so that growth can be
 * told from either.
 *
 * A step lasts until the next one begins. The last one, and one after which the program does something else for long,
 * ends when it has taken half as long again as steps usually do: what is freed at the very end is no low point of the
 * last step.
 *
 * What holds: a point is a sum of exact changes, or, where a block of the trace was folded, lies between the levels
 * that the block states (`leveled`). A step that was not finished is `partial`. Times between steps in which the
 * program did something else belong to none.
 *
 * Memory: steps are joined in twos when there are more than STEPS_MOST, so that every entry of the list stands for the
 * same number of them.
 */
#ifndef MT_TIMELINE_STEPS_H
#define MT_TIMELINE_STEPS_H

#include "analyzer/timeline/cohorts.h"
#include "analyzer/timeline/loop_finder.h"
#include "analyzer/timeline/step_shape.h"

enum { STEPS_MOST = 4096, STEPS_WINDOWS = 256 };

/* One step, or `count` neighbours. */
struct step {
	uint64_t number; /* of the first: as marked, or from 1 on */
	uint64_t begin_ns, end_ns;
	uint64_t allocations;
	uint64_t device_frees; /* blocks that were freed on devices */
	uint32_t count;
	uint32_t rare; /* how many of them are rare: they allocate far more than others (an evaluation, a checkpoint) */
	bool partial;  /* it was not finished: the process died, or runs */
};

/* What one process has of one kind on one device, by step. Lists may be shorter than that of the steps: 0 before
 * `from`. */
struct step_track {
	uint32_t kind, device;
	uint64_t *low, *high; /* of entries from `from` on */
	size_t from, count, room;
	/* state of the pass */
	uint64_t live, now_low, now_high, kept_low, kept_high;
	uint64_t left_out;          /* bytes alive besides `live`, as a folded block says */
	struct step_shapes *shapes; /* of a pool; NULL = none */
	bool leveled;               /* points come from folded blocks, since their changes are not complete */
	double doubt;               /* bytes by which points may be too high: model_doubt() */
};

struct step_list {
	const struct process *process;
	enum loop_source source; /* LOOP_NONE: entries are windows of time */
	unsigned micro;          /* micro-steps in each step */
	bool whole;              /* loop_finder.h */
	struct step *steps;
	size_t count;
	/* from where the step that was open at the end began to where a request in it failed, and the number of that
	 * request's step; end_ns 0: none failed */
	struct step cut;
	uint64_t total;                       /* steps, joined ones counted singly */
	uint64_t rare, rare_first, rare_last; /* how many were rare; the numbers of the first and the last */
	bool thinned;                         /* a part of its events was folded */
	struct step_track *tracks;
	size_t track_count;
};

struct steps;

/* `finder` is that of the first pass and must outlive the result. */
struct steps *steps_new(struct loop_finder *finder);
void steps_free(struct steps *s);

/* To be called for every slot (at its time in ns), change and level of the pass, and steps_finish() behind it, which
 * leaves out windows of time in which a process only cleans up. */
void steps_event(struct steps *s, const struct process *p, const struct mt_event *slot, uint32_t thread);
void steps_change(struct steps *s, const struct model_change *c);
void steps_level(struct steps *s, const struct model_level_change *l);
void steps_finish(struct steps *s, const struct cohorts *c);

/* Sets the tracks' `doubt` by what this model knows of lost events. */
void steps_doubt(struct steps *s, const struct model *m);

/* When the running step and the one before it began, of a process in the middle of the pass; 0 without steps. */
struct steps_now {
	uint64_t begin_ns, before_ns;
};
struct steps_now steps_now(const struct steps *s, unsigned process);

/* NULL: that process did nothing. */
const struct step_list *steps_of(const struct steps *s, unsigned process);

/* When a pool on that device failed at `ns`: how far live bytes would have risen from there in the rest of the step, as
 * earlier steps say (analyzer/timeline/step_shape.h): in this step's scale, and as it was; STEP_SHAPE_UNKNOWN. */
struct steps_rise {
	uint64_t scaled, unscaled;
};
struct steps_rise steps_rise(const struct steps *s, unsigned process, uint32_t device, uint64_t ns);

uint64_t step_low(const struct step_track *t, size_t entry);
uint64_t step_high(const struct step_track *t, size_t entry);

/* The entry's place on the axis that growth is told on: number of steps since the first, or seconds since the start. */
double step_x(const struct step_list *steps, size_t entry);

/* Of the step in which a request failed then; false: that was in none. */
bool step_number_at(const struct step_list *steps, uint64_t ns, uint64_t *number);

/* The entry that holds the step of this number, or p->count. */
size_t step_find(const struct step_list *steps, uint64_t number);

#endif
