/* "devices" of the report's JSON. */
#ifndef MT_DEVICES_JSON_H
#define MT_DEVICES_JSON_H

#include "analyzer/course.h"
#include "analyzer/ledger.h"
#include "analyzer/verdicts.h"
#include "analyzer/view.h"

#include <jansson.h>

/* `course` says in which step and phase memory ran out, `verdicts` why; both may be NULL. */
json_t *json_devices(const struct view *v, const struct course *course, const struct verdicts *verdicts);

/* {"at_s", "total", "pool_allocated", ...}. */
json_t *json_ledger(const struct ledger *l);

#endif
