/* One replay of a heap: a child process that runs with the allocator in question makes the calls, and answers how much
 * memory was resident. */
#ifndef MT_REPLAY_HEAP_HEAP_CHILD_H
#define MT_REPLAY_HEAP_HEAP_CHILD_H

#include "analyzer/replay/heap/heap_plan.h"
#include "analyzer/replay/heap/heap_setting.h"
#include "analyzer/replay/heap/heap_wire.h"

/* argv[1] of the child, which is this program once more; argv[2] is the socket's number. */
#define HEAP_CHILD_COMMAND "replay-heap"

struct heap_result {
	struct heap_answer answer;
	struct heap_seen *seen; /* at each point of the plan: answer.points of them, fewer if the child ended early */
	uint64_t took_ns;       /* in all */
};

/* Runs a replay, in which the child may have `most_bytes` of anonymous memory and `most_ns` (0 = any) of time. -MT_E*
 * if reading the trace or starting the child failed, else 0: a failure of the allocator is in the answer.
 * heap_result_fini() in either case. */
int heap_child_run(struct heap_result *out, struct reader *first, const struct heap_plan *plan,
		   const struct heap_setting *setting, uint64_t most_bytes, uint64_t most_ns,
		   void (*on_progress)(double done, uint64_t events));
void heap_result_fini(struct heap_result *r);

#endif
