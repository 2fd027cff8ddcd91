/* "devices" of the report's JSON. */
#ifndef MT_DEVICES_JSON_H
#define MT_DEVICES_JSON_H

#include "analyzer/course.h"
#include "analyzer/ledger.h"
#include "analyzer/view.h"

#include <jansson.h>

/* `course` says in which step and phase memory ran out. Their "verdict" is null: report_json.c knows it. */
json_t *json_devices(const struct view *v, const struct course *course);

#endif
