/* What to do where nothing but less would have fitted: by what most of the memory is for. */
#ifndef MT_DIAGNOSIS_VERDICT_CAPACITY_H
#define MT_DIAGNOSIS_VERDICT_CAPACITY_H

#include "analyzer/diagnosis/evidence.h"
#include "analyzer/diagnosis/reasons.h"

/* The line that holds most keeps many blocks of one size, and they are most of what most is for. */
bool capacity_is_kept(const struct evidence_device *d);

/* So many bytes were missing. `need` says how well that is known: REASON_need_less, need_about or need_up_to. */
void capacity_advise(const struct evidence_device *d, uint64_t missing, enum reason_kind need, struct reasons *advice);

#endif
