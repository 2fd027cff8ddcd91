/* The smallest device on which every request of a run would have been served. */
#ifndef MT_REPLAY_LEAST_H
#define MT_REPLAY_LEAST_H

#include "analyzer/replay/replay.h"

/* Of each pool of a replay, and under each of `count` cases of q, found by replaying on ever fewer sizes: each time
 * some at once. Sizes are whole steps of 2 MiB, or a thousandth where that is more; what others had of the device is in
 * it. least[track * count + case] is 0 of pools whose own run differs, or where nothing helps, such as a limit of the
 * pool's own. Of outcomes those of the last pass are left. 0 or -MT_E*. */
int replay_least(struct replay *r, const struct reader *first, const struct replay_query *q, size_t count,
		 uint64_t *least);

#endif
