#include "analyzer/reader/process_limits.h"

#include "analyzer/util/minmax.h"

#include <math.h>

static double room_of(uint64_t limit, uint64_t used)
{
	return limit && limit != MT_NO_LIMIT && used ? (double)less(limit, used) : INFINITY;
}

double process_limits_room(const struct samples *s, const struct process *p, uint64_t ns, uint64_t *at_ns)
{
	const struct sample_subject *d = s ? samples_of_process(s, p) : NULL;
	struct sample_state state;
	uint64_t size = 0, data = 0;
	if (d && samples_at(s, ns, d->index, &state) == 0 && state.known >> MT_PROCESS_size & 1) {
		size = state.value[MT_PROCESS_size];
		data = state.known >> MT_PROCESS_data & 1 ? state.value[MT_PROCESS_data] : 0;
		*at_ns = state.ns[MT_PROCESS_size];
	}
	return fmin(room_of(p->address_limit, size ? size : p->address_used),
		    room_of(p->data_limit, data ? data : p->data_used));
}
