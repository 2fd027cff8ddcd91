/* The smallest device on which every request of a run would have been served. */
#ifndef MT_REPLAY_POOL_LEAST_H
#define MT_REPLAY_POOL_LEAST_H

#include "analyzer/replay/pool/replay.h"

/* For each pool (track) of a replay and each of the first `count` cases of q: sets least[track * count + case] to the
 * bytes of that device, memory of others on it included. 0 = unknown, as the replay of the run itself differs from the
 * run, or no size helps (the pool has a limit of its own). Sizes are searched by replaying several at once in each
 * pass, down to steps of 2 MiB, or of a thousandth if that is more. The outcomes in *r are then those of the last pass.
 * 0 or -MT_E*. */
int replay_least(struct replay *r, const struct reader *first, const struct replay_query *q, size_t count,
		 uint64_t *least);

#endif
