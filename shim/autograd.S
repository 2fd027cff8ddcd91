/*
 * torch::autograd::Engine::execute (see autograd.h). It takes more arguments than registers hold and returns an object, and
 * its types are not ours to know: all is left where it is, and the real function jumped to.
 */
#define EXECUTE _ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_
	.text
	.globl EXECUTE
#if defined(__x86_64__)
	.type EXECUTE, @function
EXECUTE:
	.cfi_startproc
	endbr64
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	pushq %r8
	.cfi_adjust_cfa_offset 8
	pushq %r9
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call mt_autograd_enter
	movq %rax, %r11
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r9
	.cfi_adjust_cfa_offset -8
	popq %r8
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jmpq *%r11
	.cfi_endproc
	.size EXECUTE, . - EXECUTE
#elif defined(__aarch64__)
	.type EXECUTE, %function
EXECUTE:
	.cfi_startproc
	stp x29, x30, [sp, #-96]!
	.cfi_adjust_cfa_offset 96
	.cfi_offset x29, -96
	.cfi_offset x30, -88
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	bl mt_autograd_enter
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp x29, x30, [sp], #96
	.cfi_restore x29
	.cfi_restore x30
	.cfi_adjust_cfa_offset -96
	br x16
	.cfi_endproc
	.size EXECUTE, . - EXECUTE
#endif
	.section .note.GNU-stack, "", %progbits
