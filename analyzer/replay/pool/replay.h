/*
 * Replays the requests of a trace to a framework's caching allocator (cuda_pool.h): the same calls, in the recorded
 * order, under other settings.
 *
 * First the run is replayed under its own settings. The driver answers as it did then, so each block must get the
 * address that it had. Where one does not (an unknown version, a pluggable allocator, streams that the trace doesn't
 * tell of), the model does not fit, and nothing is said of other settings.
 */
#ifndef MT_REPLAY_POOL_REPLAY_H
#define MT_REPLAY_POOL_REPLAY_H

#include "analyzer/reader/reader.h"
#include "analyzer/replay/pool/cuda_pool.h"
#include "analyzer/replay/pool/framework.h"

/* By what the bytes of a request with this stack are multiplied: 1 = as they were, 0 = the request is not made. */
typedef double replay_factor(void *arg, const struct process *p, uint32_t node, uint32_t node2);

struct replay_track;

/* What is changed in one replay. */
struct replay_case {
	const char *name;
	bool own;              /* begin with the settings of the run; else with the framework's defaults */
	const char *conf;      /* settings on top of these, for replay_settings(); NULL = none */
	uint64_t device_bytes; /* size of the device; 0 = as it was */
	/* gives the size for each pool, called with card_arg; NULL = device_bytes */
	uint64_t (*card)(void *arg, const struct replay_track *t);
	void *card_arg;
	bool empty_before_captures; /* the cache goes back to the driver before each capture of a CUDA graph */
	replay_factor *factor;      /* called for each request, with factor_arg; NULL = requests as they were */
	void *factor_arg;
};

/* The settings that report tries before it advises one, and whatif if none is named; replay_usual_count of them. */
extern const char *const replay_usual[];
extern const size_t replay_usual_count;

/* "PYTORCH_CUDA_ALLOC_CONF=", the variable that the allocator for devices of this backend reads settings from. */
const char *replay_variable(uint32_t backend);

/* A request of the program's. */
struct replay_moment {
	uint64_t request, ns, bytes; /* request: its number in the pool, from 1 */
	uint32_t node, node2;
};

struct replay_outcome {
	struct cuda_pool_figures figures;
	/* the first request that was granted in the run and is refused here; request 0 = none. The replay ends there */
	struct replay_moment refused;
	struct replay_moment granted; /* the last request that was refused in the run and is granted here */
	uint64_t granted_count;       /* how many such requests there are */
	uint64_t room;                /* bytes of the device that the pool can have; UINT64_MAX = unknown */
	uint64_t changed;             /* requests that the case left out or whose size it changed */
	/* at the failure that the query names; bytes */
	struct {
		bool reached;    /* the failed request is the pool's, and all before it were granted */
		bool granted;    /* it would have been granted too */
		uint64_t spare;  /* what the device had left after it */
		uint64_t unused; /* ... and the pool, in holes and cache */
		uint64_t cached; /* what empty_cache() would have given back to the driver before it */
	} failure;
};

/* One pool: that of a process on a device. */
struct replay_track {
	const struct process *process;
	const struct process_device *device; /* NULL: not listed */
	uint32_t id;                         /* of the device in the process */
	uint64_t requests, refused;          /* in the run; `requests` includes those that were refused */
	struct framework framework;
	const char *unmodelled; /* why nothing can be said of this allocator, or NULL */
	/* requests of which only the block is known, so that less may have been asked for; by how much at most, in
	 * bytes */
	uint64_t unknown_sizes, most_unknown;
	/* bytes at any one time, as recorded: in blocks, and asked for of these. Also where the replay is another; 0 of
	 * an allocator that is not modelled */
	uint64_t most_used, most_requested;
	uint64_t most_requested_low; /* had each request asked for as little as it can have */
	/* bytes of the device that others had, so that this pool could not, when the driver last told */
	uint64_t outside;
	struct replay_moment differs; /* the first whose block lay elsewhere than in the replay; request 0 = none */
	/* the first request that shows that the program has changed settings itself, and how often it is seen to have
	 * done so; 0 = it has not */
	struct replay_moment switched;
	uint64_t switches;
	/* how many blocks are seen to have been held by another stream when they were freed (record_stream), and the
	 * most bytes of them at any one time. In the cases they are free at once */
	uint64_t held_count, most_held;
	struct cuda_pool_settings settings; /* of the run, as far as they are known */
	struct replay_outcome run;          /* means nothing where the replay is another */
	struct replay_outcome *outcomes;    /* of each case */
	/* of each case, had each request asked for as little as it can have. NULL: all sizes are known */
	const struct replay_outcome *outcomes_low;
	struct replay_segments *segments; /* private to replay.c */
};

struct replay {
	struct replay_track *tracks;
	size_t count;
	size_t room;
	bool folded;                /* folding left events out of the trace */
	bool sizes_unknown;         /* of a request of some pool: each case is replayed twice */
	size_t case_count;          /* how many cases were replayed: see most_work */
	struct replay_events *kept; /* private to replay.c */
};

struct replay_query {
	const struct replay_case *cases;
	size_t case_count;
	const struct process *only; /* one process's pools; NULL = all */
	uint64_t failure_ns;        /* when a request of that process failed; 0 = no failure is named */
	bool no_files;              /* no file outside of the trace is opened to find a version */
	uint64_t most_work;         /* requests times cases; beyond it only the first case is replayed; 0 = no limit */
	void (*on_progress)(double done, uint64_t events); /* may be NULL */
};

/* Replays every pool of the trace; `r` is at its end afterwards. 0 or -MT_E*; replay_fini() in either case. */
int replay_run(struct replay *out, struct reader *r, const struct replay_query *q);
void replay_fini(struct replay *r);

/* Another pass, with other cases, whose outcomes replace those of the last one. `first` is a reader of the trace, which
 * stays where it is. 0 or -MT_E*. */
int replay_more(struct replay *out, const struct reader *first, const struct replay_query *q);

/* Whether the allocator does the same under both. */
bool replay_same_settings(const struct cuda_pool_settings *a, const struct cuda_pool_settings *b);

/* Works out the settings of the allocator in a case, on a device of so many bytes. 0 or -MT_EUSAGE. */
int replay_case_settings(const struct replay_track *t, const struct replay_case *c, uint64_t device_bytes,
			 struct cuda_pool_settings *out);

/* Applies a text like "expandable_segments:True,max_split_size_mb:128" to *s. 0, or -MT_EUSAGE with what is wrong; with
 * `strict` words that are not known are wrong, else they are passed over. */
int replay_settings(struct cuda_pool_settings *s, const char *text, uint64_t device_bytes, bool strict);

#endif
