/*
 * For functions in assembly that do something and then jump to the real one, which is to find its arguments, its return address and its
 * stack as they were:
 *
 *	FUNCTION(name)
 *	save                  the registers that hold arguments; the stack is aligned for calls
 *	CALL function         ours; its arguments are name's
 *	restore               ... them, and the result of the last call is in RESULT
 *	JUMP RESULT
 *	END(name)
 */
#if defined(__x86_64__)

#define FUNCTION(name) .text; .globl name; .type name, @function; name: .cfi_startproc; endbr64
#define RESULT %r11
#define CALL call
#define JUMP jmp *

.macro save
	.irp register, rdi, rsi, rdx, rcx, r8, r9
	pushq %\register
	.cfi_adjust_cfa_offset 8
	.endr
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
.endm

.macro restore
	movq %rax, RESULT
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp register, r9, r8, rcx, rdx, rsi, rdi
	popq %\register
	.cfi_adjust_cfa_offset -8
	.endr
.endm

#elif defined(__aarch64__)

#define FUNCTION(name) .text; .globl name; .type name, %function; name: .cfi_startproc; hint #34 /* bti c */
#define RESULT x16
#define CALL bl
#define JUMP br

.macro save
	stp x29, x30, [sp, #-96]!
	.cfi_adjust_cfa_offset 96
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
.endm

.macro restore
	mov RESULT, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp x29, x30, [sp], #96
	.cfi_restore x29
	.cfi_restore x30
	.cfi_adjust_cfa_offset -96
.endm

#endif

#define END(name) .cfi_endproc; .size name, . - name

	.section .note.GNU-stack, "", %progbits
