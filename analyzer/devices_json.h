/* "devices" of the report's JSON. */
#ifndef MT_DEVICES_JSON_H
#define MT_DEVICES_JSON_H

#include "analyzer/ledger.h"
#include "analyzer/view.h"

#include <jansson.h>

json_t *json_devices(const struct view *v);

/* {"at_s", "total", "pool_allocated", ...}. */
json_t *json_ledger(const struct ledger *l);

#endif
