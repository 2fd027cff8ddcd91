/*
 * Is something there several times? Copies of a model are sets of blocks with the same sizes, in any order, made
 * through different calls, or one after the other through the same one. A cast is a copy at twice or half the size;
 * shards have a whole fraction of the sizes of what was put together from them. The last copy may be cut off by the
 * failure.
 *
 * What has the same sizes for another reason is not meant: gradients, optimizer state, activations (the caller leaves
 * them out); equal layers and towers of one model; other devices and processes.
 */
#ifndef MT_DIAGNOSIS_COPIES_H
#define MT_DIAGNOSIS_COPIES_H

#include "analyzer/symbols/categories.h"

struct copy_block {
	uint64_t size;
	uint64_t order; /* of allocation; blocks may be given in any */
	uint32_t space; /* device and process: only blocks of one space are compared */
	uint32_t stack; /* id of the merged tree */
	enum category category;
};

struct copy_owner {
	uint64_t bytes;
	unsigned blocks;
	uint32_t stack;         /* the common part of its blocks' stacks */
	uint32_t largest;       /* the stack of its largest block */
	enum category category; /* of most of it */
	uint64_t unknown_bytes; /* of no category */
	bool cut;               /* the copy was being made when it failed */
};

enum { COPY_OWNERS = 16 };

struct copy_set {
	uint32_t space;
	unsigned count;                        /* of owners: the copies */
	struct copy_owner owners[COPY_OWNERS]; /* largest first */
	unsigned stays;                        /* which of the owners can't be done without */
	unsigned blocks;                       /* that each has of the same sizes: at least so many, */
	uint64_t each;                         /* with so many bytes, */
	bool cast;                             /* or twice as many, */
	/* or several times as many: shards and the whole, a checkpoint with more than the model */
	bool several;
	uint64_t bytes; /* of all of them */
	/* without the one that stays: parameters rather than a checkpoint, shards rather than the whole */
	uint64_t extra_bytes;
	uint64_t missing_bytes; /* that the one that was cut off still needed */
};

struct copies {
	struct copy_set *sets; /* largest extra_bytes first */
	size_t count;
	uint64_t left_blocks, left_bytes; /* not looked at: too small, or too many */
};

/* What failed: with it a copy may have been begun. */
struct copy_request {
	uint32_t space, stack;
	uint64_t bytes;
};

/* Reorders the blocks. Blocks below `least_block` are left out, and sets whose copies have less than `least_bytes`. */
int copies_find(struct copies *c, struct stacks *s, struct copy_block *blocks, size_t count, uint64_t least_block,
		uint64_t least_bytes, const struct copy_request *requests, size_t request_count);
void copies_fini(struct copies *c);

/* What two have of the same sizes; 0 blocks: they are no copies. */
struct copy_match {
	unsigned blocks, factor;
	uint64_t bytes;
	bool several; /* the other has each size several times */
};

/* Exposed for its tests. `bytes` are those of the smaller one, the other's are `factor` times as many. */
struct copy_match copies_match(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);

/* The length of the part that repeats, if these are repetitions of something varied and long enough, or of `large`
 * bytes (0 = none is large); else 0. They are whole, but for the last one if it was `cut` off. */
size_t copies_period(const uint64_t *sizes, size_t count, uint64_t large, bool cut);

#endif
