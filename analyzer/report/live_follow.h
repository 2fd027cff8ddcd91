/*
 * memtrace live: what is known of a running program. The events are read from the beginning once, and then as they
 * come: the reader, the model and the steps are kept between looks.
 *
 * Where a loop begins is found in a first pass, so that early in a program nothing can be known of it. Therefore all of
 * it is read again when there are twice as many events, as long as steps are not told by marks or an optimizer: over
 * the time that is no more than four readings of the trace.
 */
#ifndef MT_REPORT_LIVE_FOLLOW_H
#define MT_REPORT_LIVE_FOLLOW_H

#include "analyzer/timeline/timeline.h"
#include "analyzer/util/options.h"

enum { LIVE_GAUGES = 64, LIVE_PROCESSES = 12 };

/* Something that can become full. */
struct gauge {
	char key[96], name[96];
	double used, total;
	int warned;
};

struct shown_process {
	unsigned id;
	uint32_t pid;
	char name[96]; /* with its rank */
	int64_t rank;
	uint64_t heap, map, pinned, device, rss, swap;
	bool running;
};

struct live {
	const struct options *options;
	struct reader *reader;
	struct samples *samples;
	struct timeline *timeline;
	uint64_t next_ns;      /* when it is shown again while it reads */
	uint64_t first_events; /* when all of it was read last */
	struct gauge gauges[LIVE_GAUGES];
	size_t gauge_count;
	struct shown_process processes[LIVE_PROCESSES];
	size_t process_count, process_all;
	bool running, modelled;
	uint64_t heap, map, pinned, device, rss, swap; /* sums */
	uint64_t heap_min;      /* at least so much of it is live: less where events were lost ... */
	uint64_t lost;          /* ... so many; UINT64_MAX = nobody knows */
	uint64_t steps, age_ns; /* age: of the latest event, since the start */
	char growth[256];
	double growth_rate; /* bytes a step, or a second; of a site or a track; NAN = nothing grows */
	double runs_out;    /* step, or second; NAN = not said */
	bool growth_stepped;
	uint64_t pool, pool_reserved; /* blocks of all frameworks' pools on devices, and their segments */
	/* Called when there is nothing more for now, and now and then while there is. Waits as it likes; returns
	 * whether to go on. */
	bool (*show)(struct live *l, bool reading);
};

/* Follows the program until it ends or show() wants no more. 0 or -MT_E*. */
int live_follow(struct live *l, const char *dir);

#endif
