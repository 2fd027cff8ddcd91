/* Capturing stacks: the interface that hides which unwinder an architecture has. */
#ifndef MT_STACK_STACK_H
#define MT_STACK_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/arch/arch.h"
#include "shim/base/set.h"

struct mt_stack; /* one ring's memory of its previous capture; lives in pages the ring owns */

/* Before the first capture. */
void mt_stack_boot(void);

/* Constructor time, and muted: where it takes a library, that is loaded. */
void mt_stack_load(void);

/* Bytes of one struct mt_stack for the configured depth. */
uint64_t mt_stack_bytes(void);

/* Bytes of a page that may come before what is used first of a struct mt_stack. A thread with short stacks then touches
 * that page alone, as unwind_state.h asserts. */
#define MT_STACK_BEFORE 320

/* Where a hook was called from: the two words at its frame pointer, MT_FRAME (arch.h). With it a walk need not begin in
 * the shim's own functions. */
struct mt_frame {
	uint64_t fp; /* the caller's */
	uint64_t ra;
};
/* Another thread will use it: forgets what it knows of the last one. */
void mt_stack_reset(struct mt_stack *stack);

/* Whether the calling thread's stack goes on beyond the address, and no signal handler's frame lies between: then a
 * function that had its frame there, and was interrupted, is gone. False also if that can't be told. */
bool mt_stack_passes(struct mt_stack *stack, uint64_t address);

/* A capture is two steps, a walk and then the node for it (see unwind.h). Both are async-signal-safe and keep errno.
 *
 * Walks along the caller's stack, without frames of this library; `frame` is the hook's MT_FRAME or NULL. */
void mt_stack_walk(struct mt_stack *stack, const struct mt_frame *frame);

/* The node of the stack that was walked; may be called more than once, best after some other work. `caller` is the
 * hook's return address. Sets *truncated if frames are missing. */
uint32_t mt_stack_node(struct mt_stack *stack, const void *caller, int *truncated);

/* For an unwinder that allocates or maps memory: between the two, what this thread calls is not recorded. The second
 * gets what the first returned. Signals should be blocked. */
struct mt_stack_hush {
	const char *(*hush)(void);
	void (*unhush)(const char *mark);
};
MT_SET(mt_stack_hush);

/* A system call filter is about to be installed. */
void mt_stack_sandboxed(void);

/* Memory was unmapped: it may have been next to a stack. */
void mt_stack_unmapped(void);

struct mt_tables;
void mt_stack_tables(struct mt_tables *t);

#endif
