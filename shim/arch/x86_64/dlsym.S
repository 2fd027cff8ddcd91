/*
 * dlsym. RTLD_NEXT and RTLD_DEFAULT are relative to the caller, whom the C library knows by its return address: the real
 * function must be jumped to, with the registers and the stack as they were. Only names that begin like those of a hook table
 * ("cu", "ac", "ha", "hi", "ze", "Ge") are looked at first, or all where libraries that come later must be met (mt_dlsym_waits); for them
 * the wrapper is returned if mt_dlsym_find has one.
 */
#include "shim/arch/jump.h"

.macro if_begins first, second, label
	cmpb $\first, %al
	jne 9f
	cmpb $\second, 1(%rsi)
	je \label
9:
.endm

FUNCTION(dlsym)
	testq %rsi, %rsi           /* the real one shall crash on it */
	jz 2f
	movzbl (%rsi), %eax
	if_begins 'c', 'u', 1f
	if_begins 'a', 'c', 1f
	if_begins 'h', 'a', 1f
	if_begins 'h', 'i', 1f
	if_begins 'z', 'e', 1f
	if_begins 'G', 'e', 1f
	cmpb $0, mt_dlsym_waits(%rip)
	jne 1f
2:	movq mt_next_dlsym(%rip), %r11
	testq %r11, %r11
	jz 3f
	JUMP RESULT
1:	movq (%rsp), %rdx
	save
	CALL mt_dlsym_find
	restore
	testq RESULT, RESULT
	jz 2b
4:	movq RESULT, %rax
	ret
3:	save
	CALL mt_dlsym_boot
	restore
	testq RESULT, RESULT
	jz 4b
	JUMP RESULT
END(dlsym)
