/* "devices" of the report's JSON. */
#ifndef MT_REPORT_JSON_JSON_DEVICES_H
#define MT_REPORT_JSON_JSON_DEVICES_H

#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/timeline/timeline.h"

#include <jansson.h>

struct diagnosis;

/* A list with an object for each device. `timeline` tells in which step and phase memory ran out, `x` has the ledgers.
 * "verdict" is null: report_json.c fills it in. */
json_t *json_devices(const struct selection *sel, const struct timeline *timeline, struct diagnosis *diagnosis);

/* The number of the step in which memory ran out; false: no step is known. `timeline` may be NULL. */
bool json_devices_step(const struct timeline *timeline, const struct model_oom *oom, uint64_t *number);

#endif
