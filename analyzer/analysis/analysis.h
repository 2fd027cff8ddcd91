/*
 * An analysis is one call: the pass over the events that a selection asks for, and what is made of it.
 *
 *   struct analysis a;
 *   int e = analysis_run(&a, v, ANALYSIS_TIMELINE | ANALYSIS_DIAGNOSIS, NULL, NULL);
 *   ... a.timeline, a.diagnosis ...
 *   analysis_free(&a);                                     before selection_close(), also after an error
 */
#ifndef MT_ANALYSIS_ANALYSIS_H
#define MT_ANALYSIS_ANALYSIS_H

#include "analyzer/diagnosis/diagnosis.h"
#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/timeline/site_windows.h"
#include "analyzer/timeline/timeline.h"

enum analysis_want {
	ANALYSIS_TIMELINE = 1,   /* loop, steps, phases, growth: a second pass over the events */
	ANALYSIS_HOST = 2,       /* samples of the machine and of processes */
	ANALYSIS_CATEGORIES = 4, /* what memory is for, in `diagnosis`; only with ANALYSIS_TIMELINE */
	ANALYSIS_DIAGNOSIS = 8,  /* evidence and verdicts; only with ANALYSIS_TIMELINE */
	ANALYSIS_WINDOWS = 16,   /* sites in windows of time; only with ANALYSIS_TIMELINE */
};

/* What is missing, over all processes. */
struct losses {
	uint64_t events, events_ns; /* events_ns: when the first of them was lost */
	uint64_t truncated_stacks, unplaced_stacks, unwritten_bytes, missed_frees, skipped_slots, unrecorded;
	uint32_t events_why, unrecorded_why; /* enum mt_loss, or'ed */
	unsigned turned_off;                 /* processes whose shim turned itself off */
	unsigned notes;                      /* of the reader, those that stand for missing data */
	bool complete;                       /* nothing is known to be missing */
};

/* What was not asked for is NULL. */
struct analysis {
	struct timeline *timeline;
	struct host_memory *host;
	struct diagnosis *diagnosis;
	struct site_windows *windows;
	struct losses losses; /* after the first pass */
};

/* Runs the model for v and then what is wanted (enum analysis_want, or'ed). `beside` may be NULL; it is called once,
 * after the first pass and in parallel to the second one, so it may look at the model but not at the timeline. 0 or
 * -MT_E*, also what `beside` returned. */
int analysis_run(struct analysis *a, struct selection *sel, unsigned wants, int (*beside)(void *arg), void *arg);
void analysis_free(struct analysis *a);

#endif
