/*
 * What has to be known of a process's heap before its calls are made again: how many there are, how much of it was
 * resident when, and of which blocks not all was ever written to.
 */
#ifndef MT_REPLAY_HEAP_PLAN_H
#define MT_REPLAY_HEAP_PLAN_H

#include "analyzer/reader/samples.h"
#include "analyzer/replay/heap_calls.h"

#define HEAP_UNKNOWN UINT64_MAX

/* A moment at which replays look at their memory. */
struct heap_point {
	uint64_t at; /* behind so many of the heap's events */
	uint64_t ns;
	uint64_t live;     /* bytes of blocks */
	uint64_t mapped;   /* private anonymous memory that the program mapped itself */
	uint64_t unseen;   /* of that, what was not resident when mappings were looked at */
	uint64_t recorded; /* anonymous memory of the process, resident or swapped, as it was sampled; HEAP_UNKNOWN */
};

/* A mapping that was looked at. */
struct heap_mapping {
	uint64_t start, end;
	double share; /* the most of it that was ever resident */
};

/* What of its blocks the program ever wrote to: nobody saw it, so what agrees with the samples holds. */
enum heap_touch {
	HEAP_TOUCH_ALL,  /* all */
	HEAP_TOUCH_SEEN, /* of large ones what was resident when mappings were looked at */
	HEAP_TOUCH_LEAST /* the same, and nothing of what calloc took from the kernel */
};

struct heap_plan {
	const struct process *process;
	struct heap_calls_counts counts;
	uint64_t most_live; /* bytes */
	uint64_t most_seen; /* of them, with HEAP_TOUCH_SEEN */
	uint64_t zeroed;    /* bytes that calloc may have taken from the kernel, in all */
	uint64_t folded;    /* allocations that are left out of the trace */
	uint64_t lost;      /* events */
	struct heap_point *points;
	size_t point_count, point_room;
	size_t peak; /* the point with most_live */
	struct heap_mapping *mappings;
	size_t mapping_count, mapping_room;
	uint32_t rings, threads;
	enum heap_touch touch; /* chosen by who replays */
	struct heap_alignment *alignments;
};

/* A pass over the trace; `first` is not used up. heap_plan_fini() in each case. 0 or -MT_E*. */
int heap_plan_make(struct heap_plan *plan, struct reader *first, const struct samples *samples, const struct process *p,
		   void (*on_progress)(double done, uint64_t events));
void heap_plan_fini(struct heap_plan *plan);

/* How much of a block was ever written to. */
uint64_t heap_plan_touched(const struct heap_plan *plan, enum heap_what what, uint64_t addr, uint64_t size);

/* log2 of the alignment that who asked had asked for, as the blocks that it got lay. */
unsigned heap_plan_alignment(const struct heap_plan *plan, const struct heap_call *c);

#endif
