/*
 * memtrace live: figures of a running program. The events are read from the beginning once, and then as they come: the
 * reader, the model and the steps are kept from one look to the next.
 *
 * Unless marks or an optimizer tell the steps, they are found by a first pass over all events, and early in a program
 * there is no loop to be found yet. So then the whole trace is read again each time it has twice as many events. Over
 * the whole run that is no more than reading it four times.
 */
#ifndef MT_LIVE_LIVE_FOLLOW_H
#define MT_LIVE_LIVE_FOLLOW_H

#include "analyzer/timeline/timeline.h"
#include "analyzer/util/options.h"

enum { LIVE_GAUGES = 64, LIVE_PROCESSES = 12 };

/* Memory that can become full: a device, a control group, the machine. Bytes. */
struct gauge {
	char key[96], name[96]; /* key: tells gauges apart; name: for people */
	double used, total;
	int warned; /* the highest live_level() that was warned of */
};

/* Bytes, by kind of memory. */
struct shown_process {
	unsigned id;
	uint32_t pid;
	char name[96]; /* with its rank */
	int64_t rank;
	uint64_t heap, map, pinned, device, rss, swap;
	bool running;
	bool picked; /* its heap is an estimate from sampled blocks */
};

struct live {
	const struct options *options;
	struct reader *reader;
	struct samples *samples;
	struct timeline *timeline;
	struct stacks *stacks;
	uint64_t next_ns;      /* CLOCK_MONOTONIC: when show() is called again during reading */
	uint64_t first_events; /* how many events there were when the whole trace was last read */
	struct gauge gauges[LIVE_GAUGES];
	size_t gauge_count;
	struct shown_process processes[LIVE_PROCESSES];
	size_t process_count, process_all;
	bool running, modelled;
	bool picked;                                   /* `heap` is an estimate, that of some process is */
	uint64_t heap, map, pinned, device, rss, swap; /* bytes, of all processes together */
	uint64_t heap_min;      /* bytes of the heap that are live for sure; less than `heap` if events were lost */
	uint64_t lost;          /* events; UINT64_MAX = unknown how many */
	uint64_t steps, age_ns; /* age: of the latest event, since the start */
	char growth[256];
	double growth_rate;           /* bytes per step or per second; NAN = nothing grows, or for less than a second */
	double runs_out;              /* the step, or second, at which memory runs out; NAN = unknown */
	bool growth_stepped;          /* these are per step */
	uint32_t growth_pid;          /* 0 = of several processes, or nothing grows */
	uint64_t pool, pool_reserved; /* blocks of all frameworks' pools on devices, and their segments */
	/* Called when all events that are there have been read, and now and then during reading (`reading`). It may
	 * wait as long as it likes. False = stop following. */
	bool (*show)(struct live *l, bool reading);
};

/* Of an estimate from sampled blocks: what it may be wrong by, with 95 % certainty. */
uint64_t live_heap_error(const struct live *l);

/* Follows the program until it ends or show() returns false. 0 or -MT_E*. */
int live_follow(struct live *l, const char *dir);

#endif
