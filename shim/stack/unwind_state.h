/* What unwind.c and unwind_step.c share, and nobody else. */
#ifndef MT_STACK_UNWIND_STATE_H
#define MT_STACK_UNWIND_STATE_H

#include "format/format.h"
#include "shim/arch/registers.h"
#include "shim/stack/range.h"
#include "shim/stack/rules.h"
#include "shim/stack/stack.h"
#include "shim/stack/tree.h"
#include "shim/stack/unwind.h"

enum { EXACT = MT_NODE_EXACT, CELL = 2, GUESSED = 4 };

/* A frame of a capture. With CELL it is no frame but a word that one was found through: ra is its content. With GUESSED
 * no table says that the return address is one. */
struct frame {
	uint64_t slot; /* address of the return address */
	uint64_t ra;   /* as stored there */
	uint64_t fp;   /* frame pointer of the caller */
	int16_t fp_at; /* it was loaded from slot + 8 * fp_at; 0: the frame didn't save it */
	uint16_t flags;
	uint32_t node; /* 0: not looked up yet */
};

/* Where a walk is. `exact`: pc is the next instruction rather than a return address. */
struct cursor {
	uint64_t pc, sp, fp, lr;
	bool exact;
};

enum step { STEP_FRAME, STEP_JUMP /* no frame to compare */, STEP_END, STEP_CUT };

#define GUESSES        1024u
#define FEW_GUESSES    16u
#define GUESSED_FRAMES 7u

/* What a walk that began here needed the last time: the sets of its next frames' rules, that of its stack's node. */
struct guess {
	uint16_t rule[GUESSED_FRAMES], memo;
};

#define MEMO_WAYS     4
#define MEMO_SETS_MIN 8u
#define MEMO_SETS_MAX 4096u

/* The cache of stacks: a set is a cache line. It starts small, since untouched pages cost nothing. */
struct memo {
	uint64_t hash;
	uint32_t node, reserved;
};

/* Of all frames from the outermost that was ever found, up to a kept one. */
struct sum {
	uint64_t hash;
	uint32_t frames;
};

/* Frames, and entries, that a thread with short stacks does with: all it touches then is in a page, with its ring. */
#define SMALL      11u
#define SMALL_ROOM (2 * SMALL + 2)

struct mt_unwind {
	uint32_t epoch;
	unsigned depth, most, room; /* frames that are shown, and that one walk goes; entries there is room for */
	uint64_t thread;            /* thread pointer of the last user: rings change hands */
	bool busy;                  /* a capture is being made, or was left by longjmp out of a signal handler */

	struct frame *kept; /* outermost first */
	struct sum *sum;    /* of each kept one */
	unsigned kept_count;
	/* index of the outermost one that is shown; kept_count and more: new ones that are not kept */
	unsigned first;
	unsigned base;         /* what `first` was when nodes were looked up; those of others are not valid */
	uint32_t origin;       /* frames further out than the kept ones, that were found once and dropped */
	unsigned unsure;       /* so many kept ones, the outermost, were found through a guess */
	bool kept_cut;         /* the kept stack's outer end is not its real end: there was no way to go on */
	bool kept_more;        /* ... or there were too many frames */
	uint64_t power;        /* what a frame's part of the hash is multiplied by when `depth` more follow */
	struct mt_range range; /* holds all kept slots and cells but the unsure ones */

	struct frame *new; /* frames of the capture being made that are not kept ones, innermost first */
	unsigned new_count;
	unsigned cells;          /* new entries that are no frames */
	unsigned barrier;        /* new frames below this index are not to be kept */
	unsigned sure;           /* new frames below this index were not found through a guess */
	int join;                /* index of the kept frame that was reached, or -1 */
	bool cut, more;          /* frames are missing; the walk ended because it had `most` */
	uint64_t whole;          /* hash of the stack that was found */
	struct mt_range *ground; /* which of the three ranges the walk is on */

	struct guess *guess; /* by where a walk begins; few at first */
	uint32_t guess_mask;
	struct guess *hint; /* that of the walk that is being made */
	uint32_t memo_mask, memo_turn;
	struct mt_unwind_stats stats;

	struct cursor at, inner; /* the rare kinds of steps work on copies here, to save stack */
	struct frame found;
	struct mt_rule rule;
	struct mt_range other;   /* a second stack: that of the code a signal handler interrupted */
	struct mt_range guessed; /* what is beyond a guess */

	struct frame few_kept[SMALL_ROOM], few_new[SMALL_ROOM];
	struct sum few_sums[SMALL_ROOM];
	struct guess few_guesses[FEW_GUESSES];
	struct mt_tree_frame path[MT_TREE_PATH]; /* on their way to the tree */
	struct memo memo[MEMO_SETS_MAX][MEMO_WAYS] __attribute__((aligned(MT_UNWIND_ALIGN)));
	struct guess guesses[GUESSES];

	struct mt_cfi cfi;
	uint64_t regs[MT_CFI_REGS], next[MT_CFI_REGS]; /* of the full interpreter */
	uint8_t copy[MT_RANGE_COPY];                   /* of `guessed` */
};

_Static_assert(MT_STACK_BEFORE + offsetof(struct mt_unwind, memo) + MEMO_SETS_MIN * sizeof(struct memo[MEMO_WAYS]) <=
		       4096,
	       "what a thread with short stacks touches is in one page");

/* One frame outwards by u->rule, which is not one of the common ones: from u->at to u->at and, with STEP_FRAME,
 * u->found. */
enum step mt_unwind_step(struct mt_unwind *u);

static inline uint64_t load(uint64_t addr)
{
	return *(const volatile uint64_t *)(uintptr_t)addr;
}

/* On a stack that a signal handler's frame led to, nothing is kept. */
static inline bool is_kept_ground(const struct mt_unwind *u)
{
	return u->ground != &u->other;
}

#endif
