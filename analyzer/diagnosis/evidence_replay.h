/* Advice about the pool's settings, tried on the recorded requests before it is given. */
#ifndef MT_DIAGNOSIS_EVIDENCE_REPLAY_H
#define MT_DIAGNOSIS_EVIDENCE_REPLAY_H

#include "analyzer/diagnosis/diagnosis_data.h"

/* Fills e->pool.replay. `oom` is the failure to explain, NULL where nothing failed. Costs passes over the trace, so
 * only where a setting could matter: the pool has much unused. */
int evidence_replay_device(struct diagnosis *diagnosis, struct evidence_device *e, const struct model_device *d,
			   const struct model_oom *oom);

#endif
