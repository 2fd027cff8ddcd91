/* See shim/arch/jump.h. */
#define FUNCTION(name) .text; .globl name; .type name, @function; name: .cfi_startproc; endbr64
#define RESULT %r11
#define CALL call
#define JUMP jmp *
#define GO jmp

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

/* Are the first argument, an int, and `number` the same? */
.macro unless_first number, label
	cmpl $\number, %edi
	jne \label
.endm

/* new.S: to where the word of `row` leads; to `first` with the row; behind `save`, row and return address as arguments.
 * */
.macro go
	jmp *mt_new_to + 8 * row(%rip)
.endm

.macro first_go
	movl $row, %eax
	jmp first
.endm

.macro first_arguments
	movl %eax, %edi
	movq 56(%rsp), %rsi
.endm
