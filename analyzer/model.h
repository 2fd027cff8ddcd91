/*
 * The model: one pass over a reader's stream, O(1) an event; memory is bounded by what is alive and by the call tree,
 * never by the number of events. The terms are those of the command line's documentation.
 *
 *   struct model_query q = { .until_ns = UINT64_MAX };     or MODEL_QUERY_ALL
 *   struct model *m;
 *   int e = model_run(&m, reader, &q);
 *   ... model_process(m, id)->kind[MODEL_HEAP].peak_bytes ... model_free(m);
 *
 * Glossary
 *   kind     heap (malloc family) or map (mmap as hooks saw it); nothing is counted in both, and they are never added
 *   site     a stack that allocated, in one process, of one kind: (process, kind, node, node2); where stacks are sampled
 *            blocks of different sizes are different sites, since they stand for different numbers of others
 *   block    one live allocation; of kind map: one contiguous range (a partial unmap makes two of one)
 *   own      everything but what a forked child inherited; all figures are own unless they are called inherited
 *
 * How peaks get their owners in one pass: a site remembers its live value at the latest peak lazily. Just before a
 * site's value changes, if its stamp is not the current peak's number, the old value *is* its value at that peak. Sites
 * that did not change since have their live value. The number only goes up when a free follows a new maximum.
 */
#ifndef MT_MODEL_H
#define MT_MODEL_H

#include "analyzer/reader.h"

enum model_kind { MODEL_HEAP = 0, MODEL_MAP, MODEL_KINDS };

/* One change of what is live, as the pass makes it. */
struct model_change {
	const struct process *process;
	enum model_kind kind;
	uint32_t site;          /* index in the process's sites, which may still move; UINT32_MAX = inherited or unknown */
	uint32_t node, node2;   /* of the site */
	uint32_t thread;        /* index of the one that allocated it */
	uint64_t addr;          /* of the block, or of the part of a mapping that changes */
	int64_t bytes, blocks;  /* +size, 1 = allocated; -size, -1 = freed */
	uint64_t process_bytes; /* live of that kind in that process afterwards */
	uint64_t ns;
};

enum model_split {
	MODEL_SPLIT_NONE = 0,
	MODEL_SPLIT_THREAD, /* sites are also told apart by the allocating thread's index: site.split */
	MODEL_SPLIT_SIZE,   /* ... by size class: site.split is the index of the histogram bin */
};

/* What to look at. Zero fields but until_ns mean everything. */
struct model_query {
	uint64_t until_ns;  /* stop there: live is what was alive at that moment (--at, --to). UINT64_MAX = the end */
	uint64_t from_ns;   /* counts, peaks, failures and timelines begin here; live blocks of before are known (--from) */
	const bool *processes; /* by id: whose sums and common peak are wanted; NULL = all. Must outlive the model */
	enum model_split split;
	bool keep_blocks;   /* keep single live blocks of ended processes for model_each_block() (memory!) */
	bool growth;        /* record site.growth */
	/* Called for each slot before it is accounted for; NULL = none. */
	void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring, uint32_t thread);
	/* Called after each change of live own memory; NULL = none. Blocks that end with their process are not among them. */
	void (*on_change)(void *arg, const struct model_change *c);
	void *arg;
	/* Called now and then with 0..1, for a progress bar; NULL = none. */
	void (*on_progress)(double done);
};

#define MODEL_QUERY_ALL ((struct model_query){ .until_ns = UINT64_MAX })

struct model_totals {
	uint64_t allocations, frees, allocated_bytes;
	/* At the end of the pass. Of a process that has ended: when it ended; but 0 after an exec (its heap ended, nothing
	 * leaked), and 0 if query.until_ns is given (it was not alive at that moment). Sums over processes likewise. */
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t temporary;                 /* freed before the same thread's next allocation */
	uint64_t failed, failed_bytes_max;
	uint64_t inherited_bytes, inherited_blocks;   /* from the fork, still alive; 0 in sums over processes */
	uint64_t missed_frees;              /* blocks that ended because their address was allocated again */
	uint64_t unknown_frees;             /* frees of blocks nobody saw being allocated; not in frees */
};

#define MODEL_BINS 49

/* Bin i counts sizes in [2^(i-1), 2^i - 1]; bin 0 is size 0. */
struct model_bin {
	uint64_t allocations, temporary;
	uint64_t live_blocks, live_bytes;
};

/* What a map is. Reservations (PROT_NONE) count as calls, but their bytes and blocks are in no other figure. */
enum model_map_class { MAP_ANON = 0, MAP_FILE, MAP_MEMFD, MAP_SHARED, MAP_RESERVED, MAP_CLASSES };
struct model_map_sum { uint64_t bytes, blocks, peak_bytes; };

/* Lowest, highest and last live bytes in a stretch of time. */
struct model_bucket {
	uint64_t low, high, last;
	uint64_t blocks; /* at its end */
};

/* Bucket i covers model_*_width_ns() from time query.from_ns + (first + i) * width on. All series of one use (timelines;
 * growth) have the same width, so first + i means the same moment everywhere, and at most enum below of them. */
struct model_series {
	uint32_t first, count, room;
	struct model_bucket *buckets;
};

enum { MODEL_TIMELINE_BUCKETS = 512, MODEL_GROWTH_BUCKETS = 32 };

#define MODEL_UNSAMPLED UINT64_MAX

struct model_site {
	uint32_t process;   /* id */
	uint32_t node, node2;
	uint32_t split;     /* see enum model_split */
	uint32_t kind;      /* enum model_kind */
	uint64_t sampled;   /* 0: every block of this stack is in here. MODEL_UNSAMPLED: blocks of which only the immediate
	                     * caller is kept. Else the size of blocks whose stacks were sampled: see estimate.h */
	uint64_t allocations, allocated_bytes, temporary;
	uint64_t live_bytes, live_blocks;
	uint64_t oldest_ns; /* allocation time of its oldest live block; UINT64_MAX = none. Valid after model_run() */
	/* Live at the process's peak of that kind, and at the peak of the host's sum. Valid after model_run(). */
	uint64_t peak_bytes, peak_blocks;
	uint64_t host_peak_bytes, host_peak_blocks;
	uint64_t since_bytes, since_blocks; /* live ones allocated at or after query.from_ns */
	/* Live bytes over the run in few, coarse windows; NULL for sites that never held much. */
	struct model_series *growth;

	uint64_t peak_stamp, host_stamp;    /* the model's */
};

/* Failed requests of one stack. */
struct model_failure {
	uint32_t process, node, node2, hook;
	uint64_t count;
	uint64_t largest_bytes, last_bytes;
	uint64_t first_ns, last_ns;
};

struct model_process {
	const struct process *process;
	struct model_totals kind[MODEL_KINDS];
	struct model_map_sum map[MAP_CLASSES];
	struct model_bin bins[MODEL_BINS];           /* heap */
	struct model_series timeline[MODEL_KINDS];
	const struct model_site *sites;              /* all kinds; sites[i].kind tells */
	uint32_t site_count;
	uint64_t events;                             /* slots seen */
	uint64_t lost_events;                        /* as the stream said (MT_LOST) */
	uint64_t odd_undos;                          /* undo records without their free */
	bool started, ended;                         /* by the end of the pass; a process that still runs has not ended */
};

struct model_host {
	const struct reader_host *host;
	struct model_totals kind[MODEL_KINDS];       /* sums, and the peak of the sum over processes at one moment */
	struct model_map_sum map[MAP_CLASSES];
	struct model_series timeline[MODEL_KINDS];
};

struct model;

int model_run(struct model **out, struct reader *r, const struct model_query *q);
void model_free(struct model *m);

const struct model_process *model_process(const struct model *m, unsigned id);
const struct model_host *model_host(const struct model *m, unsigned index);

/* Over all hosts: sums; the peak is that of the host with the greatest. */
struct model_totals model_totals(const struct model *m, enum model_kind kind);
struct model_map_sum model_map_sum(const struct model *m, enum model_map_class class);
void model_bins(const struct model *m, struct model_bin bins[MODEL_BINS]);

uint64_t model_timeline_width_ns(const struct model *m);
uint64_t model_growth_width_ns(const struct model *m);
uint64_t model_end_ns(const struct model *m); /* of the pass: the last event, or query.until_ns */

unsigned model_failures(const struct model *m);
const struct model_failure *model_failure(const struct model *m, unsigned i);

/* One live block. Order is unspecified. */
struct model_block {
	uint64_t addr, size, ns;
	uint32_t site;    /* index in the process's sites; UINT32_MAX if inherited */
	uint32_t thread;  /* index of the allocating thread */
	bool inherited;
	enum model_map_class class; /* kind map only */
	uint32_t prot, file;        /* kind map only */
};

/* Live blocks of one process; of an ended one only with query.keep_blocks. The callback returns 0 to go on. */
int model_each_block(const struct model *m, unsigned process, enum model_kind kind,
		     int (*f)(void *arg, const struct model_block *b), void *arg);

#endif
