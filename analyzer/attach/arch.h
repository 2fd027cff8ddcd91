/*
 * What attaching has to know of a machine: a thread's registers, and how a call is laid out in it that returns to where
 * the thread was without anybody's help. Such a call looks like that of a signal handler: the frame holds all that the
 * thread had, the function returns to the C library's sigreturn, and the kernel restores it.
 *
 *	struct arch_thread            registers, vector state and signal mask of a stopped thread
 *	arch_save(), arch_restart()   reads them; the number of the system call that is to go on, or -1
 *	arch_goes_on()                whether it waits in that call, and has not got what it waits for
 *	arch_words()                  its registers as words, where pointers are looked for
 *	arch_frame_room()             bytes below the stack pointer for arch_call(), without what is passed
 *	arch_call()                   makes the thread call a function; one step in which the registers change
 *	arch_has_returned()           in a stop before a system call: is it that call's end?
 *	arch_go_back()                from there to where the thread was, as far as it can be done in one step
 *	arch_put_back()               in the stop after that: exactly as it was
 */
#ifndef MT_ATTACH_ARCH_H
#define MT_ATTACH_ARCH_H

#if defined(__x86_64__)
#include "analyzer/attach/arch_x86_64.h"
#else
#include "analyzer/attach/arch_none.h"
#endif

#endif
