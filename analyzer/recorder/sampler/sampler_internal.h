/*
 * The state of the sampler, which its parts share:
 *
 *   sampler.c          which processes, and when; the thread
 *   sampler_look.c     what is looked at how often: processes, mappings, others, the machine
 *   sampler_devices.c  which processes use devices; their driver's figures
 *
 * Nobody else includes this. Only the sampler's thread uses it, but for the fields below `lock`. Times are of
 * CLOCK_MONOTONIC, in nanoseconds.
 */
#ifndef MT_RECORDER_SAMPLER_SAMPLER_INTERNAL_H
#define MT_RECORDER_SAMPLER_SAMPLER_INTERNAL_H

#include "analyzer/recorder/sampler/sampler.h"
#include "analyzer/recorder/sampler/sampler_sources.h"
#include "analyzer/util/system/cgroup.h"

#include <pthread.h>

#define MS        1000000ull
#define SECOND    (1000 * MS)
#define PERIOD_NS SECOND       /* from one sample to the next, where nothing asks for more or fewer */
#define OTHERS    6            /* how many untraced processes are sampled, those with the most memory */
#define OTHERS_NS (5 * SECOND) /* the least time from one search for them to the next */

/* A look at all pages of a process (smaps): what it cost, which decides when it may be repeated. */
struct look {
	uint64_t last_ns;    /* 0 = never */
	uint64_t rss;        /* resident memory then, KiB */
	uint64_t faults;     /* its minor faults until then */
	uint64_t ns_per_mib; /* what the look took; 0 = not known yet */
	uint64_t shared;     /* dirty pages that others have, too, then, KiB */
	bool stale; /* shares of shared memory have changed: a process was forked, ended, or copied its pages */
};

/* One traced process as the sampler sees it. */
struct target {
	struct sampler_process who;
	bool listed; /* it is in the recorder's latest list */
	bool over;
	uint32_t number; /* in our /proc; 0 = not found */
	struct look rollup, mappings;
	uint64_t rss;       /* KiB */
	uint64_t met_ns;    /* when it was first listed */
	uint64_t log_at;    /* bytes of its record log that were read so far */
	unsigned backends;  /* of devices that it uses: bits of enum mt_backend */
	char library[1024]; /* path of what it has loaded that a source's library may lie beside */
	unsigned cgroup_version;
	uint64_t cgroup_ns; /* when its groups are looked up again */
	char own_group[CGROUP_PATH], group[CGROUP_PATH];
};

/* An untraced process. */
struct other {
	uint32_t pid;
	struct proc_who who;
};

#define DEVICE_SOURCES 2

/* A source of figures of devices: NULL = it is not open, and tried again later. */
struct opened {
	void *source;
	uint64_t retry_ns;
};

struct sampler {
	struct mt_session *session;
	struct samples_file *file;
	struct cgroups *cgroups;
	struct opened devices[DEVICE_SOURCES];
	bool own_namespace; /* we are in the machine's first pid namespace, where pids are those that drivers give */

	struct target **targets;
	size_t count, room;
	uint64_t now;                /* time of this sample */
	uint64_t start_ns, spent_ns; /* the allowance for early looks: since when it grows, what was spent */
	uint64_t memory;             /* KiB that the machine has, or that the lowest limit allows */
	uint64_t others_ns;
	struct other others[OTHERS];
	size_t other_count;
	uint32_t failures;
	unsigned burst;
	bool grows, ended;

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows; not held while /proc, files or drivers are read */
	pthread_cond_t wake;
	bool stop, stopped;
	struct sampler_process *list;
	size_t list_count, list_room;
	uint64_t list_version, seen_version;
};

/* sampler_look.c: each adds its figures to s->file, as of s->now. */
void look_at_process(struct sampler *s, struct target *t);
void look_at_mappings(struct sampler *s);
void look_at_others(struct sampler *s);
void look_at_machine(struct sampler *s);

/* sampler_devices.c: whether any target uses a device; adds the figures of devices and their processes to s->file. */
bool uses_devices(const struct sampler *s);
void look_at_devices(struct sampler *s);
void close_devices(struct sampler *s);

#endif
