#include <stddef.h>

#include "shim/stack/cfi.h"

/* ---- rows ---- */

struct run {
	struct mt_cfi *c;
	struct mt_dwarf d;
	uint64_t loc, pc;
	uint32_t depth; /* of c->saved */
	bool bad;
};

static void set(struct run *r, uint64_t reg, enum mt_cfi_how how, int64_t n)
{
	if (reg >= MT_CFI_REGS)
		return; /* vector registers: no stack is found through them */
	r->c->row.how[reg] = (uint8_t)how;
	r->c->row.n[reg] = n;
}

static void restore(struct run *r, uint64_t reg)
{
	if (reg < MT_CFI_REGS)
		set(r, reg, r->c->initial.how[reg], r->c->initial.n[reg]);
}

/* An expression operand stays where it is; its address stands for it. */
static int64_t expression(struct run *r)
{
	int64_t at = (int64_t)(uintptr_t)r->d.p;
	uint64_t length = mt_dwarf_uleb(&r->d);

	mt_dwarf_skip(&r->d, length);
	return at;
}

static void set_cfa(struct run *r, uint64_t reg, int64_t n)
{
	r->bad |= reg >= MT_CFI_REGS;
	r->c->row.cfa_is_expr = 0;
	r->c->row.cfa_reg = (uint8_t)reg;
	r->c->row.cfa_n = n;
}

static void run_cfa(struct run *r, uint8_t op)
{
	struct mt_cfi_row *row = &r->c->row;
	int64_t scale = r->c->eh.fde.data_align;
	uint64_t reg;

	switch (op) {
	case 0x0c:
		reg = mt_dwarf_uleb(&r->d);
		set_cfa(r, reg, (int64_t)mt_dwarf_uleb(&r->d));
		break;
	case 0x0d:
		set_cfa(r, mt_dwarf_uleb(&r->d), row->cfa_n);
		break;
	case 0x0e:
		set_cfa(r, row->cfa_reg, (int64_t)mt_dwarf_uleb(&r->d));
		break;
	case 0x0f:
		row->cfa_is_expr = 1;
		row->cfa_n = expression(r);
		break;
	case 0x12:
		reg = mt_dwarf_uleb(&r->d);
		set_cfa(r, reg, mt_dwarf_sleb(&r->d) * scale);
		break;
	case 0x13:
		set_cfa(r, row->cfa_reg, mt_dwarf_sleb(&r->d) * scale);
		break;
	}
}

static void run_register(struct run *r, uint8_t op)
{
	int64_t scale = r->c->eh.fde.data_align;
	uint64_t reg = mt_dwarf_uleb(&r->d);

	switch (op) {
	case 0x05:
		set(r, reg, MT_CFI_AT, (int64_t)mt_dwarf_uleb(&r->d) * scale);
		break;
	case 0x06:
		restore(r, reg);
		break;
	case 0x07:
		set(r, reg, MT_CFI_UNDEFINED, 0);
		break;
	case 0x08:
		set(r, reg, MT_CFI_SAME, 0);
		break;
	case 0x09:
		set(r, reg, MT_CFI_REGISTER, (int64_t)mt_dwarf_uleb(&r->d));
		break;
	case 0x10:
		set(r, reg, MT_CFI_AT_EXPR, expression(r));
		break;
	case 0x11:
		set(r, reg, MT_CFI_AT, mt_dwarf_sleb(&r->d) * scale);
		break;
	case 0x14:
		set(r, reg, MT_CFI_IS, (int64_t)mt_dwarf_uleb(&r->d) * scale);
		break;
	case 0x15:
		set(r, reg, MT_CFI_IS, mt_dwarf_sleb(&r->d) * scale);
		break;
	case 0x16:
		set(r, reg, MT_CFI_IS_EXPR, expression(r));
		break;
	case 0x2f:
		set(r, reg, MT_CFI_AT, -(int64_t)mt_dwarf_uleb(&r->d) * scale);
		break;
	}
}

static void run_state(struct run *r, uint8_t op)
{
	if (op == 0x0a && r->depth < 8)
		r->c->saved[r->depth++] = r->c->row;
	else if (op == 0x0b && r->depth > 0)
		r->c->row = r->c->saved[--r->depth];
	else
		r->bad = true;
}

static void run_extended(struct run *r, uint8_t op)
{
	uint64_t unit = r->c->eh.fde.code_align;

	switch (op) {
	case 0x00:
		break;
	case 0x01:
		r->loc = mt_dwarf_pointer(&r->d, r->c->eh.fde.pc_enc, NULL);
		break;
	case 0x02:
		r->loc += mt_dwarf_uint(&r->d, 1) * unit;
		break;
	case 0x03:
		r->loc += mt_dwarf_uint(&r->d, 2) * unit;
		break;
	case 0x04:
		r->loc += mt_dwarf_uint(&r->d, 4) * unit;
		break;
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x08:
	case 0x09:
	case 0x10:
	case 0x11:
	case 0x14:
	case 0x15:
	case 0x16:
	case 0x2f:
		run_register(r, op);
		break;
	case 0x0a:
	case 0x0b:
		run_state(r, op);
		break;
	case 0x0c:
	case 0x0d:
	case 0x0e:
	case 0x0f:
	case 0x12:
	case 0x13:
		run_cfa(r, op);
		break;
	case 0x2d:
		break; /* aarch64: return address is signed from here on; it is stripped whether or not */
	case 0x2e:
		mt_dwarf_uleb(&r->d);
		break; /* size of the arguments: matters to landing pads only */
	default:
		r->bad = true;
	}
}

/* Up to the end of the instructions or the first that is for a later pc. */
static bool run(struct run *r)
{
	while (r->d.p < r->d.end && r->loc <= r->pc && !r->bad) {
		uint8_t op = *r->d.p++;
		uint8_t low = op & 0x3f;
		switch (op >> 6) {
		case 0:
			run_extended(r, op);
			break;
		case 1:
			r->loc += low * r->c->eh.fde.code_align;
			break;
		case 2:
			set(r, low, MT_CFI_AT, (int64_t)mt_dwarf_uleb(&r->d) * r->c->eh.fde.data_align);
			break;
		case 3:
			restore(r, low);
			break;
		}
	}
	return !r->bad;
}

/* On some machines: before a PLT goes to the loader's _dl_runtime_resolve it pushes two words, of which that one's
 * table knows nothing but the return address in the upper one, so above its CFA, where no function's own can be. The
 * caller's stack begins above both. */
static void count_pushed(struct mt_cfi_row *row)
{
	if (!MT_ARCH_PLT_PUSHED || row->how[MT_CFI_RA] != MT_CFI_AT || row->n[MT_CFI_RA] != 8 || row->cfa_is_expr ||
	    row->cfa_reg != MT_CFI_SP)
		return;
	row->cfa_n += MT_ARCH_PLT_PUSHED;
	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		row->n[i] -= row->how[i] == MT_CFI_AT ? MT_ARCH_PLT_PUSHED : 0;
	if (row->cfa_n == 0) /* popped again */
		row->how[MT_CFI_RA] = MT_CFI_SAME;
}

bool mt_cfi_run(struct mt_cfi *c, uint64_t pc)
{
	struct run r = { .c = c, .d = c->eh.fde.initial, .loc = c->eh.fde.start, .pc = pc };

	__builtin_memset(&c->row, 0, sizeof(c->row));
	c->row.cfa_reg = MT_CFI_SP;
	if (c->eh.fde.ra != MT_CFI_RA || !run(&r))
		return false;
	c->initial = c->row;
	r.d = c->eh.fde.code;
	r.loc = c->eh.fde.start;
	if (!run(&r))
		return false;
	count_pushed(&c->row);
	return true;
}

/* ---- expressions: the operations that compilers and C libraries use in unwind tables ---- */

struct eval {
	struct mt_cfi *c;
	const uint64_t *regs;
	uint64_t pc;
	mt_cfi_load *load;
	void *arg;
	struct mt_dwarf d;
	uint32_t n; /* on the stack; slot 0 is never used, so that an operation on too few finds zeros */
	bool bad;
};

static void push(struct eval *e, uint64_t v)
{
	if (e->n + 1 < sizeof(e->c->stack) / sizeof(e->c->stack[0]))
		e->c->stack[++e->n] = v;
	else
		e->bad = true;
}

static uint64_t pop(struct eval *e)
{
	e->bad |= e->n == 0;
	return e->n ? e->c->stack[e->n--] : 0;
}

static void push_register(struct eval *e, uint64_t reg, int64_t n)
{
	e->bad |= reg >= MT_CFI_REGS;
	if (!e->bad)
		push(e, (reg == MT_CFI_RA && !MT_ARCH_LINK_REGISTER ? e->pc : e->regs[reg]) + (uint64_t)n);
}

static void eval_two(struct eval *e, uint8_t op)
{
	uint64_t b = pop(e), a = pop(e);

	switch (op) {
	case 0x1a:
		push(e, a & b);
		break;
	case 0x1c:
		push(e, a - b);
		break;
	case 0x1e:
		push(e, a * b);
		break;
	case 0x21:
		push(e, a | b);
		break;
	case 0x22:
		push(e, a + b);
		break;
	case 0x24:
		push(e, b < 64 ? a << b : 0);
		break;
	case 0x25:
		push(e, b < 64 ? a >> b : 0);
		break;
	case 0x26:
		push(e, (uint64_t)((int64_t)a >> (b < 64 ? b : 63)));
		break;
	case 0x27:
		push(e, a ^ b);
		break;
	case 0x29:
		push(e, a == b);
		break;
	case 0x2a:
		push(e, (int64_t)a >= (int64_t)b);
		break;
	case 0x2b:
		push(e, (int64_t)a > (int64_t)b);
		break;
	case 0x2c:
		push(e, (int64_t)a <= (int64_t)b);
		break;
	case 0x2d:
		push(e, (int64_t)a < (int64_t)b);
		break;
	case 0x2e:
		push(e, a != b);
		break;
	default:
		e->bad = true;
	}
}

static void eval_other(struct eval *e, uint8_t op)
{
	uint64_t v = 0;

	switch (op) {
	case 0x06:
		v = pop(e);
		e->bad |= !e->load(e->arg, v, &v);
		push(e, v);
		break;
	case 0x08:
		push(e, mt_dwarf_uint(&e->d, 1));
		break;
	case 0x09:
		push(e, (uint64_t)mt_dwarf_sint(&e->d, 1));
		break;
	case 0x0a:
		push(e, mt_dwarf_uint(&e->d, 2));
		break;
	case 0x0b:
		push(e, (uint64_t)mt_dwarf_sint(&e->d, 2));
		break;
	case 0x0c:
		push(e, mt_dwarf_uint(&e->d, 4));
		break;
	case 0x0d:
		push(e, (uint64_t)mt_dwarf_sint(&e->d, 4));
		break;
	case 0x0e:
	case 0x0f:
		push(e, mt_dwarf_uint(&e->d, 8));
		break;
	case 0x10:
		push(e, mt_dwarf_uleb(&e->d));
		break;
	case 0x11:
		push(e, (uint64_t)mt_dwarf_sleb(&e->d));
		break;
	case 0x12:
		v = pop(e);
		push(e, v);
		push(e, v);
		break;
	case 0x13:
		pop(e);
		break;
	case 0x1f:
		push(e, -pop(e));
		break;
	case 0x20:
		push(e, ~pop(e));
		break;
	case 0x23:
		v = pop(e);
		push(e, v + mt_dwarf_uleb(&e->d));
		break;
	case 0x92:
		v = mt_dwarf_uleb(&e->d);
		push_register(e, v, mt_dwarf_sleb(&e->d));
		break;
	case 0x96:
		break;
	default:
		eval_two(e, op);
	}
}

bool mt_cfi_eval(struct mt_cfi *c, int64_t expr, const uint64_t *regs, uint64_t pc, uint64_t first, mt_cfi_load *load,
		 void *arg, uint64_t *result)
{
	struct eval e = { .c = c, .regs = regs, .pc = pc, .load = load, .arg = arg };
	uint64_t length;

	e.d.p = (const uint8_t *)(uintptr_t)expr;
	e.d.end = e.d.p + 10;
	length = mt_dwarf_uleb(&e.d);
	e.d.end = e.d.p + length;
	push(&e, first);
	while (e.d.p < e.d.end && !e.bad) {
		uint8_t op = *e.d.p++;
		if (op >= 0x30 && op < 0x50)
			push(&e, op - 0x30u);
		else if (op >= 0x70 && op < 0x90)
			push_register(&e, op - 0x70u, mt_dwarf_sleb(&e.d));
		else
			eval_other(&e, op);
	}
	*result = pop(&e);
	return !e.bad;
}
