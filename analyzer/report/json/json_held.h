/* Which object of Python holds memory, as values of JSON. New references; NULL = no memory. */
#ifndef MT_REPORT_JSON_JSON_HELD_H
#define MT_REPORT_JSON_JSON_HELD_H

#include "analyzer/analysis/held.h"

#include <jansson.h>

/* The keys of a holder: held_by, path, also, type, items, objects, bytes. */
json_t *json_holder(const struct holder *h);
/* The answer to a question: a holder, of how many bytes, and when it was seen; null where it is not known. */
json_t *json_held(const struct held_question *q);

#endif
