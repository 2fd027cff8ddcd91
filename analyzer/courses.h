/*
 * What was sampled over time, in the same stretches as the model's timelines: of each host "rss" (the sum over traced processes;
 * pages that they share count in each), "swap" and "available" (the machine's), "cgroup" (what the one with the limit uses); of each
 * process "rss", "swap" and "unseen" (address space that no hook saw).
 *
 * A stretch without a sample has the value before it.
 */
#ifndef MT_ANALYZER_COURSES_H
#define MT_ANALYZER_COURSES_H

#include "analyzer/samples.h"
#include "analyzer/view.h"

struct course {
	const struct process *process; /* NULL = the host's */
	const struct reader_host *host;
	const char *what;
	struct model_series series;
};

struct courses;

/* After view_run(). */
int courses_open(struct courses **out, const struct view *v);
void courses_close(struct courses *c); /* NULL is fine */

unsigned courses_count(const struct courses *c);
const struct course *courses_get(const struct courses *c, unsigned i);

#endif
