/*
 * The host side of a report: what the samples say of processes and the machine, and the host's ledger, in which every
 * byte of the limit (the cgroup's, else the machine's memory) has a row.
 *
 *   struct host_memory *s;
 *   e = host_memory_open(&s, reader);                  before the model: it picks the ledger's moment
 *   host_memory_ask(s, &query);  model_run()
 *   e = host_memory_settle(s, model);                  then everything below is valid
 *
 * The ledger's moment: just before the OOM killer struck a traced process, else when traced processes had most in
 * memory.
 */
#ifndef MT_DIAGNOSIS_LEDGER_HOST_MEMORY_H
#define MT_DIAGNOSIS_LEDGER_HOST_MEMORY_H

#include "analyzer/model/model.h"
#include "analyzer/reader/samples.h"

struct host_memory;

#define HOST_KILL_UNKNOWN UINT64_MAX

enum host_kill { HOST_NOT_KILLED = 0, HOST_MAYBE_KILLED, HOST_KILLED };

/* One traced process (image). Bytes; HOST_KILL_UNKNOWN = never sampled. */
struct host_process {
	const struct process *process;
	uint64_t rss_peak, rss_peak_ns; /* the kernel's own high-water mark where it is higher than any sample */
	uint64_t rss_seen;              /* the most that a sample showed */
	uint64_t swap_peak;
	uint64_t dirty_first, dirty_last; /* private dirty: of forked children, what was copied on write */
	enum host_kill oom_killed;
	/* At the ledger's moment; HOST_KILL_UNKNOWN if it did not live then. */
	uint64_t rss, anon, file, shmem, pss, swap, private_dirty, size;
	uint64_t live_heap, live_map;        /* map: private anonymous */
	uint64_t untouched, untouched_error; /* of these, as far as large mappings tell */
	/* of its address space, what no hook saw: loader, stacks, glibc's arenas, the break */
	uint64_t unseen_map;
};

struct host_other {
	uint32_t pid;
	const char *name;
	uint64_t rss, swap;
};

/* Sums to `total` with `unexplained`. All of physical memory. */
struct host_ledger {
	bool known;
	uint64_t ns;
	const char *cgroup; /* whose limit it is; NULL = the machine's memory */
	uint64_t total;
	/* part of it that can't be reclaimed: without clean pages of files and what the kernel can free */
	uint64_t used;
	/* requested and not freed: heap, private anonymous mappings; as far as it is resident */
	uint64_t live;
	uint64_t kept;         /* the rest of what is resident and private: kept by allocators, stacks, relocations */
	uint64_t pinned;       /* locked by a driver outside the processes' own memory */
	uint64_t mapped_files; /* file pages that traced processes have mapped, each once */
	uint64_t shared;       /* shared memory they have mapped, each page once */
	uint64_t shm_files;    /* the rest of shared memory: files in /dev/shm and other tmpfs */
	uint64_t other_processes;
	uint64_t page_cache; /* the rest of it; the kernel drops it when it must */
	uint64_t kernel;
	uint64_t free;
	int64_t unexplained;
	/* Beside the sum. */
	/* of kept: pages that forked children inherited and wrote to, as reference counts do */
	uint64_t copied;
	/* of kept: what pools of frameworks on the heap have in no block; at most, as not all of it was touched */
	uint64_t pool_free;
	uint64_t unseen; /* of kept: what no hook saw and no allocator that hooks saw can have kept; at least */
	/* live, but swapped out or never touched (the latter is known of mappings of 16 MiB and more) */
	uint64_t not_resident;
	uint64_t swapped; /* of the traced processes */
	/* by how much `live` may be wrong, and `kept` with it: what was touched since large mappings were read */
	uint64_t live_error;
	bool estimated; /* shares of shared pages were measured at another moment, or never */
};

struct host_facts {
	bool sampled;
	uint64_t memory, limit; /* limit: HOST_KILL_UNKNOWN = none below the machine's memory */
	uint64_t available_min, available_min_ns;
	uint64_t swap_total, swap_start, swap_peak, swap_peak_ns; /* of the machine */
	uint64_t swapped_out;                                     /* pages' bytes during the run */
	uint64_t oom_kills;                                       /* during the run: the cgroup's, else the machine's */
	uint64_t shm_total, shm_peak, shm_peak_ns;
	uint64_t shm_start, shm_left; /* left: how much more than at the start when all traced processes had ended */
	/* the most that the cgroup had without pages of files, when, and these pages at that moment */
	uint64_t cgroup_most, cgroup_most_ns, cgroup_file;
	bool cgroup_killed; /* the kernel killed as the cgroup's limit was hit */
	/* all ended at once, the recorder too, when the cgroup was nearly full, if `got_since` is counted */
	bool cut_off;
	/* bytes that the heaps of these processes got after the ledger's moment, or just before it without touching
	 * them */
	uint64_t got_since;
	uint64_t
		stalled_ns; /* that some task waited for memory; HOST_KILL_UNKNOWN where the kernel does not count it */
	uint64_t traced_peak, traced_peak_ns; /* resident of all traced processes, shared once */
	uint64_t traced_end, traced_end_ns;   /* the same when it was looked at last while one of them was there */
};

/* A process's share of its `anon` bytes. At an earlier look it had `all` bytes, of which its share was `pss`. What came
 * since is its own; of what went the same part was its share. */
static inline uint64_t host_share(uint64_t anon, uint64_t pss, uint64_t all)
{
	if (!all || pss >= all)
		return anon;
	return anon >= all ? pss + (anon - all) : (uint64_t)((double)anon * (double)pss / (double)all);
}

/* Bytes at a sample: what the traced processes had resident, shared pages once (the highest of these is traced_peak),
 * or what was in /dev/shm. */
struct host_moment {
	uint64_t ns, bytes;
};

int host_memory_open(struct host_memory **out, struct reader *r);
/* Of a kept analysis (analysis/index.h). 0 or an error. */
int host_memory_resume(struct host_memory *s);
void host_memory_close(struct host_memory *s); /* NULL is fine */

const struct samples *host_memory_samples(const struct host_memory *s); /* never NULL */

/* Sets in the query what the model must collect for this; `s` must outlive the pass. */
void host_memory_ask(const struct host_memory *s, struct model_query *q);

/* After the pass. 0 or -MT_E*. */
int host_memory_settle(struct host_memory *s, const struct model *m);

const struct host_facts *host_facts(const struct host_memory *s);
const struct host_ledger *host_ledger(const struct host_memory *s);
/* Over time, by rising ns. Of very many samples the highest of each few. */
size_t host_moments(const struct host_memory *s, const struct host_moment **out);
/* How much more was in /dev/shm than at the first sample, at the last sample up to `ns`. .ns 0: there is none. */
struct host_moment host_shm_at(const struct host_memory *s, uint64_t ns);
const struct host_process *host_process(const struct host_memory *s, unsigned id);
unsigned host_others(const struct host_memory *s); /* untraced ones at the ledger's moment, largest first */
const struct host_other *host_other(const struct host_memory *s, unsigned i);

#endif
