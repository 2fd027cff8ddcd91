/*
 * What was sampled over time, in the same stretches as the model's timelines: of each host "rss" (the sum over traced
 * processes; pages that they share count in each), "swap" and "available" (the machine's), "cgroup" (what the one with
 * the limit uses); of each process "rss", "swap" and "unseen" (address space that no hook saw).
 *
 * A stretch without a sample has the value before it.
 */
#ifndef MT_TIMELINE_SAMPLE_SERIES_H
#define MT_TIMELINE_SAMPLE_SERIES_H

#include "analyzer/model/selection/selection.h"
#include "analyzer/reader/samples.h"

struct sample_series {
	const struct process *process; /* NULL = the host's */
	const struct reader_host *host;
	const char *what;
	struct model_series series;
};

struct all_sample_series; /* those of one selection */

/* After selection_run(). */
int sample_series_open(struct all_sample_series **out, const struct selection *sel);
void sample_series_close(struct all_sample_series *c); /* NULL is fine */

unsigned sample_series_count(const struct all_sample_series *c);
const struct sample_series *sample_series_get(const struct all_sample_series *c, unsigned i);

#endif
