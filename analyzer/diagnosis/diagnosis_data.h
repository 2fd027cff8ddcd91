/*
 * What the diagnosis has found so far, for those who find the rest (evidence.c and its parts), and what they ask of it:
 * texts for stacks, memory that it owns, the failure that is explained.
 */
#ifndef MT_DIAGNOSIS_DIAGNOSIS_DATA_H
#define MT_DIAGNOSIS_DIAGNOSIS_DATA_H

#include "analyzer/diagnosis/copies.h"
#include "analyzer/diagnosis/ledger/device_ledger.h"
#include "analyzer/diagnosis/growth/findings.h"
#include "analyzer/diagnosis/ledger/host_memory.h"
#include "analyzer/diagnosis/snapshot.h"
#include "analyzer/diagnosis/top_lines.h"
#include "analyzer/diagnosis/verdicts.h"
#include "analyzer/model/selection/selection.h"
#include "analyzer/symbols/categories.h"
#include "analyzer/timeline/timeline.h"

enum {
	DIAGNOSIS_LARGEST = 5,
	DIAGNOSIS_LATEST = 32,
	DIAGNOSIS_LEAST_COPIED = 1024 /* bytes of a block; smaller ones are not compared */
};

/* One space: the heaps of a host, or a device. */
struct diagnosis_space {
	const char *name; /* "host", "cuda:0" */
	uint32_t device;  /* MODEL_NO_DEVICE: host */
	uint64_t ns;      /* the moment: of its failure, else its peak */
	uint64_t category[CATEGORIES];
	uint64_t bytes; /* all categories together */
	struct snapshot_block largest[DIAGNOSIS_LARGEST];
	unsigned largest_count;
	uint64_t latest[DIAGNOSIS_LATEST]; /* order of allocation of the latest activations, falling */
	unsigned latest_count;
	struct top_line top[TOP_LINES_MOST]; /* the lines that hold most; of a device */
	unsigned holder_count;
	size_t holding_lines; /* all of them */
};

struct diagnosis {
	const struct selection *selection;
	struct timeline *timeline;
	struct host_memory *system; /* NULL: nothing sampled the system */
	bool complete;
	struct diagnosis_space *spaces; /* the host (all hosts together), then the devices by index */
	unsigned space_count;
	struct copies copies;
	struct findings findings; /* what grows, by line */
	struct evidence evidence;
	struct verdicts verdicts;
	struct diagnosis_parts *parts; /* what the above borrows */
};

struct diagnosis_parts {
	void **kept; /* everything that was allocated for it */
	size_t kept_count, kept_room;
	struct snapshot *snapshots;
	struct unfinished *unfinished;
	struct device_ledger **ledgers;
	size_t ledger_count, ledger_room;
};

/* Of a device at one of its moments, those of its failures or its peak: made once, for all who ask. NULL: there is no
 * memory. */
const struct device_ledger *diagnosis_ledger(struct diagnosis *diagnosis, const struct model_device *d,
					     const struct model_moment *at);

/* "train.py:73 save" of a stack; owned by `x`. */
const char *diagnosis_site(struct diagnosis *diagnosis, uint32_t stack);

/* stacks_extension() as text: "fast.c:12 fast_parse". */
const char *diagnosis_extension(struct diagnosis *diagnosis, uint32_t stack);

/* The same for a part of a stack, as "run.py:12 main". */
const char *diagnosis_call(struct diagnosis *diagnosis, uint32_t stack);

/* The stack of a block; 0 = none. */
uint32_t diagnosis_stack(const struct diagnosis *diagnosis, const struct snapshot_block *b);

/* Is the set on that device? MODEL_NO_DEVICE: the host. */
bool diagnosis_copies_on(const struct copy_set *s, uint32_t device);

/* Owned by `x`. NULL when there is no memory. */
const char *diagnosis_own_text(struct diagnosis *diagnosis, char *text);
void *diagnosis_alloc(struct diagnosis *diagnosis, size_t bytes); /* zeros */

/* The failure of the device that is explained: the last fatal one, else the last. NULL = none. */
const struct model_oom *diagnosis_failure(const struct model_device *d);

#endif
