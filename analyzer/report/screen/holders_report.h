/* What memtrace holders shows: one snapshot of one process, gathered by holders_report_make(), printed as a screen or
 * as JSON. */
#ifndef MT_REPORT_SCREEN_HOLDERS_REPORT_H
#define MT_REPORT_SCREEN_HOLDERS_REPORT_H

#include "analyzer/analysis/held.h"

struct holders_report {
	struct selection *selection;
	struct held_snapshot held;
	const struct process *others[8]; /* that have snapshots, too */
	unsigned other_count;
	struct held_parts parts;
};

/* The snapshot of this number (from 0; below 0: from the last one back, -1 is that). Runs the selection's model. 0 or
 * an error; holders_report_fini() in any case. */
int holders_report_make(struct holders_report *r, struct selection *sel, int number);
void holders_report_fini(struct holders_report *r);

void holders_print(const struct holders_report *r);
int holders_print_json(const struct holders_report *r);

/* "train.py:58 step < train.py:80 main": the site of this number of the process; NULL = not known. `sel` has run for the
 * snapshot. Allocated. */
char *holder_site_text(const struct selection *sel, const struct process *p, uint32_t site);

#endif
