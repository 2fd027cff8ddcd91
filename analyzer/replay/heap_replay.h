/*
 * A process's heap again, with the real allocator: the recorded calls are made once more by a child, under the setting
 * that the process had and then under others, and what memory they leave resident is measured.
 *
 * First the run itself. Its memory was sampled, so how far the replay is off is known, and what the answer is worth.
 */
#ifndef MT_REPLAY_HEAP_REPLAY_H
#define MT_REPLAY_HEAP_REPLAY_H

#include "analyzer/replay/heap_plan.h"
#include "analyzer/replay/heap_setting.h"
#include "analyzer/replay/heap_wire.h"

#define HEAP_EXACT 0.05 /* off by no more: figures hold as they are */
#define HEAP_NEAR  0.25 /* off by no more: differences between two settings do */

enum heap_trust {
	HEAP_TRUST_FIGURES,
	HEAP_TRUST_DIFFERENCES, /* near, or the process was never sampled */
	HEAP_TRUST_NOTHING,
};

/* Of one setting. Bytes are anonymous memory of the whole process: heap, the program's own mappings, and the rest. */
struct heap_outcome {
	enum heap_end end; /* nothing below is known unless it ended well */
	uint64_t refused_bytes, calls;
	uint64_t peak, peak_ns; /* the most that was resident at any time */
	uint64_t last;          /* behind the last call */
	uint64_t call_ns;       /* time in the calls */
	uint64_t *now;          /* at each point of the plan */
};

struct heap_replay {
	struct heap_plan plan;
	struct heap_setting own_setting;
	struct heap_outcome own;
	struct heap_outcome *outcomes; /* of the query's settings */
	size_t count;
	size_t looks;   /* samples of the process that there are */
	uint64_t other; /* what was always resident beside the heap and the program's own mappings */
	/* at the sample with the most, and at the last one */
	struct heap_agreement {
		uint64_t ns, recorded, replayed;
	} peak, last;
	double off; /* the larger of the two differences, as a part of the recorded peak */
	enum heap_trust trust;
};

struct heap_query {
	const struct heap_setting *settings;
	size_t count;
	uint64_t most_calls; /* of more nothing is replayed, -MT_EREPLAY; 0 = no limit */
	/* while the trace is read first, and in each replay; may be NULL */
	void (*on_plan)(double done, uint64_t events);
	void (*on_progress)(double done, uint64_t events);
};

/* `first` is not used up, and `samples` are its; NULL = none. 0 or -MT_E*; -MT_EREPLAY where the process has no heap of
 * its own, or the run itself can't be replayed. heap_replay_fini() in each case. */
int heap_replay_run(struct heap_replay *out, struct reader *first, const struct samples *samples,
		    const struct process *p, const struct heap_query *q);
void heap_replay_fini(struct heap_replay *r);

#endif
