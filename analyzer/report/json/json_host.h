/* The host side of a report as JSON. */
#ifndef MT_REPORT_JSON_JSON_HOST_H
#define MT_REPORT_JSON_JSON_HOST_H

#include "analyzer/diagnosis/growth/shm_growth.h"
#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/report/json/json.h"

/* "system": {...}; every key is there, null where nothing is known. */
json_t *json_system(const struct host_memory *s);

/* null: nobody makes files there. */
json_t *json_shm_maker(const struct shm_maker *m);

/* Adds what is known of a process to its object: rss_peak_bytes, swap_peak_bytes, unseen_map_bytes, resident,
 * oom_killed. */
void json_system_process(json_t *o, const struct host_memory *s, const struct process *p);

#endif
