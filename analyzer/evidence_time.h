/* Fills the part of the evidence that is about time. */
#ifndef MT_EVIDENCE_TIME_H
#define MT_EVIDENCE_TIME_H

#include "analyzer/explain.h"

/* `oom` is the failure that is explained, or NULL. e->pool.known is set already. */
int evidence_time_device(struct explain *x, struct evidence_device *e, uint32_t device, const struct model_oom *oom);
int evidence_time_host(struct explain *x);

/* evidence_ends.c: who died of a refusal. */
void evidence_ends(struct explain *x);

#endif
