/* What to do where nothing but less would have fitted: by what most of the memory is for. */
#ifndef MT_DIAGNOSIS_VERDICT_CAPACITY_H
#define MT_DIAGNOSIS_VERDICT_CAPACITY_H

#include "analyzer/diagnosis/evidence.h"
#include "analyzer/diagnosis/reasons.h"

/* So many bytes were missing. */
void capacity_advise(const struct evidence_device *d, uint64_t missing, struct reasons *advice);

#endif
