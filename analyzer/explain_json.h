/* What explain.h found, as the report's JSON has it. All return new references. */
#ifndef MT_EXPLAIN_JSON_H
#define MT_EXPLAIN_JSON_H

#include "analyzer/explain.h"

#include <jansson.h>

json_t *json_categories(const struct explain *x);
json_t *json_copies(struct explain *x);
json_t *json_copies_left_out(struct explain *x); /* blocks that were not compared */
json_t *json_verdicts(const struct explain *x);
json_t *json_ruled_out(const struct explain *x);
json_t *json_unknowns(const struct explain *x);

#endif
