/*
 * Replays the heap of a process with real allocators: a child process makes the recorded calls once more, under the
 * setting that the process had and then under others, and the memory that is resident is measured.
 *
 * The setting of the process comes first. Its memory was sampled in the recorded run, so the error of the replay is
 * known, and with it how far the other answers can be trusted.
 */
#ifndef MT_REPLAY_HEAP_HEAP_REPLAY_H
#define MT_REPLAY_HEAP_HEAP_REPLAY_H

#include "analyzer/replay/heap/heap_plan.h"
#include "analyzer/replay/heap/heap_setting.h"
#include "analyzer/replay/heap/heap_wire.h"

#define HEAP_EXACT 0.05 /* with an error of at most this, figures hold as they are */
#define HEAP_NEAR  0.25 /* with an error of at most this, differences between two settings hold */

/* A setting's replay that takes so many times as long as that of the run, and so many seconds more, is stopped. */
#define HEAP_TIMES   8
#define HEAP_LEAST_S 5

enum heap_trust {
	HEAP_TRUST_FIGURES,     /* HEAP_EXACT */
	HEAP_TRUST_DIFFERENCES, /* HEAP_NEAR, or the process was never sampled */
	HEAP_TRUST_NOTHING,
};

/* The result for one setting. Bytes are anonymous memory of the whole process: heap, the program's own mappings, and
 * the rest. */
struct heap_outcome {
	enum heap_end end; /* unless HEAP_END_WELL only refused_bytes and calls are known */
	uint64_t refused_bytes, calls;
	uint64_t peak, peak_ns; /* the most that was resident at any time */
	uint64_t last;          /* resident after the last call */
	uint64_t call_ns;       /* time spent in the calls */
	uint64_t *now;          /* at each point of the plan */
};

struct heap_replay {
	struct heap_plan plan;
	struct heap_setting own_setting;
	struct heap_outcome own;
	uint64_t own_ns;               /* that its replay took */
	struct heap_outcome *outcomes; /* of the query's settings */
	size_t count;
	size_t looks;   /* how many samples of the process there are */
	uint64_t other; /* bytes that were always resident beside heap and the program's own mappings */
	/* bytes, at the highest sample and at the last one */
	struct heap_agreement {
		uint64_t ns, recorded, replayed;
	} peak, last;
	double off; /* the error: the larger of the two differences, as a part of the recorded peak */
	enum heap_trust trust;
};

struct heap_query {
	const struct heap_setting *settings;
	size_t count;
	double share_of_free; /* of the memory that is free a replay may take so much; 0 = most of it */
	/* called during the first reading of the trace, and during each replay; may be NULL */
	void (*on_plan)(double done, uint64_t events);
	void (*on_progress)(double done, uint64_t events);
	void (*on_setting)(const struct heap_query *q, size_t index); /* the next of the settings begins; may be NULL */
};

/* `first` is a reader of the trace, which stays where it is; `samples` are those of `first`, NULL = none. 0 or -MT_E*;
 * -MT_EREPLAY if the process has no heap of its own, or can't be replayed under its own setting. heap_replay_fini() in
 * either case. */
int heap_replay_run(struct heap_replay *out, struct reader *first, const struct samples *samples,
		    const struct process *p, const struct heap_query *q);
void heap_replay_fini(struct heap_replay *r);

#endif
