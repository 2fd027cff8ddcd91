/* The unwind instructions of .eh_frame: for one pc, where each register of the caller is. */
#ifndef MT_STACK_CFI_H
#define MT_STACK_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/arch/registers.h"
#include "shim/stack/ehframe.h"

enum mt_cfi_how {
	MT_CFI_SAME = 0,  /* still in the register */
	MT_CFI_UNDEFINED, /* lost; of the return address: there is no caller */
	MT_CFI_AT,        /* stored at CFA + n */
	MT_CFI_IS,        /* is CFA + n */
	MT_CFI_REGISTER,  /* in register n */
	MT_CFI_AT_EXPR,   /* stored at the result of the expression at address n */
	MT_CFI_IS_EXPR,   /* is the result of the expression at address n */
};

/* The CFA ("canonical frame address") is the caller's stack pointer at the call: register + n, or an expression. */
struct mt_cfi_row {
	uint8_t cfa_is_expr;
	uint8_t cfa_reg;
	uint8_t how[MT_CFI_REGS];
	int64_t cfa_n;
	int64_t n[MT_CFI_REGS];
};

/* Working memory for one row, with the rows that DW_CFA_remember_state saves: too large for the stack of a hook. */
struct mt_cfi {
	struct mt_cfi_row row, initial, saved[8];
	struct mt_eh_scratch eh; /* eh.fde: the entry */
	uint64_t stack[32];      /* of an expression */
};

/* Works out c->row for `pc`, which c->eh.fde covers. False if the instructions are damaged or unknown. */
bool mt_cfi_run(struct mt_cfi *c, uint64_t pc);

/* Reads 8 bytes at `addr`; false if they can't be read. */
typedef bool mt_cfi_load(void *arg, uint64_t addr, uint64_t *out);

/* Evaluates the expression at address `expr` (its length, then operations) for registers `regs` and `pc`. Its stack
 * begins with `first`. False = it is damaged, unknown, or reads what can't be read. */
bool mt_cfi_eval(struct mt_cfi *c, int64_t expr, const uint64_t *regs, uint64_t pc, uint64_t first, mt_cfi_load *load,
		 void *arg, uint64_t *result);

#endif
