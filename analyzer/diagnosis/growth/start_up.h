/* What imports, libraries and the interpreter keep is start-up, and no part of what is asked how it grows: for report
 * and live one rule. */
#ifndef MT_DIAGNOSIS_GROWTH_START_UP_H
#define MT_DIAGNOSIS_GROWTH_START_UP_H

#include "analyzer/diagnosis/growth/owner_growth.h"

/* All that a process has of a kind on a device (cohorts_add_track()), without the stacks for which `fold` has a name;
 * NULL = there are none. */
void start_up_less(struct cohort_table *t, const struct cohorts *c, const struct model *m, const struct reader *r,
		   struct stacks *stacks, owners_fold *fold, const struct growth_place *of);

#endif
