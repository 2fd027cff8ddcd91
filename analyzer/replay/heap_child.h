/* One replay of a heap: a child with the allocator in question is told the calls, and answers what memory it had. */
#ifndef MT_REPLAY_HEAP_CHILD_H
#define MT_REPLAY_HEAP_CHILD_H

#include "analyzer/replay/heap_plan.h"
#include "analyzer/replay/heap_setting.h"
#include "analyzer/replay/heap_wire.h"

/* argv[1] of the child, which is this program once more; argv[2] is the socket's number. */
#define HEAP_CHILD_COMMAND "replay-heap"

struct heap_result {
	struct heap_answer answer;
	struct heap_seen *seen; /* of each point of the plan; fewer (answer.points) where it ended early */
};

/* `most_bytes` of anonymous memory are what it may have. 0 or -MT_E*: of the trace, or of starting it; what the
 * allocator had to say is in the answer. heap_result_fini() in each case. */
int heap_child_run(struct heap_result *out, struct reader *first, const struct heap_plan *plan,
		   const struct heap_setting *setting, uint64_t most_bytes,
		   void (*on_progress)(double done, uint64_t events));
void heap_result_fini(struct heap_result *r);

#endif
