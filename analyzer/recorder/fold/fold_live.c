/* What lives in a window, of all kinds of memory. */
#include "analyzer/recorder/fold/fold_window_internal.h"

struct block *fold_find(const struct fold_window *t, const struct blocks *in, enum event_space space, uint32_t device,
			uint64_t addr)
{
	struct block *b = blocks_find(in, fold_key(space, device, addr));
	bool anywhere = (space != SPACE_POOL && space != SPACE_WORKSPACE) || !device;
	for (uint32_t i = 0; !b && anywhere && i < t->device_room; i++)
		if (t->devices[i])
			b = blocks_find(in, fold_key(space, i, addr));
	return b;
}
