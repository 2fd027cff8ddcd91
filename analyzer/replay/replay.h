/*
 * What a caching allocator would have done with the requests of a trace: the same calls, in the recorded order, under
 * other settings.
 *
 * First the trace is replayed as it was run. The driver answers what it answered then, so each block must come to lie
 * where it lay. From where one does not (another version, a pluggable allocator, streams that the trace doesn't tell
 * of) nothing is known, and no what-if holds.
 */
#ifndef MT_REPLAY_REPLAY_H
#define MT_REPLAY_REPLAY_H

#include "analyzer/reader/reader.h"
#include "analyzer/replay/cuda_pool.h"
#include "analyzer/replay/framework.h"

/* Times what a request by this stack is for: 0 = it is not made, 1 = as it was. */
typedef double replay_factor(void *arg, const struct process *p, uint32_t node, uint32_t node2);

struct replay_track;

/* One question. */
struct replay_case {
	const char *name;
	bool own;              /* the settings of the run, else those that nobody has set: */
	const char *conf;      /* ... and these words on top, which replay_settings() takes; NULL = none */
	uint64_t device_bytes; /* of another card; 0 = as it was */
	/* the same for each pool of its own, asked with card_arg; NULL = device_bytes */
	uint64_t (*card)(void *arg, const struct replay_track *t);
	void *card_arg;
	bool empty_before_captures; /* the cache goes back before each capture of a CUDA graph */
	replay_factor *factor;      /* of each request, asked with its arg; NULL = as they were */
	void *factor_arg;
};

/* What report tries before it advises a setting, and whatif where none is named; replay_usual_count of them. */
extern const char *const replay_usual[];
extern const size_t replay_usual_count;

/* A request of the program's, from 1. */
struct replay_moment {
	uint64_t request, ns, bytes;
	uint32_t node, node2;
};

struct replay_outcome {
	struct cuda_pool_figures figures;
	/* the first that was granted in the run and not here; request 0 = none. Nothing is replayed behind it */
	struct replay_moment refused;
	struct replay_moment granted; /* the last that was refused in the run and not here */
	uint64_t granted_count;
	uint64_t room;    /* that the pool could have of the device; UINT64_MAX = unknown */
	uint64_t changed; /* requests that the case left out or made larger or smaller */
	/* at the failure that the query names */
	struct {
		bool reached;    /* it is a request of the pool, and all before it were served */
		bool granted;    /* so would it have been */
		uint64_t spare;  /* what the device had left behind it */
		uint64_t cached; /* beside the pool: what empty_cache() would have given back to the driver before */
	} failure;
};

/* One pool: of a process, on a device. */
struct replay_track {
	const struct process *process;
	const struct process_device *device; /* NULL: not listed */
	uint32_t id;                         /* of the device in the process */
	uint64_t requests, refused;          /* of the run; refused ones are among them */
	struct framework framework;
	const char *unmodelled; /* why nothing can be said of this allocator, or NULL */
	/* requests of which only the block's bytes are known: their outcomes lie between two */
	uint64_t unknown_sizes;
	/* of the device's bytes what this pool could not have, when the driver told; most of it */
	uint64_t outside;
	struct replay_moment differs; /* the first whose block lay elsewhere than the replay says; request 0 = none */
	struct cuda_pool_settings settings; /* of the run, as far as is known */
	struct replay_outcome run;
	struct replay_outcome *outcomes;  /* one of each case */
	struct replay_segments *segments; /* private to replay.c: whose they are */
};

struct replay {
	struct replay_track *tracks;
	size_t count;
	size_t room;
	bool folded;       /* events are left out of the trace */
	size_t case_count; /* replayed; fewer than asked for where that is too much work */
};

struct replay_query {
	const struct replay_case *cases;
	size_t case_count;
	const struct process *only; /* one process's pools; NULL = all */
	uint64_t failure_ns;        /* of that process; 0 = none is named */
	bool no_files;              /* outside of the trace none is opened for a version */
	uint64_t most_work;         /* requests times cases: of more only the first case is replayed; 0 = no limit */
	void (*on_progress)(double done, uint64_t events); /* may be NULL */
};

/* Replays every pool of the trace; its reader is used up. Returns 0 or -MT_E*; replay_fini() in each case. */
int replay_run(struct replay *out, struct reader *r, const struct replay_query *q);
void replay_fini(struct replay *r);

/* Another pass, with other cases: the outcomes of the last one are replaced. `first` is a reader of the trace. */
int replay_more(struct replay *out, const struct reader *first, const struct replay_query *q);

/* Would the allocator do the same under both? */
bool replay_same_settings(const struct cuda_pool_settings *a, const struct cuda_pool_settings *b);

/* What the allocator is set to in a case, on a device of so many bytes. */
int replay_case_settings(const struct replay_track *t, const struct replay_case *c, uint64_t device_bytes,
			 struct cuda_pool_settings *out);

/* "expandable_segments:True,max_split_size_mb:128" onto *s. 0, or -MT_EUSAGE with what is wrong. `strict`: what isn't
 * known is an error. */
int replay_settings(struct cuda_pool_settings *s, const char *text, uint64_t device_bytes, bool strict);

#endif
