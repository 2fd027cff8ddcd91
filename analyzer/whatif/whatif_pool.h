/* memtrace whatif of PyTorch's allocator: the requests of the run, made again under other settings, on another card, or
 * with other requests. */
#ifndef MT_WHATIF_WHATIF_POOL_H
#define MT_WHATIF_WHATIF_POOL_H

#include "analyzer/model/selection/selection.h"

/* What is asked. NULL: not that. */
struct whatif_asked {
	const char *conf; /* as PYTORCH_CUDA_ALLOC_CONF has it */
	const char *without, *scale;
	uint64_t device_bytes; /* of another card; 0 = the run's own */
};

/* Replays and prints. 0 or -MT_E*. */
int whatif_pool(struct selection *sel, const struct whatif_asked *asked);

#endif
