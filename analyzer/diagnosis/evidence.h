/*
 * What the rules of verdicts look at, gathered in one place: plain figures, so that a rule is a pure function of them
 * and is tested without a trace. A figure that nobody measured is EVIDENCE_UNKNOWN, never 0: a rule that needs it says
 * so instead of guessing.
 *
 * Glossary
 *   request   what was asked for and refused; `block` is what the pool then asked the driver for
 *   hole      free bytes inside a segment of the pool that also holds blocks; a wholly free segment is cache, not a
 *             hole
 *   neighbour another process on the same device, traced or not
 *   growth    a group of sites that grow together
 */
#ifndef MT_DIAGNOSIS_EVIDENCE_H
#define MT_DIAGNOSIS_EVIDENCE_H

#include "analyzer/symbols/categories.h"
#include "analyzer/symbols/shown_by.h"
#include "analyzer/timeline/growth.h"
#include "analyzer/diagnosis/growth/outlook.h"
#include "analyzer/diagnosis/growth/shm_growth.h"
#include "analyzer/util/minmax.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVIDENCE_UNKNOWN UINT64_MAX

static inline bool evidence_known(uint64_t figure)
{
	return figure != EVIDENCE_UNKNOWN;
}

static inline uint64_t evidence_or(uint64_t figure, uint64_t otherwise)
{
	return evidence_known(figure) ? figure : otherwise;
}

enum evidence_failure { FAILURE_UNKNOWN = 0, FAILURE_CAUGHT, FAILURE_FATAL };
enum evidence_caller { CALLER_POOL = 0, CALLER_COMM, CALLER_LIBRARY, CALLER_PROGRAM };

/* The failure that is to be explained: of several the last fatal one. */
struct evidence_request {
	bool failed;
	uint32_t pid;
	uint64_t ns;
	uint64_t bytes, block_bytes;
	uint64_t limit_bytes; /* the pool's own cap (memory fraction); UNKNOWN = none */
	uint64_t rise;        /* of live bytes in the rest of the step, as earlier ones went; UNKNOWN */
	/* as it was in them: what doesn't depend on the input is no larger where this step is; 0 = not told */
	uint64_t rise_unscaled;
	/* where they don't tell: what its own work would still have asked for at least, with the request; 0 = not
	 * known */
	uint64_t ahead;
	const char *ahead_for;    /* "the optimizer's state" */
	unsigned failures;        /* reports of the pool (or failed calls without one) */
	unsigned driver_failures; /* refused driver calls that belong to this one */
	enum evidence_caller caller;
	const char *caller_name; /* "NCCL"; NULL = the pool or the program */
	enum evidence_failure outcome;
	uint64_t ran_on_ns; /* how long the process lived afterwards */
};

/* Private pools of CUDA graphs: only what is captured into one uses it, and it is kept until its graphs are gone. */
struct evidence_graphs {
	unsigned captures, pools; /* that hold segments; 0 = unknown */
	uint64_t reserved, allocated;
	uint64_t unused; /* in those that the request could not use */
	bool capturing;  /* the request was made in a capture, so that it could not use the common pool: */
	/* what that had unused; of it wholly free segments, which PyTorch keeps in a capture */
	uint64_t common_unused, common_idle;
};

enum { EVIDENCE_SETTINGS = 8 };

/* What another setting of the pool's would have done with the same requests. */
struct evidence_setting {
	const char *name;  /* "expandable_segments:True" */
	bool fits;         /* the request that failed would have been served; where none did, all would have been */
	uint64_t spare;    /* what the device had left behind it */
	uint64_t reserved; /* at most */
	uint64_t unused;   /* in the pool behind it */
};

/* known: the requests were replayed, and each block came to lie where it lay. */
struct evidence_replay {
	bool known;
	bool sizes_unknown; /* of some only the block's: what they need may be less */
	/* the request was made in a capture: would it fit if the cache went back before that begins? */
	bool emptied_known, emptied_fits;
	uint64_t reserved; /* at most, in the run */
	uint64_t cached;   /* a request beside the pool: what empty_cache() would have given back before */
	struct evidence_setting settings[EVIDENCE_SETTINGS];
	size_t count;
};

struct evidence_pool {
	bool known; /* there is a pool, and its blocks were seen */
	uint64_t reserved, allocated;
	/* unused in segments of the common pool for other streams or sizes than the request's */
	uint64_t apart;
	uint64_t withheld;      /* unused in a pool of the program's own */
	uint64_t largest_hole;  /* that the request could use */
	uint64_t free_segments; /* bytes of wholly free ones: cache that can be returned */
	struct evidence_graphs graphs;
	bool expandable;
	struct evidence_replay replay;
	bool partly_seen;     /* in it is also what is no block here (XLA's temporaries): nobody knows what is unused */
	uint64_t said_unused; /* as the framework says; UNKNOWN */
	bool driver_pool;     /* cudaMallocAsync: the driver keeps what is freed */
};

struct evidence_neighbour {
	uint32_t pid;
	const char *name;      /* NULL = unknown */
	uint64_t bytes;        /* at the failure */
	uint64_t bytes_before; /* when the failing process came; UNKNOWN = not sampled */
	uint64_t pool_unused;  /* of a traced one, else UNKNOWN */
	uint64_t since_ns;
	bool before; /* it was there before the trace */
	bool traced;
	bool worker;      /* the process that failed started it, or who did */
	const char *site; /* the line of a traced one that holds most then; NULL = unknown */
	uint64_t site_bytes;
};

/* Device memory of our own outside the pool. */
struct evidence_part {
	const char *name; /* "context", "NCCL", "cuBLAS" ... */
	uint64_t bytes;
	bool fixed; /* contexts: nothing can be done about it */
};

struct evidence_growth {
	const char *site;      /* "train.py:73 save_activation" */
	const char *extension; /* the function of a C extension that the site's line called for it; NULL = none */
	/* of a library's thread: what would show the line that asked (shown_by.h); NULL = none */
	const char *setting;
	const struct tool *tool; /* which made it (shown_by.h); NULL = the program did */
	/* on a host "the heap", "mapped memory", "the interpreter's arenas" or "pinned memory"; NULL = the heap */
	const char *of;
	enum model_kind kind; /* MODEL_DEVICE: device memory that is no pool's */
	unsigned sites;       /* in the group */
	uint64_t site_bytes;  /* of `bytes`, what `site` made */
	const char *second;   /* which makes most besides `site`; NULL = it is alone */
	uint64_t second_bytes;
	uint32_t pid; /* 0 = there is only one process */
	struct {
		enum growth_kind kind;
		enum growth_certainty certainty;
		unsigned jumps;
	} fit;
	uint64_t bytes; /* grown by */
	double per_step, per_second;
	double blocks_per_step;
	uint64_t block_bytes;                     /* mean */
	double fails_step, fails_low, fails_high; /* fails_step 0 = no forecast; high may be infinite */
	uint64_t fails_ns;
	double fails_in;       /* ... from the end of what was seen on, in times how long that was */
	bool late;             /* it began later than what was seen: */
	double since;          /* in this step, or second; 0 = not known */
	enum outlook outlook;  /* whether it goes on */
	unsigned processes;    /* that it is the sum of; 0 and 1: one */
	bool rate_may_be_none; /* lost events are not what makes it uncertain */
	bool brief;            /* it grew for less than a second, and no steps are known: it has no rate */
	double lasted_s;       /* while it grew */
	bool file_backed;      /* pages that the kernel can drop */
	/* of the interpreter: `site` only happened to need the next one for objects of anybody */
	bool arenas;
	const char *container;  /* what may hold those objects, as findings_container(); NULL = not known */
	bool works;             /* it goes on, and while it grew other memory was freed: else a program may only load */
	enum category category; /* of its largest site */
	unsigned tensors;       /* different stacks of it that keep more */
	bool freed_some;        /* else none of its blocks was ever freed */
	/* it would have grown by so much, but lost events may have made it: then `fit` says none */
	uint64_t unproven;
	bool is_copy;  /* one of the copies while it was made, block by block */
	bool in_files; /* it is files that stay, and no memory of a process */
};

static inline bool evidence_is_steady(const struct evidence_growth *g)
{
	return (g->fit.kind == GROWTH_LINEAR || g->fit.kind == GROWTH_ACCELERATING) &&
	       g->fit.certainty >= CERTAINTY_MEDIUM && !g->file_backed;
}

/* The largest of what lost events may have made; NULL = none. */
static inline const struct evidence_growth *evidence_unproven(const struct evidence_growth *list, size_t count)
{
	const struct evidence_growth *most = NULL;
	for (size_t i = 0; i < count; i++)
		if (list[i].unproven && (!most || list[i].unproven > most->unproven))
			most = &list[i];
	return most;
}

/* A leak, if it matters. Libraries keep a workspace for each stream. */
static inline bool evidence_is_leak(const struct evidence_growth *g)
{
	return evidence_is_steady(g) && !g->is_copy && g->works && g->category != CATEGORY_workspace;
}

/* The largest of what grew in that way; NULL = none. */
static inline const struct evidence_growth *evidence_largest(const struct evidence_growth *list, size_t count,
							     enum outlook how)
{
	const struct evidence_growth *most = NULL;
	for (size_t i = 0; i < count; i++)
		if (list[i].outlook == how && list[i].bytes && (!most || list[i].bytes > most->bytes))
			most = &list[i];
	return most;
}

struct evidence_phase {
	const char *name;
	uint32_t pid;
	uint64_t begin_bytes; /* live when it began; UNKNOWN allowed */
	uint64_t peak_bytes;
	/* of its peak's blocks those that it freed, and what of that the pool still had; 0 = unknown */
	uint64_t freed, in_pool;
	bool failing;     /* the failure (else the peak) is in it */
	unsigned times;   /* it ran; of a line of a loop: very often */
	bool line;        /* a line of the program, not a mark */
	bool after_steps; /* the training loop had run before it began */
	unsigned steps;   /* of its process */
	/* more than half of the steps before it began in lines of this name: the training loop's, not a phase beside it
	 * */
	bool steps_run;
};

struct evidence_copies {
	uint64_t bytes;          /* that each has in common with the others; of a cast the smaller one's */
	bool cast, several;      /* some have twice that; or several times that */
	uint64_t extra_bytes;    /* what dropping all but one would give back */
	uint64_t there, missing; /* of the last one, where it was being made when it failed; else 0 */
	bool used;               /* a model and another: the program may need both */
	unsigned count;
	const char *owners[4]; /* different sites; NULL at the end */
	unsigned times[4];     /* how many of them each made */
	unsigned threads;      /* each of which made one; 0 = they did not, or it is not known */
	unsigned blocks;       /* of these bytes */
};

/* What earlier requests of the process that failed, too, and were caught left behind: blocks of the lines that the last
 * attempt used, from before the failure before it. */
struct evidence_attempts {
	unsigned count; /* of them; 0 = none, or nothing is left */
	uint64_t bytes;
	const char *site; /* that made most of it */
};

/* A site whose blocks lie in segments with holes. */
struct evidence_pin {
	const char *site;
	uint64_t held, pinned; /* bytes of its blocks; unused bytes of the segments they lie in */
};

/* A list with its length; the parts are borrowed. */
#define EVIDENCE_LIST(type) \
	struct { \
		const type *items; \
		size_t count; \
	}

struct evidence_device {
	const char *name; /* "cuda:0" */
	const char *uuid;
	const char *conf;     /* replay_variable() of its backend */
	const char *late;     /* the first of struct process's; NULL = none */
	uint64_t total, free; /* at the failure, else at the peak */
	struct evidence_request request;
	struct evidence_pool pool;
	EVIDENCE_LIST(struct evidence_pin) pins; /* of the request's part of the pool, who pins most first */
	uint64_t own_other;                      /* ours outside the pool */
	uint64_t unmapped;                       /* of it: physical memory that is mapped nowhere */
	EVIDENCE_LIST(struct evidence_part) parts;
	bool neighbours_known; /* somebody sampled the device's processes */
	bool self_listed;      /* the sampler saw our own pid among them */
	EVIDENCE_LIST(struct evidence_neighbour) neighbours;
	bool explained;      /* total and free are known: */
	int64_t unexplained; /* what is neither ours, nor a listed neighbour's, nor free */
	/* another device that the failing process used, the one with most left at its fullest */
	struct {
		const char *name; /* NULL = none, or not known */
		uint64_t total, free;
	} roomiest;
	bool growth_known; /* the run was long enough to say */
	EVIDENCE_LIST(struct evidence_growth) growth;
	/* of the graph for a backward pass: objects of the failing process's heap that are alive; UNKNOWN: the heap or
	 * its functions' names were not recorded */
	uint64_t graph_nodes;
	unsigned steps;
	bool behind_steps; /* it failed when they were over */
	/* live bytes at most in the steps before the one that failed; UNKNOWN: there were few */
	uint64_t most_before;
	/* what steps add at most to what was there: the first ones, and the latest ones, where they need more and
	 * more at one pace; else UNKNOWN */
	uint64_t step_first, step_latest;
	uint64_t step_pace; /* by so much at least each step needs more than the one before it; 0 = not for certain */
	EVIDENCE_LIST(struct evidence_phase) phases;
	bool copies_known;
	EVIDENCE_LIST(struct evidence_copies) copies;
	uint64_t doubt; /* by so much what was alive may be wrong, as events were lost */
	struct evidence_attempts attempts;
	enum category most_for; /* what most of what was alive is for */
	uint64_t most_for_bytes;
	/* nothing is kept for a backward pass: the failing phase runs under no_grad, or what it makes is gone at once
	 * */
	bool no_graph;
	bool never_backward; /* Python code ran, and no backward pass */
	/* the line that holds most, NULL = unknown; each: 0 = of many sizes */
	struct {
		const char *site;
		uint64_t bytes, blocks, each;
	} holder;
};

/* A request of the heap's or for a mapping that was refused, and of which the process died. bytes 0 = there was none.
 * Limits and what the process had of them: UNKNOWN = none, or not recorded. */
struct evidence_refusal {
	uint32_t pid;
	const char *name, *ended; /* "exit 1" */
	const char *site;
	uint64_t bytes;
	uint64_t address_limit, address_used, data_limit, data_used;
};

/* A runtime that manages memory itself, in a process that ended badly. pid 0 = there is none. */
struct evidence_runtime {
	uint32_t pid;
	const char *name, *ended;
	uint64_t bytes;     /* of mappings that it made, at their peaks */
	const char *option; /* of the command line that limits it, or NULL: */
	uint64_t limit;
};

/* Processes that one process starts and nobody ends. count 0 = there are none. */
struct evidence_pile {
	const char *site, *name; /* where they are started, NULL = unknown; what runs in them */
	uint32_t pid;            /* of who starts them */
	unsigned count, batches;
	uint64_t bytes;
};

enum { EVIDENCE_HEAP_SETTINGS = 8 };

/* What malloc would have kept under another setting, or another malloc, of the same calls. */
struct evidence_heap_setting {
	const char *name; /* "MALLOC_ARENA_MAX=2" */
	bool helps;
	bool once;     /* a call, which gives back what is free then */
	uint64_t less; /* resident at the end than in the run */
	double time;   /* in malloc, as a part of the run's */
};

/* The largest keeper's heap; count 0: it was not replayed. What helps most comes first. */
struct evidence_heap {
	struct evidence_heap_setting settings[EVIDENCE_HEAP_SETTINGS];
	size_t count;
};

struct evidence_host {
	bool sampled;           /* somebody sampled the system */
	uint64_t memory, limit; /* of the machine; of the cgroup, UNKNOWN = none */
	uint64_t anon, file;    /* of the cgroup or machine, at the worst moment */
	uint64_t available_min;
	uint64_t swap_start, swap_peak, swap_total;
	uint64_t rss_peak, rss_anon; /* of all traced processes, shared once; anon at the end */
	uint64_t live;               /* what they had allocated lately: heap and anonymous maps */
	uint64_t live_peak;
	/* resident and not live, where blocks once lay: kept by allocators. As of when each was looked at last */
	uint64_t kept;
	/* who keeps most of it, and was not forked, so that its heap can be replayed; 0 = nobody */
	uint32_t keeper;
	struct evidence_heap heap;
	uint64_t kept_then, kept_then_ns; /* the same at the ledger's moment; 0 = there is none */
	uint64_t shm_used, shm_total;
	uint64_t copied;    /* what workers inherited by fork and wrote to, without allocations */
	unsigned oom_kills; /* counted during the run */
	bool limit_killed;  /* ... as the cgroup's limit was hit */
	/* all ended at once, the recorder, too, when the cgroup was nearly full, or wasn't but for ... */
	bool cut_off;
	uint64_t got_since; /* ... what heaps have got since somebody looked */
	bool killed; /* a traced process got SIGKILL or ended without a word, as the kernel's counters say for it */
	bool maybe_killed;     /* ... for one of them, it is not known which */
	uint64_t failed_bytes; /* a host allocation that was refused; 0 = none */
	struct evidence_refusal refusal;
	struct evidence_runtime runtime;
	struct evidence_pile pile;
	struct shm_maker shm;
	uint64_t shm_left; /* more in /dev/shm than before, once all had ended; UNKNOWN */
	double lasted_s;   /* of the longest process that allocated */
	bool growth_known; /* that was long enough to say */
	EVIDENCE_LIST(struct evidence_growth) growth;
	bool copies_known;
	EVIDENCE_LIST(struct evidence_copies) copies;
	uint64_t doubt; /* by so much what was alive may be wrong, as events were lost */
};

struct evidence {
	struct evidence_host host;
	EVIDENCE_LIST(struct evidence_device) devices;
	bool complete; /* nothing was lost while recording */
};

/* Everything unknown, nothing wrong. */
struct evidence evidence_none(void);
struct evidence_device evidence_device_none(void);

struct diagnosis;

/* Fills x->evidence by what x has of the trace. 0 or -MT_E*. */
int evidence_make(struct diagnosis *diagnosis);

#endif
