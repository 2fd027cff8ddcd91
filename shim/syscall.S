/*
 * syscall(2) is wrapped for one number, seccomp. A C wrapper would put its own frame between a raw clone or
 * vfork and its caller, to which the child returns on another stack, or twice: so this one jumps. Where there is
 * no assembly for a machine, syscall is not wrapped and a filter set that way is not noticed.
 */
#include <asm/unistd.h>

#include "shim/jump.h"

FUNCTION(syscall)
	save
#if defined(__x86_64__)
	cmpl $__NR_seccomp, %edi
	jne 1f
#elif defined(__aarch64__)
	cmp x0, #__NR_seccomp
	b.ne 1f
#endif
	CALL mt_before_seccomp
1:	CALL mt_real_syscall
	restore
	JUMP RESULT
END(syscall)
