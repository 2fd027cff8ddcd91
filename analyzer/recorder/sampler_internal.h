/*
 * The sampler itself, between its parts:
 *
 *   sampler.c          which processes, and when; the thread
 *   sampler_look.c     what is looked at how often: processes, mappings, others, the machine
 *   sampler_devices.c  which processes use devices; their driver's figures
 *
 * Nobody else includes this. All but what the lock is for belongs to the sampler's thread.
 */
#ifndef MT_RECORDER_SAMPLER_INTERNAL_H
#define MT_RECORDER_SAMPLER_INTERNAL_H

#include "analyzer/recorder/sampler.h"
#include "analyzer/recorder/sampler_sources.h"
#include "analyzer/util/cgroup.h"

#include <pthread.h>

#define MS        1000000ull
#define SECOND    (1000 * MS)
#define PERIOD_NS SECOND       /* from one sample to the next, where nothing asks for more or fewer */
#define OTHERS    6            /* untraced processes that are shown */
#define OTHERS_NS (5 * SECOND) /* ... and how often they are looked for at most */

/* A look at all pages of a process: what it cost, and so when it may be repeated. */
struct look {
	uint64_t last_ns;    /* 0 = never */
	uint64_t rss;        /* KiB it had then */
	uint64_t faults;     /* minor ones, until then */
	uint64_t ns_per_mib; /* 0 = not known yet */
	bool stale;          /* somebody was forked or ended: what is shared is another share now */
};

/* One traced process as the sampler sees it. */
struct target {
	struct sampler_process who;
	bool listed; /* still among those the recorder knows */
	bool over;
	uint32_t number; /* in our /proc; 0 = not found */
	struct look rollup, mappings;
	uint64_t rss; /* KiB */
	uint64_t met_ns;
	uint64_t log_at; /* read so far of its record log */
	bool cuda;
	char libcuda[1024];
	unsigned cgroup_version;
	uint64_t cgroup_ns; /* when it is looked up again */
	char own_group[CGROUP_PATH], group[CGROUP_PATH];
};

struct other {
	uint32_t pid;
	struct proc_who who;
};

struct sampler {
	struct mt_session *session;
	struct samples_file *file;
	struct cgroups *cgroups;
	struct nvml *nvml;
	uint64_t nvml_retry_ns;
	bool own_namespace; /* we are in the machine's first pid namespace: a driver's pids are ours */

	struct target **targets;
	size_t count, room;
	uint64_t now;                /* of this sample */
	uint64_t start_ns, spent_ns; /* of the allowance for looks that are early */
	uint64_t memory;             /* KiB the machine has, or the lowest limit */
	uint64_t others_ns;
	struct other others[OTHERS];
	size_t other_count;
	uint32_t failures;
	unsigned burst;
	bool grows, ended;

	pthread_t thread;
	pthread_mutex_t lock; /* of what follows; never held while the kernel is asked for anything */
	pthread_cond_t wake;
	bool stop, stopped;
	struct sampler_process *list;
	size_t list_count, list_room;
	uint64_t list_version, seen_version;
};

/* sampler_look.c: each adds what it sees to s->file, as of s->now. */
void look_at_process(struct sampler *s, struct target *t);
void look_at_mappings(struct sampler *s);
void look_at_others(struct sampler *s);
void look_at_machine(struct sampler *s);

/* sampler_devices.c */
bool uses_devices(const struct sampler *s);
void look_at_devices(struct sampler *s);

#endif
