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
 *   kind     heap (malloc family; of a pool that lies on it the blocks, host_pools.h), map (mmap as hooks saw it),
 *            pinned (host memory of a device's driver); device (what a driver charged) and pool (blocks of a
 *            framework's allocator, which lie inside device memory). Nothing is counted in two of the first four, and
 *            no two kinds are ever added
 *   site     a stack that allocated, in one process, of one kind, on one device: (process, kind, device, node, node2);
 *            where stacks are sampled blocks of different sizes are different sites, since they stand for different
 *            numbers of others
 *   block    one live allocation; of kind map: one contiguous range (a partial unmap makes two of one)
 *   own      everything but what a forked child inherited; all figures are own unless they are called inherited
 *
 * How peaks get their owners in one pass: a site remembers its live value at the latest peak lazily. Just before a
 * site's value changes, if its stamp is not the current peak's number, the old value *is* its value at that peak. Sites
 * that did not change since have their live value. The number only goes up when a free follows a new maximum.
 */
#ifndef MT_MODEL_MODEL_H
#define MT_MODEL_MODEL_H

#include "analyzer/reader/reader.h"
#include "analyzer/util/event_kinds.h"
#include "analyzer/util/sampling_estimate.h"

struct model;

/* One change of what is live, as the pass makes it. */
struct model_change {
	const struct model *model; /* of the pass */
	const struct process *process;
	enum model_kind kind;
	/* index in the process's sites, which may still move; UINT32_MAX = inherited or unknown */
	uint32_t site;
	uint32_t node, node2;  /* of the site */
	uint32_t thread;       /* index of the one that allocated it */
	uint64_t addr;         /* of the block, or of the part of a mapping that changes */
	int64_t bytes, blocks; /* +size, 1 = allocated; -size, -1 = freed */
	uint32_t device;       /* index for model_device(); MODEL_NO_DEVICE of host memory */
	uint64_t device_bytes; /* live of that kind on that device in all processes; 0 of host memory */
	uint64_t made_ns;      /* when the block was allocated */
	bool moves;            /* a part of realloc: first the old block is freed, at once the new one is there */
	bool before;           /* the block was there before recording began */
	uint64_t ns;
};

/* In folded blocks: what a pool on a device had since the last one of these, or now if it is the first, with what is
 * left out; the changes alone show less. */
struct model_level_change {
	const struct process *process;
	enum model_kind kind; /* MODEL_KINDS: only `allocations` is said */
	uint32_t device;
	uint64_t low, high, now;
	uint64_t allocations; /* of any kind that were left out since the last one */
	bool end;             /* from here on changes show all there is */
	uint64_t ns;
};

/* Blocks that came and went between two moments and left a sum, no events of their own: in a folded block, or young. */
struct model_left_out {
	const struct process *process;
	enum model_kind kind;
	uint32_t site, device; /* as of a change */
	uint64_t bytes, blocks;
	uint64_t from_ns, until_ns; /* what is known of when; UINT64_MAX: until the process's end at most */
	uint64_t ns;                /* of the sum */
};

enum model_split {
	MODEL_SPLIT_NONE = 0,
	MODEL_SPLIT_THREAD, /* sites are also told apart by the allocating thread's index: site.split */
	MODEL_SPLIT_SIZE,   /* ... by size class: site.split is the index of the histogram bin */
};

/* A look at a device (all of its processes) right behind device event `event`. The caller frees the layout. */
struct model_peek {
	uint32_t device;
	uint64_t event;
	struct pool_layout *layout; /* analyzer/model/pool_layout.h; NULL if the pass did not get there */
	uint64_t ns;
};

/* A stretch of a process's address space. Filled in: how much of it was its own heap blocks and private anonymous
 * mappings at query.level_ns. */
struct model_stretch {
	uint32_t process; /* id */
	uint64_t start, end;
	uint64_t live;
};

/* What to look at. Zero fields but until_ns mean everything. */
struct model_query {
	uint64_t until_ns;    /* stop there: live is what was alive at that moment (--at, --to). UINT64_MAX = the end */
	uint64_t until_event; /* stop behind that device event (model_oom.event, model_device.peak.event); 0 = don't */
	/* counts, peaks, failures and timelines begin here; live blocks of before are known (--from) */
	uint64_t from_ns;
	const bool *processes; /* by id: whose sums and common peak are wanted; NULL = all. Must outlive the model */
	enum model_split split;
	/* Moments at which the layout of a device is wanted, filled in on the way; they must outlive the pass. */
	struct model_peek *peeks;
	size_t peek_count;
	bool keep_blocks; /* keep single live blocks of ended processes for model_each_block() (memory!) */
	/* nobody will look at the model, only at what it calls: sites have numbers but no figures ... */
	bool changes_only;
	/* ... those of this pass over the same trace, which saw as much and must outlive it (then host memory has no
	 * sums either); NULL = new ones */
	const struct model *numbers;
	/* a moment at which each process's live host memory is wanted: model_process.level. 0 = none */
	uint64_t level_ns;
	/* those of a process side by side, disjoint and by address; they must outlive the pass */
	struct model_stretch *stretches;
	size_t stretch_count;
	/* Called for slots of these kinds (a bit each, 0 = all) before they are accounted for; NULL = none. */
	uint64_t event_kinds;
	void (*on_event)(void *arg, const struct process *p, const struct mt_event *slot, uint32_t ring,
			 uint32_t thread);
	/* Called after each change of live own memory; NULL = none. Blocks that end with their process are not among
	 * them. */
	void (*on_change)(void *arg, const struct model_change *c);
	/* Called for what folded blocks say of what they lack; NULL = none. */
	void (*on_level)(void *arg, const struct model_level_change *l);
	/* Called for each sum of blocks that left no events; NULL = none. */
	void (*on_left_out)(void *arg, const struct model_left_out *l);
	void *arg;
	/* Called when a reader that follows has nothing more for now: to look at model_live() and the like, and to
	 * refresh it. > 0: go on; 0: that is the end; < 0: an error. */
	int (*on_idle)(void *arg, const struct model *m);
	void *idle_arg;
	/* Called now and then: what part of the trace is behind, and how many events it has; NULL = none. */
	void (*on_progress)(double done, uint64_t events);
};

#define MODEL_QUERY_ALL ((struct model_query){ .until_ns = UINT64_MAX })

struct model_totals {
	uint64_t allocations, frees, allocated_bytes;
	/* At the end of the pass. Of a process that has ended: when it ended; but 0 after an exec (its heap ended,
	 * nothing leaked), and 0 if query.until_ns is given (it was not alive at that moment). Sums over processes
	 * likewise. */
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes, peak_blocks, peak_ns;
	uint64_t temporary; /* freed before the same thread's next allocation */
	uint64_t failed, failed_bytes_max;
	/* requests that failed and were made to see whether they would; not in failed */
	uint64_t trials;
	uint64_t inherited_bytes, inherited_blocks; /* from the fork, still alive; 0 in sums over processes */
	uint64_t missed_frees; /* blocks that ended because their address was allocated again ... */
	uint64_t missed_bytes; /* ... and their bytes, of the host's kinds */
	/* of what is live: it may have been freed by events that were lost (loss_doubt.h). After the pass */
	uint64_t doubt_bytes, doubt_blocks;
	uint64_t unknown_frees; /* frees of blocks nobody saw being allocated; not in frees */
	/* Only picked blocks were recorded (MT_RECORD_SAMPLED): live and peak values are estimates, and the truth lies
	 * in these with 95 % certainty. Of the whole run allocations, allocated_bytes and frees are exact all the same.
	 * After the pass */
	bool estimated;
	uint64_t live_low, live_high, peak_low, peak_high;
};

#define MODEL_BINS 49

/* Bin i counts sizes in [2^(i-1), 2^i - 1]; bin 0 is size 0. */
struct model_bin {
	uint64_t allocations, temporary;
	uint64_t live_blocks, live_bytes;
};

struct model_map_sum {
	uint64_t bytes, blocks, peak_bytes;
};

/* Lowest, highest and last live bytes in a stretch of time. */
struct model_bucket {
	uint64_t low, high, last;
	uint64_t blocks; /* at its end */
};

/* Bucket i covers model_timeline_width_ns() from time query.from_ns + (first + i) * width on. All series have the same
 * width, so first + i means the same moment everywhere, and at most MODEL_TIMELINE_BUCKETS of them. */
struct model_series {
	uint32_t first, count, room;
	struct model_bucket *buckets;
};

enum { MODEL_TIMELINE_BUCKETS = 512 };

#define MODEL_UNSAMPLED ((1ull << 48) - 1)

/* One that has something alive at the end, had at a peak, or whose blocks were freed at once; of a million stacks of a
 * PyTorch program that allocate those are a third. */
struct model_site {
	uint32_t number;  /* for those who speak of it elsewhere: model_site() */
	uint32_t process; /* id */
	uint32_t node, node2;
	uint32_t split;  /* see enum model_split */
	uint32_t device; /* device and pool: index for model_device(); else MODEL_NO_DEVICE */
	uint32_t live_blocks;
	/* 0: every block of this stack is in here. MODEL_UNSAMPLED: blocks of which only the immediate caller is kept.
	 * Else the size of blocks whose stacks were sampled: see sampling_estimate.h */
	uint64_t sampled : 48;
	uint64_t kind : 8;     /* enum model_kind */
	uint64_t segments : 8; /* device: some of its allocations hold blocks of a pool */
	uint32_t temporary;    /* valid after model_run() */
	uint32_t allocations;  /* since there was nothing of it, and 1 for all before. Of one that never freed, all */
	uint64_t live_bytes;
	/* Live at the process's peak of that kind, and at the peak of the host's sum. Device and pool: at the peak of
	 * that kind of the process on that device, and of the device's sum over processes. Valid after model_run(). */
	uint64_t peak_bytes, host_peak_bytes;
	uint32_t peak_blocks, host_peak_blocks;
	uint32_t peak_stamp, host_stamp; /* the model's */
};

/* Of one site: how much of what seems to be live may have been freed by events that were lost, and how much of it was
 * found to be so, since its address was allocated again. */
struct model_doubt {
	uint64_t bytes, blocks, missed_bytes;
};

/* Failed requests of one stack. */
struct model_failure {
	uint32_t process, node, node2, hook;
	uint64_t count;
	uint64_t largest_bytes, last_bytes;
	uint64_t first_ns, last_ns;
};

/* The address space in which blocks of the heap ever lay (heap_footprint.h), of young ones as much as they can have
 * had, and what of it is alive. Not known where events were folded or lost. */
struct model_footprint {
	bool known;
	uint64_t bytes, live;
};

/* What a process had alive at query.level_ns, or at its end if that is before; nothing if it began later. */
struct model_level {
	bool taken;
	/* Private anonymous mappings by the stack that they are of. */
	struct model_level_map {
		uint32_t node, node2;
		uint64_t bytes;
	} *by_stack;
	size_t stack_count, stack_room;
	uint64_t live[MODEL_HOST_KINDS];
	uint64_t map[MAP_CLASSES];
	uint64_t registered_bytes;
	uint64_t inherited_bytes; /* from the fork: of the heap and mappings */
	uint64_t pool_free_bytes; /* of segments of pools on the heap, in no block */
	struct model_footprint footprint;
};

/* Blocks that are left out of the oldest events: totals, sites and bins have them; live values in between are too low
 * by what was alive of them. The peaks of each process are exact, those of a sum over processes too low by most_bytes
 * at most. */
struct model_fold {
	uint64_t until_ns;                          /* 0 = nothing was folded */
	uint64_t blocks, bytes;                     /* left out */
	uint64_t most_bytes;                        /* of the heap's that were alive at once, at most */
	uint64_t now_bytes;                         /* the same, at the moment where the pass ended */
	uint64_t most_other_bytes, now_other_bytes; /* of mappings, pinned memory, devices and pools */
	/* Small blocks that were recorded as sums (MEMTRACE_RECORD=young): the totals have them. Live values and peaks
	 * of the heap are too low by what was alive of them, young_most_bytes at most; not at the end, where all that
	 * is alive is known. */
	uint64_t young_blocks, young_bytes, young_most_bytes;
};

/* A framework's pool that lies on the heap; several of one process are one. Blocks in use are in the heap's figures,
 * segments, which it has from malloc, are not. */
struct model_host_pool {
	uint64_t segments, reserved_bytes, reserved_peak_bytes, reserved_peak_ns; /* segments: those that are there */
	uint64_t in_use_bytes, in_use_blocks, in_use_peak_bytes;
	uint64_t allocations;
};

struct model_process {
	const struct process *process;
	struct model_totals kind[MODEL_KINDS];
	struct model_map_sum map[MAP_CLASSES];
	/* of mappings, that madvise gave back to the kernel; all calls together */
	uint64_t map_given_bytes;
	struct model_bin bins[MODEL_BINS]; /* heap */
	struct model_series timeline[MODEL_KINDS];
	const struct model_site *sites;   /* all kinds; sites[i].kind tells. In the order of numbers */
	const uint64_t *oldest_ns;        /* by site: allocation time of its oldest live block; 0 = none */
	const struct model_doubt *doubts; /* by site; NULL = no event was lost */
	uint32_t site_count;
	struct model_fold fold;
	struct model_footprint footprint; /* at the end */
	struct model_host_pool pool;      /* at the end */
	uint64_t began_with;              /* bytes of heap and mappings, inherited from a fork */
	uint64_t events;                  /* slots seen, or folded */
	uint64_t last_ns;                 /* of its latest event */
	/* as the stream said (MT_LOST); the event before the first of them */
	uint64_t lost_events, lost_ns;
	uint64_t odd_undos; /* undo records without their free */
	/* of its parent's device memory, by a forked child; they charge nothing */
	uint64_t inherited_device_frees;
	uint64_t registered_bytes, registered_peak_bytes; /* memory of the program's own that a driver has locked */
	/* by the end of the pass; a process that still runs has not ended */
	bool started, ended;
	struct model_level level;
};

struct model_host {
	const struct reader_host *host;
	struct model_totals kind[MODEL_KINDS]; /* sums, and the peak of the sum over processes at one moment */
	struct model_map_sum map[MAP_CLASSES];
	struct model_series timeline[MODEL_KINDS];
};

/* ---- devices --------------------------------------------------------------------------------------------- */

/* Segments are the driver's allocations that hold the pool's blocks: an allocation in which a block ever began or lay,
 * all that is mapped in one reserved range of addresses if some of it is. Reserved is the sum of their bytes. */
enum model_layer {
	LAYER_MEMORY = 0, /* all that the driver charged */
	LAYER_POOL,       /* blocks in use */
	LAYER_RESERVED,   /* segments */
	LAYER_UNMAPPED,   /* physical memory (in LAYER_MEMORY) that is mapped nowhere */
	/* segments (in LAYER_RESERVED) of private pools: only blocks of the graphs that were captured there lie in them
	 * */
	LAYER_PRIVATE,
	LAYER_PRIVATE_POOL, /* blocks in use (in LAYER_POOL) there */
	MODEL_LAYERS
};

/* What one process has on one device. */
struct model_share {
	const struct process *process;
	uint32_t device;                         /* index for model_device() */
	uint32_t id, ordinal;                    /* of MT_REC_DEVICE: its own cuda:N */
	struct model_totals layer[MODEL_LAYERS]; /* allocations of LAYER_RESERVED: segments */
	struct model_series timeline[MODEL_LAYERS];
	uint64_t first_ns;      /* when it first had memory; UINT64_MAX = never */
	uint64_t alias_bytes;   /* other processes' and graphics APIs' memory it has opened; in no other figure */
	uint64_t ooms, retries; /* as PyTorch counts num_ooms and num_alloc_retries */
	/* it has used the driver's own pool (cudaMallocAsync), which keeps what is freed */
	bool driver_pool;
	bool expandable; /* its pool has mapped segments page by page */
	/* in its pool is also what is no block here: XLA's temporaries and code. What is in no block may be in use */
	bool partly_seen;
};

/* What the processes had on a device at one moment. */
struct model_part {
	uint32_t process;
	uint64_t layer[MODEL_LAYERS];
};
struct model_moment {
	uint64_t ns;
	uint64_t event;               /* for query.until_event; 0 = none */
	uint64_t layer[MODEL_LAYERS]; /* over all traced processes */
	/* as its driver said then; MODEL_UNKNOWN, and total's from the device's record */
	uint64_t free_bytes, total_bytes;
	struct model_part *parts; /* of processes that had something */
	unsigned part_count;
	/* Who has the memory that is in no segment. Of a site that also has segments nothing at the peak. */
	struct model_outside {
		uint32_t process, site;
		uint64_t bytes;
	} *outside;
	unsigned outside_count;
};

#define MODEL_UNKNOWN UINT64_MAX

/* A call of the driver's that failed. */
struct model_refusal {
	uint64_t ns, bytes;
	uint32_t node, node2, hook, status;
};

/* What some pools of one process hold. Private pools are told apart by whether captures shared a segment: there may be
 * fewer. */
struct model_pools {
	uint64_t reserved, allocated, largest_hole;
	uint64_t idle;            /* of segments (mapped pages) without a block */
	unsigned captures, pools; /* of all private ones; else 0 */
};

/* What of a process's pools may serve a request: POOL_LAYOUT_COMMON or the number of a private pool, segments for its
 * size and stream. */
struct pool_request {
	uint32_t pool;
	uint64_t bytes; /* 0 = any */
	bool stream_known;
	uint64_t stream;
};

enum model_outcome { OUTCOME_UNKNOWN = 0, OUTCOME_CAUGHT, OUTCOME_FATAL };
enum { MODEL_REFUSALS = 3 };

/* Memory ran out: of the pool, which had tried up to three calls of the driver's; or such a call by itself. */
struct model_oom {
	uint32_t process, device; /* ids */
	uint32_t thread, node, node2, hook;
	bool pool;                /* the pool gave up; else a call of the driver's outside it */
	uint64_t requested_bytes; /* what the program asked of the pool (rounded by it), or of the driver */
	uint64_t requested_error; /* those are rounded by so many at most */
	uint64_t block_bytes;     /* what the pool then asked of the driver; 0 = nothing */
	/* a cap of the pool's refused: reserved may not grow beyond about this; 0 = none */
	uint64_t limit_bytes;
	uint64_t said_allocated, said_reserved; /* the framework's own figures; MODEL_UNKNOWN */
	struct model_refusal refusals[MODEL_REFUSALS];
	unsigned refusal_count;
	unsigned retries;
	enum model_outcome outcome;
	struct model_moment at;
	uint64_t allocated_bytes, reserved_bytes; /* of that process on that device */
	uint64_t largest_hole_bytes;              /* in its segments */
	bool capturing;                           /* asked of the private pool of a graph that was being captured */
	struct pool_request asked;
	/* the pool that was asked (the common one, or that graph's), without segments of other streams and sizes */
	struct model_pools usable;
	struct model_pools graphs; /* all private pools, with that one */
	/* of segments (mapped pages) without a block: what returning them would give */
	uint64_t whole_free_bytes;
	uint64_t withheld_bytes; /* free, but of a pool of the program's own */
	uint64_t given;          /* the model's */
	/* analyzer/model/pool_layout.h: its segments then; kept for the first ones and the last, else NULL */
	struct pool_layout *layout;
};

/* One device, for all processes that know it by this UUID; without one, of one process. */
struct model_device {
	uint32_t index;
	const struct reader_host *host;
	uint32_t backend;         /* enum mt_backend */
	const char *uuid, *model; /* "" = unknown */
	char name[48];            /* "cuda:0" where all its processes agree, else of the first one's */
	uint64_t total_bytes;     /* 0 = unknown */
	/* by whomever, before a traced process had memory; with a context. MODEL_UNKNOWN */
	uint64_t used_before;
	struct model_totals layer[MODEL_LAYERS]; /* sums, and peaks of the sums over processes */
	struct model_series timeline[MODEL_LAYERS];
	const struct model_share *const *shares;
	unsigned share_count;
	/* The greatest memory, and of moments with the same the one with the most in the pool. */
	struct model_moment peak;
	uint64_t ooms, retries; /* all; of `oom` the first MODEL_OOMS - 1 and the last are kept */
	const struct model_oom *oom;
	unsigned oom_count;
};

enum { MODEL_OOMS = 100, MODEL_LAYOUTS = 4 };

struct model;

unsigned model_devices(const struct model *m);
const struct model_device *model_device(const struct model *m, uint32_t index);
/* "cuda", what names of a backend's (enum mt_backend) devices begin with. */
const char *model_device_prefix(uint32_t backend);
/* The share of a process; NULL if it has none. */
const struct model_share *model_share(const struct model *m, uint32_t device, unsigned process);
/* Those that are kept, of all devices in order of time, from 0 on. */
unsigned model_ooms(const struct model *m);
const struct model_oom *model_oom(const struct model *m, unsigned i);

int model_run(struct model **out, struct reader *r, const struct model_query *q);
void model_free(struct model *m);

/* In the middle of the pass: live bytes of a kind in a process, of a layer on a device; events so far. */
uint64_t model_live(const struct model *m, unsigned id, enum model_kind kind);
uint64_t model_peak(const struct model *m, enum model_kind kind); /* so far, of the host with the greatest */
/* All events of the process that are missing; UINT64_MAX = nobody knows how many. */
uint64_t model_lost(const struct model *m, unsigned id);
/* From when on events may be missing; UINT64_MAX = none is. */
uint64_t model_lost_ns(const struct model *m, unsigned id);
/* When what it frees is freed as it ends: its last second, or the last 20th of a long run. */
uint64_t model_ending_ns(const struct model *m, unsigned id);
/* Were events lost in its ending alone, after the peak of the kind and the last request that was refused? Then what was
 * alive before is exact. */
bool model_lost_late(const struct model *m, unsigned id, enum model_kind kind);
/* How much of what is live of a kind may have been freed by events that were lost. */
uint64_t model_open(const struct model *m, unsigned id, enum model_kind kind);
/* How far live bytes of a kind may have been wrong at any time so far, as events were lost. 0 where none were. */
double model_doubt(const struct model *m, unsigned id, enum model_kind kind);
uint64_t model_device_live(const struct model *m, uint32_t device, enum model_layer layer);
uint64_t model_events(const struct model *m);

const struct model_process *model_process(const struct model *m, unsigned id);
const struct model_host *model_host(const struct model *m, unsigned index);

/* The site of this number; NULL: there is nothing of it. */
const struct model_site *model_site(const struct model *m, unsigned process, uint32_t number);

/* What tells it from others, with figures of 0 if there is nothing of it any more. */
struct model_site model_site_key(const struct model *m, unsigned process, uint32_t number);

/* How much of a site may be due to lost events; zeros for one that the model has no figures of. */
struct model_doubt model_doubt_of(const struct model *m, const struct model_site *site);

/* Its stack and kind, which are known without figures (query.changes_only), too. */
void model_site_stack(const struct model *m, unsigned process, uint32_t number, uint32_t *node, uint32_t *node2,
		      enum model_kind *kind);

/* Over all processes that were asked for. */
struct model_fold model_fold(const struct model *m);

/* Of a site of picked blocks, of whose memory so many bytes are to be looked at: adds what they stand for. Nothing of
 * another one. */
void model_add_picked(const struct model_site *site, const struct process *p, uint64_t bytes, struct estimate *of_bytes,
		      struct estimate *of_blocks);

/* Over all hosts: sums; the peak is that of the host with the greatest. */
struct model_totals model_totals(const struct model *m, enum model_kind kind);
struct model_map_sum model_map_sum(const struct model *m, enum model_map_class class);
uint64_t model_map_given_bytes(const struct model *m);
void model_bins(const struct model *m, struct model_bin bins[MODEL_BINS]);

uint64_t model_timeline_width_ns(const struct model *m);
uint64_t model_from_ns(const struct model *m); /* query.from_ns */
/* The bucket of a moment; after the last one that one, before the first all zero. */
struct model_bucket model_at(const struct model *m, const struct model_series *s, uint64_t ns);
uint64_t model_end_ns(const struct model *m); /* of the pass: the last event, or query.until_ns */

unsigned model_failures(const struct model *m);
const struct model_failure *model_failure(const struct model *m, unsigned i);

/* Files of /dev/shm and their bytes, as they were mapped first. */
struct model_shm_made {
	uint64_t ns; /* of the last of them */
	uint64_t files, bytes;
};

#define MODEL_SHM_POINTS 32

/* A stack that made some (shm_files.h), and how many it had made when. */
struct model_shm_maker {
	uint32_t process; /* id */
	uint32_t node, node2;
	uint32_t each; /* a point is kept after every so many files */
	uint64_t first_ns;
	struct model_shm_made all, points[MODEL_SHM_POINTS];
};
size_t model_shm_makers(const struct model *m, const struct model_shm_maker **list);
/* What it had made by a moment; it may be up to `each` - 1 files more. */
struct model_shm_made model_shm_made_by(const struct model_shm_maker *m, uint64_t ns);

/* One live block. Order is unspecified. */
struct model_block {
	uint64_t addr, size, ns;
	uint64_t bytes;  /* that it stands for: more than `size` where only picked ones were recorded */
	uint32_t site;   /* index in the process's sites; UINT32_MAX if inherited */
	uint32_t thread; /* index of the allocating thread */
	bool inherited;
	enum model_map_class class; /* kind map only */
	uint32_t prot, file;        /* kind map only */
	uint32_t device;            /* index for model_device(); MODEL_NO_DEVICE of host memory */
};

/* Live blocks of one process; of an ended one only with query.keep_blocks. The callback returns 0 to go on. */
int model_each_block(const struct model *m, unsigned process, enum model_kind kind,
		     int (*f)(void *arg, const struct model_block *b), void *arg);

/* The same of segments of pools on the heap, by address: only addr, size and ns are filled in. */
int model_each_segment(const struct model *m, unsigned process, int (*f)(void *arg, const struct model_block *b),
		       void *arg);

#endif
