/*
 * Finds what is there several times. Copies of a model are sets of blocks with the same sizes, in any order. They were
 * made by different calls, or by the same call one after the other, or in several threads. A cast is a copy with twice
 * or half the sizes.
 * Shards have a whole fraction of the sizes of the parameters that were put together from them. The last copy may be
 * incomplete, if a request failed meanwhile.
 *
 * Some blocks have the same sizes for another reason, and are no copies: gradients, optimizer state, activations (the
 * caller leaves them out); equal layers and towers of one model; blocks of other devices and processes; and what grows
 * side by side, turn by turn, as keys and values do: a copy is made of what is there.
 */
#ifndef MT_DIAGNOSIS_COPIES_H
#define MT_DIAGNOSIS_COPIES_H

#include "analyzer/symbols/categories.h"

enum { COPY_OWNERS = 128 };
#define COPY_NO_THREAD UINT32_MAX /* as of a snapshot's block */

struct copy_block {
	uint64_t size;
	uint64_t order; /* of allocation; a list of blocks need not be sorted by it */
	uint32_t space; /* device and process: only blocks of one space are compared */
	uint32_t stack; /* id of the merged tree */
	uint32_t turn;  /* of the program's loop in which it was made; 0 = of none that does work */
	enum category category;
	uint32_t thread; /* that allocated it, in its process; COPY_NO_THREAD = not known */
};

struct copy_owner {
	uint64_t bytes;
	unsigned blocks;
	uint32_t stack;         /* the common part of its blocks' stacks */
	uint32_t largest;       /* the stack of its largest block */
	enum category category; /* of most of it */
	uint64_t unknown_bytes; /* of no category */
	uint32_t thread;        /* that made it; COPY_NO_THREAD = several did, or it is not known */
	bool cut;               /* the copy was being made when it failed */
};

struct copy_set {
	uint32_t space;
	unsigned count;                        /* of owners: the copies */
	struct copy_owner owners[COPY_OWNERS]; /* largest first */
	unsigned stays;                        /* which of the owners is needed: not one of extra_bytes */
	unsigned blocks;                       /* of the same sizes that each copy has at least */
	uint64_t each;                         /* bytes of these */
	bool cast;                             /* some copies have blocks of twice the size */
	/* some have several times the blocks: the whole of shards, a checkpoint with more than the model */
	bool several;
	uint64_t bytes; /* of all of them */
	/* of all but one, which is needed: parameters before a checkpoint, shards before the whole */
	uint64_t extra_bytes;
	uint64_t missing_bytes; /* what the incomplete copy still needed */
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

/* Reorders the blocks. Leaves out blocks of less than `least_block` bytes, and sets whose copies have less than
 * `least_bytes`. 0 or -MT_EMEMORY; copies_fini() either way. */
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

/* If `sizes` is one part repeated: how many blocks the part has; else 0. The part must be long and have different
 * sizes, or have `large` bytes (0 = no part is large). All repetitions are complete, but the last one may not be if
 * `cut`. */
size_t copies_period(const uint64_t *sizes, size_t count, uint64_t large, bool cut);

#endif
