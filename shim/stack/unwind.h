/* Incremental native unwinder. See unwind.c for how it works. */
#ifndef MT_STACK_UNWIND_H
#define MT_STACK_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/arch/registers.h"

/* Registers of a frame at the instruction pc or, with `called`, as they will be when the call that it has made returns
 * to pc. On x86-64 the return address then lies just below sp, and the saved fp below that. */
struct mt_regs {
	uint64_t pc, sp, fp, lr;
	bool called;
}; /* MT_REGS_HERE(r) takes those of the function it stands in */

/* A thread's state; used by one capture at a time. A signal handler that interrupts a capture of its thread must
 * not start another one with the same state, unless it never returns to it. */
struct mt_unwind;

struct mt_unwind_stats {
	uint64_t captures, joined, frames, missed; /* joined: captures that met the previous one's frames */
};

/* Before the first capture. */
void mt_unwind_boot(void);

#define MT_UNWIND_ALIGN 64

/* Bytes of zeroed memory, aligned to MT_UNWIND_ALIGN, for stacks of up to `depth` frames; little of it is touched by a
 * thread with little to do. */
size_t mt_unwind_bytes(unsigned depth);
void mt_unwind_init(struct mt_unwind *u, unsigned depth);

/* A capture is made in two steps, since memory that the second one needs is on its way when the first one returns. Both
 * are async-signal-safe, take no memory, leave errno alone, use less than 512 bytes of stack.
 *
 * First, the stack of the caller of the frame at `at` (`called`: the stack from `at` on); frames of this library on top
 * are left out. */
void mt_unwind_walk(struct mt_unwind *u, const struct mt_regs *at);

/* Then, what was found, as a node of the call tree: the same one when it is asked for again. *truncated is set if
 * frames are missing: more than `depth`, no way to go on, or no room in the tree. */
uint32_t mt_unwind_node(struct mt_unwind *u, bool *truncated);

/* Another thread will use it: what it knows of the last one's stack is forgotten. */
void mt_unwind_reset(struct mt_unwind *u);

/* Whether the stack from `at` outwards is known to go on beyond the address, without a signal handler's frame before
 * that. No capture; may be called in place of one. */
bool mt_unwind_passes(struct mt_unwind *u, const struct mt_regs *at, uint64_t address);

/* For tests. */
struct mt_unwind_stats mt_unwind_stats(const struct mt_unwind *u);

/* Modules went away (dlclose): what was learnt from them is not used any more. */
void mt_unwind_flush(void);

/* A system call filter is about to be installed: no system calls are made from then on. Stacks that are not known by
 * then end at the page that they are on, and count as truncated. */
void mt_unwind_sandboxed(void);

/* Memory was unmapped or made unreadable (munmap, mremap, mprotect): it may have been next to a stack. */
void mt_unwind_unmapped(void);

#endif
