/*
 * What differs from machine to machine. A folder here is a port, and this header its whole surface; docs/PORTING.md
 * says what is in a folder. Each has an arch.h with
 *
 *	MT_ADDRESS_BITS           addresses of user space are below 1 << this
 *	MT_FRAME                  in a hook: what lies at its frame pointer, or NULL where that doesn't tell where the
 *	                          caller's frame ends
 *	MT_ARCH_CLOCK             enum mt_clock: what mt_arch_ticks() reads
 *	mt_arch_clock_is_good()   whether that one may be used
 *	mt_arch_ticks()           a tick, and one that is not read before all that precedes it has been executed;
 *	mt_arch_ticks_ordered()   `shared`: more than one thread records (clock.h)
 *	mt_arch_second()          ticks of about a second, at least half of one
 *	mt_arch_syscall()         a system call, without libc's errno: the result or -errno
 *	mt_arch_under_valgrind()
 *	mt_arch_is_address()      is it the type of a relocation that makes a word the address of its symbol?
 *
 * generic is taken with -DMT_ARCH_GENERIC (make ARCH=generic).
 */
#ifndef MT_ARCH_ARCH_H
#define MT_ARCH_ARCH_H

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"

#if defined(MT_ARCH_GENERIC)
#include "shim/arch/generic/arch.h"
#elif defined(__x86_64__)
#include "shim/arch/x86_64/arch.h"
#elif defined(__aarch64__)
#include "shim/arch/aarch64/arch.h"
#else
#include "shim/arch/generic/arch.h"
#endif

#endif
