/*
 * Stacks, ready to be shown. The call trees of all processes are merged into one tree, whose nodes are (outer node,
 * module, address in the module). So the same code is one node, though processes load it at different addresses or
 * record it twice. Frames are looked up when they are first asked for.
 *
 * The id of a stack is a uint32_t. It is that of a node in the merged tree or, with the highest bit, of a pair of a
 * native and a Python stack that have not been merged yet: stacks_merged(). 0 = no stack.
 *
 * Memory: grows with the stacks that are asked for, not with those that were recorded.
 */
#ifndef MT_SYMBOLS_STACKS_H
#define MT_SYMBOLS_STACKS_H

#include "analyzer/reader/reader.h"
#include "analyzer/symbols/module/symbols.h"

/* What a frame is, as frame_rules.def says: who allocates is looked for among plain ones. */
enum frame_class { FRAME_PLAIN = 0, FRAME_GLUE, FRAME_START, FRAME_OBJECT, FRAME_ALLOCATOR };

struct stacks;

struct stacks *stacks_new(void);
void stacks_free(struct stacks *);

struct symbols *stacks_symbols(struct stacks *); /* borrowed */

/* Looks up many places at once, as symbols_look_ahead() does. First call stacks_prepare() for each node, of a native or
 * a Python stack, whose frames will be asked for, then stacks_look_ahead(). */
void stacks_prepare(struct stacks *, const struct process *p, uint32_t node);
void stacks_prepare_all(struct stacks *, const struct process *p); /* all nodes of the process's own call tree */
void stacks_look_ahead(struct stacks *, symbols_progress *progress);

/* The stack of an event of this process; 0 = none. `node` is its native stack, `node2` its Python stack (0 = none),
 * whose frames take the places of the interpreter's frames (see python_frames.h). That is only done when frames are
 * asked for, as most stacks are never shown. So two ids may be the same stack: then stacks_merged() of them is
 * equal. */
uint32_t stacks_of(struct stacks *, const struct process *p, uint32_t node, uint32_t node2);

/* The same for a site of the process: a number that always means the same two nodes, so the result is kept by it. */
uint32_t stacks_of_site(struct stacks *, const struct process *p, uint32_t site, uint32_t node, uint32_t node2);

/* The same stack as an id in the merged tree. */
uint32_t stacks_merged(struct stacks *, uint32_t id);

/* One more than the highest id of the merged tree: all below are in use. */
uint32_t stacks_count(const struct stacks *);

/* The stack without its innermost address: the next node outwards of an id of the merged tree; 0 = there is none. */
uint32_t stacks_outer(const struct stacks *, uint32_t id);

/* stacks_ask() calls `ask` for frames of a stack, from the innermost on, and returns its first answer that isn't NULL.
 * Answers are kept in a memo, by frame and by stack, so that each frame is asked once: each memo belongs to one
 * function `ask` and one `arg`. */
enum stack_memo {
	MEMO_BENIGN = 0,
	MEMO_BENIGN_INNER,
	MEMO_BENIGN_PYTHON,
	MEMO_BENIGN_ALONE,
	MEMO_AROUND,
	MEMO_AROUND_PYTHON,
	MEMO_INNER,
	MEMO_PYTHON,
	MEMO_NATIVE,
	MEMO_RUNTIME,
	MEMO_RUNTIME_PYTHON,
	STACK_MEMOS
};
typedef const void *stack_ask(void *arg, const struct frame *);
enum stack_part {
	PART_NATIVE, /* native frames alone */
	PART_INNER,  /* native frames further in than the interpreter */
	PART_PYTHON, /* Python's frames alone; NULL where there are none */
	PART_ALONE,  /* native frames of a stack without Python's; NULL where it has some */
};
const void *stacks_ask(struct stacks *, uint32_t id, enum stack_memo memo, enum stack_part part, stack_ask *ask,
		       void *arg);

/* The frames at the innermost address of the stack: functions that are inlined there, innermost first, then the
 * function itself. Returns how many; *frames is borrowed. */
size_t stacks_frames(struct stacks *, uint32_t id, const struct frame **frames);

/* Whether `text` matches a pattern of frame_rules.def: TEXT; TEXT*, which it begins with; *TEXT, which it contains. */
bool pattern_matches(const char *pattern, const char *text);

enum frame_class frame_classify(const struct frame *);

/* The variable of a module that is at this run-time address: its name and the module's. NULL = it is in none. */
const struct frame *stacks_data(struct stacks *, const struct process *p, uint64_t address);

/* Walks all frames outwards:  for (struct stack_walk w = { .next = id }; stack_step(stacks, &w); ) ... w.frame ... */
struct stack_walk {
	uint32_t next; /* set this to begin; 0 ends */
	const struct frame *frame;
	enum frame_class class; /* of frame */
	uint32_t id;            /* of the stack at whose innermost address `frame` is */
	const struct frame *frames;
	size_t index, count; /* of frame in frames */
};
bool stack_step(struct stacks *, struct stack_walk *);

enum stack_flag {
	STACK_ALL_FRAMES = 1, /* plumbing too */
	STACK_NO_NATIVE = 2,
	STACK_NO_PYTHON = 4,
};

/* Whether the frame that a walk is at is to be shown under these flags (enum stack_flag). */
bool stack_shows(const struct stack_walk *, unsigned flags);

/* As stack_step(), over the frames that are to be shown. */
bool stack_step_shown(struct stacks *, struct stack_walk *, unsigned flags);

struct frame_list {
	const struct frame **frames; /* to be freed; the frames are borrowed */
	size_t count, room;
};

/* Replaces `list` by the frames that are to be shown, innermost first; if there is none, by the frame of stacks_site().
 * For formats in which each stack needs a name. Returns 0 or -MT_EMEMORY. */
int stacks_list_shown(struct stacks *, uint32_t id, unsigned flags, struct frame_list *list);

/* Who wanted the memory: the frame that says it best, and a frame beside it that says more: the one that called it, or
 * the one that it called. At most one of the two is set; NULL = none. */
struct stack_site {
	const struct frame *frame, *caller, *callee;
};
struct stack_site stacks_site(struct stacks *, uint32_t id, unsigned flags);

/* The function of a C extension of the program's own, which the innermost line of Python called. NULL = there is none,
 * or it is not known to be one. */
const struct frame *stacks_extension(struct stacks *, uint32_t id);

/* stacks_site().frame alone, which is cheaper. */
const struct frame *stacks_site_frame(struct stacks *, uint32_t id, unsigned flags);

/* Modules whose frames have no names, for a remark in reports: files that are missing, were replaced, or could not be
 * read within bounds. How many of each, and the path of one. */
struct stack_gaps {
	unsigned missing, replaced, given_up;
	const char *missing_path, *replaced_path, *given_up_path;
	const char *given_up_why;
};
struct stack_gaps stacks_gaps(const struct stacks *);

#endif
