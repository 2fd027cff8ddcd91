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
 */
#ifndef MT_RANGE_H
#define MT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct mt_range {
	uint64_t lo, hi;
	uint32_t generation;
};

/* Constructor time: does the system call tell readable from unreadable here? (Not under qemu-user.) */
void mt_range_boot(void);

/* From now on system calls may kill: what is known to be readable stays so, and nothing is added. */
void mt_range_forbid(void);

/* Memory was unmapped or made unreadable: nothing is taken for readable any more. */
void mt_range_unmapped(void);

/* Makes the range the one that contains `sp`. False if it is a new one: what was known in the old is void. */
bool mt_range_enter(struct mt_range *r, uint64_t sp);

/* Slow part of mt_range_has: extends the range upwards to addr, page by page, if it can. */
bool mt_range_reach(struct mt_range *r, uint64_t addr);

/* How often mt_range_unmapped() was called. */
uint32_t mt_range_generation(void);

/* Whether addr can be read, wherever it lies. */
bool mt_range_probe(uint64_t addr);

/* Whether 8 bytes at addr can be read; may extend the range. */
static inline bool mt_range_has(struct mt_range *r, uint64_t addr)
{
	return (addr >= r->lo && addr <= r->hi - 8) || mt_range_reach(r, addr);
}

#endif
