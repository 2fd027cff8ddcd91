/*
 * dlsym. RTLD_NEXT and RTLD_DEFAULT are relative to the caller, whom the C library knows by its return address: the real
 * function must be jumped to, with the registers and the stack as they were. Only names that begin like those of a hook table
 * ("cu", "ac", "ha") are looked at first; for them the wrapper is returned if mt_dlsym_find has one.
 */

#if defined(__x86_64__)

	.text
	.globl dlsym
	.type dlsym, @function
dlsym:
	.cfi_startproc
	endbr64
	testq %rsi, %rsi           /* the real one shall crash on it */
	jz 2f
	movzbl (%rsi), %eax
	cmpb $'c', %al
	je 4f
	cmpb $'a', %al
	je 5f
	cmpb $'h', %al
	je 8f
2:	movq mt_next_dlsym(%rip), %rax
	testq %rax, %rax
	jz 6f
3:	jmp *%rax
4:	cmpb $'u', 1(%rsi)
	je 1f
	jmp 2b
8:	cmpb $'a', 1(%rsi)
	je 1f
	jmp 2b
5:	cmpb $'c', 1(%rsi)
	jne 2b
1:	movq (%rsp), %rdx
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call mt_dlsym_find
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	testq %rax, %rax
	jz 2b
	ret
6:	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call mt_dlsym_boot
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	testq %rax, %rax
	jnz 3b
	ret
	.cfi_endproc
	.size dlsym, .-dlsym

#elif defined(__aarch64__)

	.text
	.globl dlsym
	.type dlsym, %function
dlsym:
	.cfi_startproc
	hint #34                   /* bti c */
	cbz x1, 2f                 /* the real one shall crash on it */
	ldrb w2, [x1]
	cmp w2, #'c'
	b.eq 4f
	cmp w2, #'a'
	b.eq 5f
	cmp w2, #'h'
	b.eq 8f
2:	adrp x16, mt_next_dlsym
	ldr x16, [x16, :lo12:mt_next_dlsym]
	cbz x16, 6f
3:	br x16
4:	ldrb w2, [x1, #1]
	cmp w2, #'u'
	b.eq 1f
	b 2b
8:	ldrb w2, [x1, #1]
	cmp w2, #'a'
	b.eq 1f
	b 2b
5:	ldrb w2, [x1, #1]
	cmp w2, #'c'
	b.ne 2b
1:	mov x2, x30
	stp x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov x29, sp
	stp x0, x1, [sp, #16]
	bl mt_dlsym_find
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	cbz x16, 2b
	mov x0, x16
	ret
6:	stp x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov x29, sp
	stp x0, x1, [sp, #16]
	bl mt_dlsym_boot
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	cbnz x16, 3b
	mov x0, #0
	ret
	.cfi_endproc
	.size dlsym, .-dlsym

#endif

	.section .note.GNU-stack, "", %progbits
