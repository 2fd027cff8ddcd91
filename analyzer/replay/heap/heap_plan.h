/*
 * What has to be known of a process's heap before its calls are made again: how many calls there are, how much memory
 * was resident at which time, and which blocks were never written to in full.
 */
#ifndef MT_REPLAY_HEAP_HEAP_PLAN_H
#define MT_REPLAY_HEAP_HEAP_PLAN_H

#include "analyzer/reader/samples.h"
#include "analyzer/replay/heap/heap_calls.h"

#define HEAP_UNKNOWN UINT64_MAX

/* A moment at which replays measure their memory. Bytes. */
struct heap_point {
	uint64_t at; /* after so many events of the heap */
	uint64_t ns;
	uint64_t live;     /* blocks */
	uint64_t mapped;   /* private anonymous memory that the program mapped itself */
	uint64_t unseen;   /* the part of `mapped` that was not resident in samples of mappings */
	uint64_t recorded; /* the process's anonymous memory, resident or swapped, as sampled; or HEAP_UNKNOWN */
};

/* A mapping that was sampled. */
struct heap_mapping {
	uint64_t start, end;
	double share; /* the largest part of it that was ever resident, 0 to 1 */
};

/* A thread has ended: it made its last call before, and a sample at `at` saw fewer threads. */
struct heap_stop {
	uint64_t at; /* after so many events of the heap */
	uint32_t ring, thread;
};

/* How much of its blocks the program ever wrote to. The trace does not tell, so the assumption is chosen that agrees
 * best with the samples. */
enum heap_touch {
	HEAP_TOUCH_ALL,  /* all of them */
	HEAP_TOUCH_SEEN, /* of large blocks only the part that was resident in samples of mappings */
	HEAP_TOUCH_LEAST /* the same, and nothing of blocks that calloc got from the kernel as zeros */
};

struct heap_plan {
	const struct process *process;
	struct heap_calls_counts counts;
	uint64_t most_live; /* peak of live bytes */
	uint64_t most_seen; /* the part of it that was written to with HEAP_TOUCH_SEEN */
	uint64_t zeroed;    /* bytes, in all, that calloc may have got from the kernel as zeros */
	uint64_t folded;    /* allocations that folding left out of the trace */
	uint64_t young;     /* that were recorded as totals */
	uint64_t lost;      /* events */
	bool complete;      /* else part of the trace is missing, maybe its end */
	struct heap_point *points;
	size_t point_count, point_room;
	size_t peak;             /* the point with most_live */
	size_t looked;           /* the last point that a sample is behind; without any the last one */
	struct heap_stop *stops; /* in order of `at` */
	size_t stop_count, stop_room;
	struct heap_mapping *mappings;
	size_t mapping_count, mapping_room;
	uint32_t rings, threads;
	enum heap_touch touch; /* set by the caller before a replay */
	struct heap_alignment *alignments;
};

/* Makes a pass of its own over the trace; `first` stays where it is. 0 or -MT_E*; heap_plan_fini() in either case. */
int heap_plan_make(struct heap_plan *plan, struct reader *first, const struct samples *samples, const struct process *p,
		   void (*on_progress)(double done, uint64_t events));
void heap_plan_fini(struct heap_plan *plan);

/* Is it the process's first one? */
bool heap_plan_is_main(const struct heap_plan *plan, uint32_t thread);

/* How many bytes of a block are taken to have been written to. */
uint64_t heap_plan_touched(const struct heap_plan *plan, enum heap_what what, uint64_t addr, uint64_t size);

/* log2 of the alignment that a HEAP_ALIGNED call asked for, guessed from where all blocks of its stack lay. */
unsigned heap_plan_alignment(const struct heap_plan *plan, const struct heap_call *c);

#endif
