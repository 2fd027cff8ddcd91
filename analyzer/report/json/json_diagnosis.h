/* Results of diagnosis.h, as values of the report's JSON. New references; NULL = no memory. */
#ifndef MT_REPORT_JSON_JSON_DIAGNOSIS_H
#define MT_REPORT_JSON_JSON_DIAGNOSIS_H

#include "analyzer/analysis/held.h"
#include "analyzer/diagnosis/diagnosis.h"

#include <jansson.h>

json_t *json_categories(const struct diagnosis *diagnosis);
/* `held`: who keeps each of that set; NULL = nobody asked. */
json_t *json_copies(struct diagnosis *diagnosis, const struct copy_set *set, const struct held_question *held);
json_t *json_copies_left_out(struct diagnosis *diagnosis); /* blocks that were not compared with each other */
/* `held`: who holds what each is about, by verdict; NULL = nobody asked. */
json_t *json_verdicts(const struct diagnosis *diagnosis, const struct held_question *held);
/* Growth that accuses nobody. */
json_t *json_facts(const struct diagnosis *diagnosis, const struct held_question *held);
json_t *json_ruled_out(const struct diagnosis *diagnosis);
json_t *json_unknowns(const struct diagnosis *diagnosis);

#endif
