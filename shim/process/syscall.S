/*
 * syscall(2) is wrapped for seccomp, prctl and landlock, and for waits, which go on in exit.c. For others a C wrapper
 * would put its own frame between a raw clone or vfork and its caller, to which the child returns on another stack, or
 * twice: so this one jumps. Where there is no assembly for a machine, syscall is not wrapped and a filter set that way is
 * not noticed.
 */
#include <asm/unistd.h>

#include "shim/arch/jump.h"

#ifndef __NR_landlock_restrict_self
#define __NR_landlock_restrict_self 446 /* Linux 5.13 */
#endif

FUNCTION(syscall)
	unless_first __NR_wait4, 1f
	GO mt_syscall_wait4
1:	unless_first __NR_waitid, 1f
	GO mt_syscall_waitid
1:	save
	unless_first __NR_prctl, 1f
	CALL mt_before_prctl
	.cfi_remember_state
	CALL mt_real_syscall
	restore
	JUMP RESULT
	.cfi_restore_state
1:	unless_first __NR_seccomp, 1f
	CALL mt_before_seccomp
1:	unless_first __NR_landlock_restrict_self, 1f
	CALL mt_before_landlock
1:	CALL mt_real_syscall
	restore
	JUMP RESULT
END(syscall)
