/*
 * syscall(2) is wrapped for one number, seccomp. A C wrapper would put its own frame between a raw clone or
 * vfork and its caller, to which the child returns on another stack, or twice: so this one jumps. Where there is
 * no assembly for a machine, syscall is not wrapped and a filter set that way is not noticed.
 */
#if defined(__x86_64__)
	.text
	.globl syscall
	.type syscall, @function
syscall:
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
	cmpl $317, %edi			/* SYS_seccomp */
	jne 1f
	call mt_before_seccomp
1:	call mt_real_syscall
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
	.size syscall, . - syscall
#elif defined(__aarch64__)
	.text
	.globl syscall
	.type syscall, %function
syscall:
	.cfi_startproc
	stp x29, x30, [sp, #-80]!
	.cfi_adjust_cfa_offset 80
	.cfi_offset x29, -80
	.cfi_offset x30, -72
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	str x6, [sp, #64]
	cmp x0, #277			/* SYS_seccomp */
	b.ne 1f
	bl mt_before_seccomp
1:	bl mt_real_syscall
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldr x6, [sp, #64]
	ldp x29, x30, [sp], #80
	.cfi_restore x29
	.cfi_restore x30
	.cfi_adjust_cfa_offset -80
	br x16
	.cfi_endproc
	.size syscall, . - syscall
#endif
	.section .note.GNU-stack, "", %progbits
