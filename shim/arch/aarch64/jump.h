/* See shim/arch/jump.h. */
#define FUNCTION(name) .text; .globl name; .type name, %function; name: .cfi_startproc; hint #34 /* bti c */
#define RESULT x16
#define CALL bl
#define JUMP br
#define GO b

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

/* Are the first argument, an int, and `number` the same? */
.macro unless_first number, label
	cmp x0, #\number
	b.ne \label
.endm

/* new.S: to where the word of `row` leads; to `first` with the row; behind `save`, row and return address as arguments.
 * */
.macro go
	adrp x16, mt_new_to + 8 * row
	ldr x16, [x16, :lo12:mt_new_to + 8 * row]
	br x16
.endm

.macro first_go
	mov w17, #row
	b first
.endm

.macro first_arguments
	mov w0, w17
	ldr x1, [sp, #8]
.endm
