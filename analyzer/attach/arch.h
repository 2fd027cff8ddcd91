/*
 * What attaching has to know of a machine: a thread's registers, and how a call is laid out in it that returns to where
 * the thread was without anybody's help. Such a call looks like that of a signal handler: the frame holds all that the
 * thread had, the function returns to what a handler returns to, sigreturn, and the kernel restores it.
 *
 *	ARCH_ATTACHES                 whether there is more than empty functions
 *	ARCH_RED_ZONE                 bytes below the stack pointer that a function may use
 *	ARCH_RESTORER                 machine code that calls sigreturn, as the C library or the vdso has it
 *	ARCH_SCANS                    whether memory can be copied and searched for pointers (copy.h)
 *	struct arch_thread            registers, vector state and signal mask of a stopped thread: pc, sp, thread (its
 *	                              control block), mask, call (the system call that goes on or has just ended, or
 *	                              -1), unsafe (why nothing may be called in it, or NULL)
 *	arch_look()                   what is to be known of a thread before it is interrupted
 *	arch_save()                   reads it, in the stop that an interrupt makes
 *	arch_goes_on()                whether it waits in that call, and has not got what it waits for
 *	arch_words()                  its registers as words, where pointers are looked for
 *	arch_frame_room()             bytes below the stack pointer for arch_call(), without what is passed
 *	arch_settle()                 before arch_call(): learns what only going on shows. False: it has gone on
 *	arch_call()                   makes the thread call a function; one step in which the registers change
 *	arch_has_returned()           in a stop before a system call: is it that call's end?
 *	arch_go_back()                from there, or out of the call, to where the thread was, as far as one step can
 *	arch_let_go()                 in the stop after that, or after arch_save(): exactly as it was, and not traced
 */
#ifndef MT_ATTACH_ARCH_H
#define MT_ATTACH_ARCH_H

#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

/* For a call. What a fault raises is seen by the tracer; setuid() of another thread waits for 33, with a lock of the
 * loader. */
static inline void arch_block_signals(pid_t tid, uint64_t mask)
{
	uint64_t blocked = ~0ull;

	for (const int *s = (const int[]){ 4, 5, 7, 8, 11, 33, 0 }; *s; s++)
		blocked &= ~(1ull << (*s - 1));
	blocked |= mask;
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(blocked), &blocked);
}

#if defined(__x86_64__)
#include "analyzer/attach/arch_x86_64.h"
#elif defined(__aarch64__)
#include "analyzer/attach/arch_aarch64.h"
#else
#include "analyzer/attach/arch_none.h"
#endif

#endif
