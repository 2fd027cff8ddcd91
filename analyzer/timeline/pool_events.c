#include "analyzer/timeline/pool_events.h"

void pool_events_add(struct pool_events *l, const struct model_change *c)
{
	const struct pool_event event = { .ns = c->ns,
					  .made_ns = c->made_ns,
					  .addr = c->addr,
					  .bytes = c->bytes,
					  .process = c->process->id,
					  .site = c->site };
	if (l->process != UINT32_MAX && c->process->id != l->process)
		return;
	if (c->ns <= l->ns)
		l->ring[l->count++ % POOL_EVENTS_BEFORE] = event;
	else if (l->after < POOL_EVENTS_AFTER)
		l->behind[l->after++] = event;
}

size_t pool_events_moment(const struct pool_events *l)
{
	return l->count < POOL_EVENTS_BEFORE ? l->count : POOL_EVENTS_BEFORE;
}

size_t pool_events_count(const struct pool_events *l)
{
	return pool_events_moment(l) + l->after;
}

const struct pool_event *pool_events_at(const struct pool_events *l, size_t i)
{
	const size_t before = pool_events_moment(l);
	return i < before ? &l->ring[(l->count - before + i) % POOL_EVENTS_BEFORE] : &l->behind[i - before];
}
