/*
 * Which memory around a stack pointer may be read.
 *
 * Asking libc for a thread's stack allocates and takes locks, and it knows nothing of coroutine or alternate
 * stacks. So nobody is asked: the page that a thread's stack pointer is on can be read, and each further page is
 * tried once, when the walk first needs it, by a system call that reads 8 bytes there and otherwise does
 * nothing (rt_sigprocmask with an impossible first argument: EFAULT or EINVAL; 0.1 us). The pages proven this
 * way are one unbroken run that contains the stack pointer, [lo, hi). A stack's guard page ends it.
 *
 * The proof lasts while the stack does: a thread can't unmap the stack it runs on. It ends when the stack pointer
 * leaves the run (another stack) and when memory was unmapped anywhere (mt_range_unmapped, called by the hooks).
 *
 * That does not hold for what is read on a guess, as where code without unwind tables has its frame: it may be
 * anybody's memory. libc unmaps that without a hook (a large block in free(), the stack of a thread that has ended), or
 * another thread does at this moment. It is read through a copy that the kernel makes anew for each walk, up to the end
 * of a page at a time (process_vm_readv): a range with a `copy`.
 *
 * A copy costs a microsecond and more, and JIT compilers' frames are nearly all on the thread's own stack, which is
 * there as long as the thread is. That part of it is read where it is which one look has shown to be one piece: every
 * page between the stack pointer and the stack's end can be read. The end of the first thread's stack is known from
 * the kernel (AT_RANDOM), that of another one from its thread pointer, since C libraries put what that points to at the
 * upper end of the stack. Another stack (a coroutine's, of signals) lies elsewhere, or behind a guard page.
 */
#ifndef MT_STACK_RANGE_H
#define MT_STACK_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct mt_range {
	uint64_t lo, hi;
	uint32_t generation;
	uint8_t *copy;  /* MT_RANGE_COPY bytes; NULL: memory is read where it is */
	uint64_t shift; /* from an address in [lo, hi) to where it is read */
	/* with a copy: the thread's own stack, as far as it is known to be one piece; looks that did not show that */
	uint64_t own_lo, own_hi;
	unsigned misses;
};

#define MT_RANGE_COPY 4096u

/* Constructor time: does the system call tell readable from unreadable here? (Not under qemu-user.) */
void mt_range_boot(void);

/* From now on system calls may kill: what is known to be readable stays so, and nothing is added. */
void mt_range_forbid(void);

/* Memory was unmapped or made unreadable: nothing is taken for readable any more. */
void mt_range_unmapped(void);

/* Makes the range the one that contains `sp`. False if it is a new one: what was known in the old is void. */
bool mt_range_enter(struct mt_range *r, uint64_t sp);

/* Slow part of mt_range_has: extends the range upwards to addr, page by page, if it can; or makes another copy. */
bool mt_range_reach(struct mt_range *r, uint64_t addr);

/* A range that is read through copies in this memory; nothing is copied yet. What mt_range_has() finds is there until
 * it is called again. */
void mt_range_copied(struct mt_range *r, uint8_t *copy);

/* Something will be read through the range of copies: if sp is on the thread's own stack, that need not be copied. */
void mt_range_own(struct mt_range *r, uint64_t sp);

/* Whether addr can be read, wherever it lies. */
bool mt_range_probe(uint64_t addr);

/* Whether 8 bytes at addr can be read; may extend the range. */
static inline bool mt_range_has(struct mt_range *r, uint64_t addr)
{
	return (addr >= r->lo && addr <= r->hi - 8) || mt_range_reach(r, addr);
}

/* The word at addr, which mt_range_has() has just found. */
static inline uint64_t mt_range_load(const struct mt_range *r, uint64_t addr)
{
	return *(const volatile uint64_t *)(uintptr_t)(addr + r->shift);
}

#endif
