/* What memtrace holders shows: one snapshot of one process, gathered by holders_report_make(), printed as a screen or
 * as JSON; and what memtrace report says of the holders of a site. */
#ifndef MT_REPORT_SCREEN_HOLDERS_REPORT_H
#define MT_REPORT_SCREEN_HOLDERS_REPORT_H

#include "analyzer/model/holders/holders.h"
#include "analyzer/model/selection/selection.h"

/* Memory of one kind, on one device where it is a device's. */
struct holders_part {
	unsigned kind;                     /* enum model_kind, or HOLDERS_SMALL */
	const struct model_device *device; /* NULL = the host's */
	struct holders *holders;
};

struct holders_report {
	struct selection *selection;
	const struct process *process;
	const struct process *others[8]; /* that have snapshots, too */
	unsigned other_count;
	int number, snapshots; /* which one of how many, from 0 */
	struct mt_hold_head heads[64];
	struct hold_snapshot snapshot;
	struct hold_graph *graph;
	struct holders_part *parts;
	size_t part_count, part_room;
	uint64_t ns; /* when it was taken */
};

/* The snapshot of this number (from 0; below 0: from the last one back, -1 is that). Runs the selection's model. 0 or
 * an error; holders_report_fini() in any case. */
int holders_report_make(struct holders_report *r, struct selection *v, int number);
/* The same without parts, of the snapshot whose number `pick` returns when it is given all heads. */
int holders_report_open(struct holders_report *r, struct selection *v, int (*pick)(const struct holders_report *r));
void holders_report_fini(struct holders_report *r);

void holders_print(const struct holders_report *r);
int holders_print_json(const struct holders_report *r);

/* "on request", "a device had no memory": why it was taken. */
const char *holders_why(const struct mt_hold_head *head);

/* "(list, 990 items)". Allocated. */
char *holder_type_text(const struct holder *h);

/* "train.py:58 step": where most of it was made; NULL = not known. Allocated. */
char *holder_site_text(const struct holders_report *r, const struct holder *h);

#endif
