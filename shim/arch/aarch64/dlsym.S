/*
 * dlsym. RTLD_NEXT and RTLD_DEFAULT are relative to the caller, whom the C library knows by its return address: the real
 * function must be jumped to, with the registers and the stack as they were. Only names that begin like those of a hook table
 * ("cu", "ac", "ha", "hi", "ze", "Ge") are looked at first, or all where libraries that come later must be met (mt_dlsym_waits); for them
 * the wrapper is returned if mt_dlsym_find has one.
 */
#include "shim/arch/jump.h"

.macro if_begins first, second, label
	cmp w2, #\first
	b.ne 9f
	ldrb w3, [x1, #1]
	cmp w3, #\second
	b.eq \label
9:
.endm

FUNCTION(dlsym)
	cbz x1, 2f                 /* the real one shall crash on it */
	ldrb w2, [x1]
	if_begins 'c', 'u', 1f
	if_begins 'a', 'c', 1f
	if_begins 'h', 'a', 1f
	if_begins 'h', 'i', 1f
	if_begins 'z', 'e', 1f
	if_begins 'G', 'e', 1f
	adrp x2, mt_dlsym_waits
	ldrb w2, [x2, :lo12:mt_dlsym_waits]
	cbnz w2, 1f
2:	adrp x16, mt_next_dlsym
	ldr x16, [x16, :lo12:mt_next_dlsym]
	cbz x16, 3f
	JUMP RESULT
1:	mov x2, x30
	save
	CALL mt_dlsym_find
	restore
	cbz RESULT, 2b
4:	mov x0, RESULT
	ret
3:	save
	CALL mt_dlsym_boot
	restore
	cbz RESULT, 4b
	JUMP RESULT
END(dlsym)
