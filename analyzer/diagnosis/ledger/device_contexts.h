/*
 * What the contexts of traced processes take of a device, over time. The driver says what a process has; where the
 * process's own memory stands still, the rest of that is its context. A context is there before its process has its
 * first memory on the device, and until the process ends: so it is known from that memory on, or from a sample before
 * it. In between it has the size that was seen last, and the first size that was seen before that.
 */
#ifndef MT_DIAGNOSIS_LEDGER_DEVICE_CONTEXTS_H
#define MT_DIAGNOSIS_LEDGER_DEVICE_CONTEXTS_H

#include "analyzer/model/model.h"
#include "analyzer/reader/samples.h"

struct device_contexts_change {
	uint64_t ns;
	int64_t bytes;
};

struct device_contexts {
	struct device_contexts_change *changes; /* by time */
	size_t count, room;
};

/* 0 or -MT_E*; device_contexts_fini() either way. */
int device_contexts_make(struct device_contexts *c, const struct model *m, const struct samples *samples,
			 const struct model_device *d);
void device_contexts_fini(struct device_contexts *c);

#endif
