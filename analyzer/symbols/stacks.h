/*
 * Stacks ready to be shown. Nodes of the processes' call trees are merged into one tree: a node of it is (outer
 * node, module, address in the module), so that the same code in several processes, loaded at different addresses,
 * or recorded twice, is one node. Frames are looked up when they are first asked for.
 *
 * Memory: what is asked for, not what the processes recorded.
 */
#ifndef MT_SYMBOLS_STACKS_H
#define MT_SYMBOLS_STACKS_H

#include "analyzer/reader/reader.h"
#include "analyzer/symbols/symbols.h"

enum frame_class { FRAME_PLAIN = 0, FRAME_GLUE, FRAME_START, FRAME_OBJECT, FRAME_ALLOCATOR };

struct stacks;

struct stacks *stacks_new(void);
void stacks_free(struct stacks *);

struct symbols *stacks_symbols(struct stacks *); /* borrowed */

/* What lies at all places of stacks, as symbols_look_ahead() does it: first each node is noted that will be asked for,
 * a stack or one of Python. */
void stacks_prepare(struct stacks *, const struct process *p, uint32_t node);
void stacks_prepare_all(struct stacks *, const struct process *p); /* of the process's own call tree */
void stacks_look_ahead(struct stacks *, symbols_progress *progress);

/* The stack of an event of this process; 0 = none. The frames of node2, the stack in the language above, take the
 * places of the frames of its interpreter (see python_frames.h); that is only done when frames are asked for, as most
 * stacks are never shown. So two ids may be the same stack: stacks_merged() of them is equal. */
uint32_t stacks_of(struct stacks *, const struct process *p, uint32_t node, uint32_t node2);

/* The same of a site of the process, whose number always means these nodes: it is only looked for once. */
uint32_t stacks_of_site(struct stacks *, const struct process *p, uint32_t site, uint32_t node, uint32_t node2);

/* The same stack as an id in the merged tree. */
uint32_t stacks_merged(struct stacks *, uint32_t id);

/* How many ids of the merged tree there are: they are dense. */
uint32_t stacks_count(const struct stacks *);

/* The next one outwards; 0 behind the last. Of an id of the merged tree. */
uint32_t stacks_outer(const struct stacks *, uint32_t id);

/* What `ask` says of the first frame, from the inside, of which it says anything; NULL = of none. It is asked once per
 * frame and the answer kept for all stacks outwards of it, so each memo belongs to one function and one arg. */
enum stack_memo {
	MEMO_BENIGN = 0,
	MEMO_BENIGN_INNER,
	MEMO_BENIGN_PYTHON,
	MEMO_BENIGN_OWN,
	MEMO_BENIGN_ALONE,
	MEMO_AROUND,
	MEMO_AROUND_PYTHON,
	MEMO_INNER,
	MEMO_PYTHON,
	MEMO_NATIVE,
	STACK_MEMOS
};
typedef const void *stack_ask(void *arg, const struct frame *);
enum stack_part {
	PART_NATIVE, /* native frames alone */
	PART_INNER,  /* those further in than the interpreter */
	PART_PYTHON, /* Python's frames alone; nothing where there are none */
	PART_ALONE,  /* native frames of a stack without Python's; nothing where it has some */
};
const void *stacks_ask(struct stacks *, uint32_t id, enum stack_memo memo, enum stack_part part, stack_ask *ask,
		       void *arg);

/* What is inlined at the innermost address of the stack, innermost first, and the function itself. */
size_t stacks_frames(struct stacks *, uint32_t id, const struct frame **frames);

/* Whether a pattern of frame_rules.def matches: TEXT, TEXT* for what begins so, or *TEXT for what contains it. */
bool pattern_matches(const char *pattern, const char *text);

enum frame_class frame_classify(const struct frame *);

/* Walks all frames outwards:  for (struct stack_walk w = { .next = id }; stack_step(stacks, &w); ) ... w.frame ... */
struct stack_walk {
	uint32_t next; /* set this to begin; 0 ends */
	const struct frame *frame;
	enum frame_class class; /* of frame */
	uint32_t id;            /* of the stack whose innermost address frame is of */
	const struct frame *frames;
	size_t index, count; /* of frame in frames */
};
bool stack_step(struct stacks *, struct stack_walk *);

enum stack_flag {
	STACK_ALL_FRAMES = 1, /* plumbing too */
	STACK_NO_NATIVE = 2,
	STACK_NO_PYTHON = 4,
};

/* Whether a walk's frame is to be shown under these flags. */
bool stack_shows(const struct stack_walk *, unsigned flags);

/* Walks the frames that are to be shown. */
bool stack_step_shown(struct stacks *, struct stack_walk *, unsigned flags);

struct frame_list {
	const struct frame **frames; /* to be freed; the frames are borrowed */
	size_t count, room;
};

/* Makes `list` the frames that are to be shown, innermost first; if there is none, the frame of stacks_site(). For data
 * that is to name each stack. Returns 0 or -MT_EMEMORY. */
int stacks_list_shown(struct stacks *, uint32_t id, unsigned flags, struct frame_list *list);

/* The frame that says who wanted the memory, and what else says something: who called that, or whom it called. NULL =
 * none; one of the two is. */
struct stack_site {
	const struct frame *frame, *caller, *callee;
};
struct stack_site stacks_site(struct stacks *, uint32_t id, unsigned flags);

/* The function of a C extension that the innermost line of Python called for it. NULL: none that is the program's own,
 * or not known to be one. */
const struct frame *stacks_extension(struct stacks *, uint32_t id);

/* stacks_site().frame, cheaper. */
const struct frame *stacks_site_frame(struct stacks *, uint32_t id, unsigned flags);

/* Modules of looked-up frames that are no longer there, or are others now: for what a report says about itself. */
struct stack_gaps {
	unsigned missing, replaced, given_up;
	const char *missing_path, *replaced_path, *given_up_path; /* of one of them */
	const char *given_up_why;
};
struct stack_gaps stacks_gaps(const struct stacks *);

#endif
