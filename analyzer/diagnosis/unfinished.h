/*
 * What a failed request's own work would still have asked for, where no earlier step tells: what is being moved from
 * the host block by block and is still there, and what an optimizer has begun to make for each gradient. That is the
 * least: what comes after it nobody knows.
 *
 * What is moved shows in the order of calls: a block of a device's pool is made, and then one of the heap that is as
 * large is freed. The second pass notes that by site, up to the failure of each device.
 */
#ifndef MT_DIAGNOSIS_UNFINISHED_H
#define MT_DIAGNOSIS_UNFINISHED_H

#include "analyzer/diagnosis/diagnosis_data.h"

struct unfinished;

/* `m` is the first pass's and is only looked at here. NULL when there is no memory. */
struct unfinished *unfinished_new(const struct model *m);
void unfinished_free(struct unfinished *);
void unfinished_change(struct unfinished *, const struct model_change *c);

/* Fills `ahead` and `ahead_for` of the request. 0 or -MT_EMEMORY, also of what unfinished_change() met. */
int unfinished_find(struct diagnosis *, const struct model_device *d, const struct model_oom *oom,
		    struct evidence_request *r);

#endif
