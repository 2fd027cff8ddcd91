/*
 * The host side of a report: what the samples say of processes and the machine, and the host's ledger, in which every byte of
 * the limit (the cgroup's, else the machine's memory) has a row.
 *
 *   struct system *s;
 *   e = system_open(&s, reader);                  before the model: it picks the ledger's moment
 *   system_ask(s, &query);  model_run()
 *   e = system_settle(s, model);                  then everything below is valid
 *
 * The ledger's moment: just before the OOM killer struck a traced process, else when traced processes had most in memory.
 */
#ifndef MT_ANALYZER_SYSTEM_H
#define MT_ANALYZER_SYSTEM_H

#include "analyzer/model.h"
#include "analyzer/samples.h"

struct system;

#define SYSTEM_UNKNOWN UINT64_MAX

enum system_kill { SYSTEM_NOT_KILLED = 0, SYSTEM_MAYBE_KILLED, SYSTEM_KILLED };

/* One traced process (image). Bytes; SYSTEM_UNKNOWN = never sampled. */
struct system_process {
	const struct process *process;
	uint64_t rss_peak, rss_peak_ns; /* the kernel's own high-water mark where it is higher than any sample */
	uint64_t rss_seen;              /* the most that a sample showed */
	uint64_t swap_peak;
	uint64_t dirty_first, dirty_last; /* private dirty: of forked children, what was copied on write */
	enum system_kill oom_killed;
	/* At the ledger's moment; SYSTEM_UNKNOWN if it did not live then. */
	uint64_t rss, anon, file, shmem, pss, swap, private_dirty, size;
	uint64_t live_heap, live_map;   /* map: private anonymous */
	uint64_t untouched, untouched_error; /* of these, as far as large mappings tell */
	uint64_t unseen_map;            /* of its address space, what no hook saw: loader, stacks, glibc's arenas, the break */
};

struct system_other { uint32_t pid; const char *name; uint64_t rss, swap; };

/* Sums to `total` with `unexplained`. All of physical memory. */
struct system_ledger {
	bool known;
	uint64_t ns;
	const char *cgroup;      /* whose limit it is; NULL = the machine's memory */
	uint64_t total;
	uint64_t used;           /* of it: what can't give way; clean pages of files, and what the kernel says can be had back, can */
	uint64_t live;           /* requested and not freed: heap, private anonymous mappings; as far as it is resident */
	uint64_t kept;           /* the rest of what is resident and private: kept by allocators, stacks, relocations */
	uint64_t pinned;         /* locked by a driver outside the processes' own memory */
	uint64_t mapped_files;   /* file pages that traced processes have mapped, each once */
	uint64_t shared;         /* shared memory they have mapped, each page once */
	uint64_t shm_files;      /* the rest of shared memory: files in /dev/shm and other tmpfs */
	uint64_t other_processes;
	uint64_t page_cache;     /* the rest of it; the kernel drops it when it must */
	uint64_t kernel;
	uint64_t free;
	int64_t unexplained;
	/* Beside the sum. */
	uint64_t copied;         /* of kept: pages that forked children inherited and wrote to, as reference counts do */
	uint64_t unseen;         /* of kept: what no hook saw and no allocator that hooks saw can have kept; at least */
	uint64_t not_resident;   /* live, but swapped out or never touched (the latter is known of mappings of 16 MiB and more) */
	uint64_t swapped;        /* of the traced processes */
	uint64_t live_error;     /* so far `live` may be off, and `kept` with it: what was touched since large mappings were looked at */
	bool estimated;          /* a process's share of what it shares was looked at another moment, or never */
};

struct system_facts {
	bool sampled;
	uint64_t memory, limit;  /* limit: SYSTEM_UNKNOWN = none below the machine's memory */
	uint64_t available_min, available_min_ns;
	uint64_t swap_total, swap_start, swap_peak, swap_peak_ns; /* of the machine */
	uint64_t swapped_out;    /* pages' bytes during the run */
	uint64_t oom_kills;      /* during the run: the cgroup's, else the machine's */
	uint64_t shm_total, shm_peak;
	uint64_t shm_start, shm_left; /* left: once all traced processes were gone it had so much more than at the start */
	uint64_t cgroup_most, cgroup_most_ns, cgroup_file; /* the most that couldn't give way of what the cgroup had, and its files' pages then */
	bool cgroup_killed;      /* the kernel killed as the cgroup's limit was hit */
	bool cut_off;            /* all ended at once, the recorder, too, when the cgroup was nearly full, or wasn't but for ... */
	uint64_t got_since;      /* ... what the heaps of these processes have got since the ledger's moment, or just before and not touched yet */
	uint64_t stalled_ns;     /* that some task waited for memory; SYSTEM_UNKNOWN where the kernel does not count it */
	uint64_t traced_peak, traced_peak_ns; /* resident of all traced processes, shared once */
};

/* What of `anon` is a process's own share, when of `all` that it had at an earlier look it was `pss`: what it has more since is its own,
 * and what it has less may have been either. */
static inline uint64_t system_share(uint64_t anon, uint64_t pss, uint64_t all)
{
	if (!all || pss >= all)
		return anon;
	return anon >= all ? pss + (anon - all) : (uint64_t)((double)anon * (double)pss / (double)all);
}

int system_open(struct system **out, struct reader *r);
void system_close(struct system *s); /* NULL is fine */

const struct samples *system_samples(const struct system *s); /* never NULL */

/* What the model is to look at on its way; `s` must outlive the pass. */
void system_ask(const struct system *s, struct model_query *q);

int system_settle(struct system *s, const struct model *m);

const struct system_facts *system_facts(const struct system *s);
const struct system_ledger *system_ledger(const struct system *s);
const struct system_process *system_process(const struct system *s, unsigned id);
unsigned system_others(const struct system *s);  /* untraced ones at the ledger's moment, largest first */
const struct system_other *system_other(const struct system *s, unsigned i);

#endif
