/* Fills the part of the evidence that is about time. */
#ifndef MT_DIAGNOSIS_EVIDENCE_GROWTH_H
#define MT_DIAGNOSIS_EVIDENCE_GROWTH_H

#include "analyzer/diagnosis/diagnosis_data.h"

/* `oom` is the failure that is explained, or NULL. e->pool.known is set already. */
int evidence_time_device(struct diagnosis *diagnosis, struct evidence_device *e, uint32_t device,
			 const struct model_oom *oom);
int evidence_time_host(struct diagnosis *diagnosis);

/* When the step began that ran then. 0: nobody knows, or it was before the first one. */
uint64_t evidence_step_began(const struct diagnosis *diagnosis, uint32_t process, uint64_t ns);

/* evidence_ends.c: which process died because a request of its was refused. */
void evidence_ends(struct diagnosis *diagnosis);

#endif
