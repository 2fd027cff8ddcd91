/* What to do where nothing but less would have fitted: by what most of the memory is for. */
#ifndef MT_DIAGNOSIS_VERDICT_CAPACITY_H
#define MT_DIAGNOSIS_VERDICT_CAPACITY_H

#include "analyzer/diagnosis/evidence.h"

/* So many bytes were missing. The caller frees it. */
char *capacity_advice(const struct evidence_device *d, uint64_t missing);

#endif
