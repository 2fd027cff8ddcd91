/* The host side of a report as JSON. */
#ifndef MT_ANALYZER_SYSTEM_JSON_H
#define MT_ANALYZER_SYSTEM_JSON_H

#include "analyzer/json.h"
#include "analyzer/system.h"

/* "system": {...}; every key is there, null where nothing is known. */
json_t *json_system(const struct system *s);

/* Adds what is known of a process to its object: rss_peak_bytes, swap_peak_bytes, unseen_map_bytes, resident, oom_killed. */
void json_system_process(json_t *o, const struct system *s, const struct process *p);

#endif
