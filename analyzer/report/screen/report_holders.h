/* Who holds the blocks of a leak, where a snapshot of holders says it. */
#ifndef MT_REPORT_SCREEN_REPORT_HOLDERS_H
#define MT_REPORT_SCREEN_REPORT_HOLDERS_H

#include "analyzer/diagnosis/verdicts.h"
#include "analyzer/model/selection/selection.h"

/* By verdict that holds: "`captured` (list, 990 items) of train: 6.64 GiB of 6.64 GiB", or NULL = not known. */
struct report_holders {
	char **held_by; /* allocated, as many as v->held_count; NULL = no snapshot */
	char **advice;
	size_t count;
};

/* Reads the last snapshot, if there is one and a verdict tells growth. 0 or an error; report_holders_fini() in any
 * case. */
int report_holders_find(struct report_holders *h, const struct selection *v, const struct verdicts *verdicts);
void report_holders_fini(struct report_holders *h);

static inline const char *report_held_by(const struct report_holders *h, size_t verdict)
{
	return h->held_by && verdict < h->count ? h->held_by[verdict] : NULL;
}

#endif
