/*
 * The registers that our own unwinder (unwind.h) knows. A folder with one has a registers.h with
 *
 *	MT_CFI_REGS               registers by DWARF's numbers, of which MT_CFI_FP, MT_CFI_SP and MT_CFI_RA are the
 *	                          frame pointer, the stack pointer and the return address
 *	MT_ARCH_LINK_REGISTER     whether a call leaves the return address in a register
 *	MT_ARCH_PLT_PUSHED        bytes that a PLT pushes before the loader's resolver and that one's unwind table
 *	                          leaves out
 *	MT_REGS_HERE(regs)        takes the registers of the function it stands in
 *	mt_arch_preserved()       stores those that functions must preserve, but for fp and sp, by their numbers
 *	mt_arch_thread()          the thread pointer
 *	mt_arch_strip()           a return address without its signature
 *	mt_arch_signal_register() where the kernel has put a register, with the stack pointer of the frame that a
 *	                          handler returns to
 *	mt_arch_signal_pc()       ... and where the pc
 *	mt_arch_pc_key()          48 bits from which pc and exact can be told (rules.h)
 *	mt_arch_pc_possible()     can there be code?
 *	mt_arch_saved_ra()        of the common frame: where the return address is, in bytes below the CFA; `saved`: the
 *	                          same of the frame pointer, in words
 *
 * and a code.h for code without unwind tables (rules.c) with
 *
 *	mt_arch_is_sigreturn()    is it what a signal handler returns to?
 *	mt_arch_is_after_call()   does a call end at p? So many bytes before p can be read.
 *	mt_arch_in_init()         are MT_ARCH_INIT_BYTES at p the rest of a module's _init or _fini, whose frame is
 *	                          MT_ARCH_INIT_RULE?
 */
#ifndef MT_ARCH_REGISTERS_H
#define MT_ARCH_REGISTERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#if defined(__x86_64__)
#include "shim/arch/x86_64/registers.h"
#elif defined(__aarch64__)
#include "shim/arch/aarch64/registers.h"
#endif

#endif
