/* What diagnosis.h found, as the report's JSON has it. All return new references. */
#ifndef MT_REPORT_JSON_DIAGNOSIS_H
#define MT_REPORT_JSON_DIAGNOSIS_H

#include "analyzer/diagnosis/diagnosis.h"

#include <jansson.h>

json_t *json_categories(const struct diagnosis *x);
json_t *json_copies(struct diagnosis *x);
json_t *json_copies_left_out(struct diagnosis *x); /* blocks that were not compared */
json_t *json_verdicts(const struct diagnosis *x);
json_t *json_ruled_out(const struct diagnosis *x);
json_t *json_unknowns(const struct diagnosis *x);

#endif
