/*
 * Owners: the model's sites, added up by what the user wants to see them by. An owner's members are the stacks it
 * consists of, merged over processes.
 */
#ifndef MT_MODEL_SELECTION_OWNERS_H
#define MT_MODEL_SELECTION_OWNERS_H

#include "analyzer/model/model.h"
#include "analyzer/symbols/categories.h"
#include "analyzer/symbols/stacks.h"
#include "analyzer/util/options.h"

enum owners_measure {
	OWNERS_LIVE,      /* at the end of the model's pass */
	OWNERS_PEAK,      /* at each process's own peak */
	OWNERS_HOST_PEAK, /* at the peak of the sum over processes */
	OWNERS_TEMPORARY, /* blocks that were freed at once; their bytes are not known */
};

/* The label of the owner that this stack belongs to whatever its site is, one string each; NULL = its site's. */
typedef const char *owners_fold(struct stacks *, uint32_t stack);

enum { OWNERS_WITH_MEMBERS = 48 };

struct owners_query {
	enum owners_measure measure;
	enum model_kind kind;
	const struct model_device *device; /* only sites on it; NULL = all */
	enum by by;                        /* BY_UNSET = BY_SITE */
	const char *filter;                /* extended regular expression; NULL = all */
	struct categories *categories;     /* for BY_CATEGORY and owner.category; NULL = they are unknown */
	unsigned flags;                    /* enum stack_flag */
	const bool *processes;             /* by id; NULL = all */
	bool ended_only;                   /* only processes that ended by themselves */
	/* in place of the model's, by process and number; NULL = look at the model's; members point into them */
	const struct model_site *list;
	size_t list_count;
	/* of an owner's stacks only the first is kept, whatever stack_count says, and members of the
	 * OWNERS_WITH_MEMBERS largest */
	bool brief;
	bool arenas; /* what Python maps for its objects becomes two owners: see python_arenas_label() */
	/* stacks for which it says something become one owner; NULL = none. Not with BY_STACK */
	owners_fold *fold;
};

/* Where stacks were sampled, bytes and blocks are estimates, and the other fields their 95 % intervals; exact figures
 * are their own intervals. */
struct owner_sum {
	uint64_t bytes, bytes_low, bytes_high;
	uint64_t blocks, blocks_low, blocks_high;
};

struct owner_stack {
	uint32_t stack;
	uint32_t first; /* less than that of a stack whose first site comes later in the model */
	uint64_t bytes, blocks;
};

struct owner {
	unsigned number; /* in the order of their first sites in the model */
	char *label;     /* what it is grouped by, or NULL: then `frame` says it */
	bool folded;     /* by query.fold */
	/* the same in each result of queries that differ in what they measure alone */
	struct owner_key {
		uint64_t a, b, c;
	} key;
	const struct frame *frame;           /* NULL: no stack is known, or the group is none of code */
	const struct frame *caller, *callee; /* one of them is NULL */
	enum category category;              /* of its largest stack */
	uint64_t bytes, blocks;              /* as in sum */
	bool estimated;                      /* parts of it are */
	struct owner_sum sum;
	unsigned processes;          /* that have a part in it */
	int64_t rank_low, rank_high; /* of these; PROCESS_NO_RANK = none is known */
	struct owner_stack *stacks;  /* the largest first, the others in no order */
	size_t stack_count;
	const struct model_site **members; /* all model sites in it */
	size_t member_count;
};

struct owners {
	struct owner *owners; /* largest first */
	size_t count;
	/* of all owners; where they are estimates and there is no filter, the exact total all the same, unless only
	 * picked blocks were recorded */
	uint64_t bytes, blocks;
	uint64_t bytes_low, bytes_high; /* with 95 % certainty */
	bool estimated;
	bool picked; /* the total is an estimate, too */
};

/* By how much its members' bytes must be multiplied to stand for all blocks: 1 but for a site whose stacks were
 * sampled. */
double owners_weight(const struct reader *r, const struct model_site *site);

/* The name of the thread that allocated, of a model that is split by threads. Allocated. */
char *owners_thread(const struct reader *r, const struct model_site *site);

/* Looks at the files of all stacks that owners_build() is going to ask of, one file after the other; bits are 1 << enum
 * owners_measure. It does so itself, but files are read anew for each measure. */
void owners_look_ahead(const struct model *m, const struct reader *r, struct stacks *stacks, unsigned measures);

/* 0, -MT_EUSAGE (a filter that is no regular expression) or -MT_EMEMORY. Frames are borrowed from `stacks`. */
int owners_build(struct owners **out, const struct model *m, const struct reader *r, struct stacks *stacks,
		 const struct owners_query *q);
void owners_free(struct owners *);

#endif
