/* What blocks of one device's pool did around a moment: the last changes up to it and the first ones behind it, in the
 * order of the trace. */
#ifndef MT_TIMELINE_POOL_EVENTS_H
#define MT_TIMELINE_POOL_EVENTS_H

#include "analyzer/model/model.h"

enum { POOL_EVENTS_BEFORE = 2048, POOL_EVENTS_AFTER = 256 };

struct pool_event {
	uint64_t ns, made_ns; /* made_ns: when the block was allocated */
	uint64_t addr;
	int64_t bytes; /* < 0: freed */
	uint32_t process, site;
};

struct pool_events {
	uint64_t ns;      /* the moment */
	uint32_t process; /* of this one alone; UINT32_MAX = of all */
	size_t count;     /* of changes up to it: the last POOL_EVENTS_BEFORE are kept, in a ring */
	size_t after;
	struct pool_event ring[POOL_EVENTS_BEFORE], behind[POOL_EVENTS_AFTER];
};

/* Nothing is done if it is another process's. */
void pool_events_add(struct pool_events *l, const struct model_change *c);

/* How many are kept, and the i-th of them, the earliest first. Those behind the moment come from
 * pool_events_moment() on. */
size_t pool_events_count(const struct pool_events *l);
size_t pool_events_moment(const struct pool_events *l);
const struct pool_event *pool_events_at(const struct pool_events *l, size_t i);

#endif
