/*
 * For functions in assembly that do something and then jump to the real one, which is to find its arguments, its return
 * address and its stack as they were:
 *
 *	FUNCTION(name)
 *	save                  the registers that hold arguments; the stack is aligned for calls
 *	CALL function         ours; its arguments are name's
 *	restore               ... them, and the result of the last call is in RESULT
 *	JUMP RESULT           or GO function, with a name
 *	END(name)
 *
 * A folder's jump.h has these, unless_first (syscall.S), go, first_go and first_arguments (new.S), but for END. dlsym.S
 * is its own altogether.
 */
#ifndef MT_ARCH_JUMP_H
#define MT_ARCH_JUMP_H

#if defined(__x86_64__)
#include "shim/arch/x86_64/jump.h"
#elif defined(__aarch64__)
#include "shim/arch/aarch64/jump.h"
#endif

#endif

#define END(name) .cfi_endproc; .size name, . - name

	.section .note.GNU-stack, "", %progbits
