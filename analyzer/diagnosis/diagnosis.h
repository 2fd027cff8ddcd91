/*
 * What a report says beyond figures: what memory was for, what is there twice, and why it failed. Gathers what the
 * other modules know of one trace into struct evidence, and asks the rules.
 *
 *   struct diagnosis *diagnosis;
 *   int e = diagnosis_new(&x, v, timeline, host, complete);    behind selection_run(); all of it must outlive x
 *   e = timeline_run(timeline, v);                              which collects for x, too
 *   e = diagnosis_make(x);
 *   ... x->verdicts, x->spaces ... diagnosis_free(x);
 */
#ifndef MT_DIAGNOSIS_DIAGNOSIS_H
#define MT_DIAGNOSIS_DIAGNOSIS_H

#include "analyzer/diagnosis/diagnosis_data.h"

/* `complete`: nothing was lost while recording. Watches the timeline's second pass. */
int diagnosis_new(struct diagnosis **out, const struct selection *sel, struct timeline *timeline, struct host_memory *s,
		  bool complete);

int diagnosis_make(struct diagnosis *diagnosis);
int diagnosis_categories(struct diagnosis *diagnosis); /* x->spaces and copies alone, instead */
void diagnosis_free(struct diagnosis *diagnosis);      /* NULL is fine */

/* "cuda:0", "host": of copy_set.space. */
const char *diagnosis_space_name(const struct diagnosis *diagnosis, uint32_t space);

#endif
