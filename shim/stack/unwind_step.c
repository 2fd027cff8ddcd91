/*
 * The steps of a walk that are rare: out of signal handlers, out of frames that realigned the stack, through code
 * without unwind tables, and by the full interpreter, which knows all registers.
 *
 * The walk itself knows only sp and fp. When a frame's place depends on another register (the dynamic loader's
 * trampolines keep the CFA in rbx), the full interpreter starts in its own frame, where all registers that functions
 * preserve are known, and goes outwards until it is where the walk is; then one frame further. That takes as many
 * steps as the stack is deep, and happens about as often as a function is called for the first time.
 */
#include "shim/stack/unwind_state.h"

/* ---- full interpreter: all registers, all that DWARF can say ---- */

/* On the stack we are on, or the one the walk has come to through a signal; or beyond a guess. */
static bool load_checked(void *arg, uint64_t addr, uint64_t *out)
{
	struct mt_unwind *u = arg;
	struct mt_range *on = u->ground == &u->guessed ? u->ground : &u->range;

	if (!mt_range_has(on, addr)) {
		on = u->ground;
		if (on != &u->other || !mt_range_has(on, addr))
			return false;
	}
	*out = mt_range_load(on, addr);
	return true;
}

static bool full_register(struct mt_unwind *u, unsigned reg, uint64_t cfa, uint64_t pc)
{
	const struct mt_cfi_row *row = &u->cfi.row;
	int64_t n = row->n[reg];
	uint64_t v = u->regs[reg];

	switch (row->how[reg]) {
	case MT_CFI_AT:
		if (!load_checked(u, cfa + (uint64_t)n, &v))
			return false;
		break;
	case MT_CFI_IS:
		v = cfa + (uint64_t)n;
		break;
	case MT_CFI_REGISTER:
		v = n >= 0 && n < MT_CFI_REGS ? u->regs[n] : 0;
		break;
	case MT_CFI_AT_EXPR:
		if (!mt_cfi_eval(&u->cfi, n, u->regs, pc, cfa, load_checked, u, &v) || !load_checked(u, v, &v))
			return false;
		break;
	case MT_CFI_IS_EXPR:
		if (!mt_cfi_eval(&u->cfi, n, u->regs, pc, cfa, load_checked, u, &v))
			return false;
	}
	u->next[reg] = v;
	return true;
}

/* Out of a signal handler: the kernel left the interrupted registers on the handler's stack, at sp. */
static bool full_signal(struct mt_unwind *u, struct cursor *c)
{
	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		if (!load_checked(u, mt_arch_signal_register(c->sp, i), &u->regs[i]))
			return false;
	if (!load_checked(u, mt_arch_signal_pc(c->sp), &c->pc))
		return false;
	c->sp = u->regs[MT_CFI_SP];
	c->fp = u->regs[MT_CFI_FP];
	c->lr = u->regs[MT_CFI_RA];
	c->exact = true;
	return true;
}

/* u->regs, with pc in c: one frame outwards. */
static bool full_step(struct mt_unwind *u, struct cursor *c)
{
	uint64_t look = c->exact ? c->pc : c->pc - 1, cfa;
	const struct mt_cfi_row *row = &u->cfi.row;

	if (mt_rules_get(&u->cfi, c->pc, c->exact, u->epoch).kind == MT_RULE_SIGNAL)
		return full_signal(u, c);
	if (mt_ehframe_find(&u->cfi.eh, look) != MT_EH_FOUND || !mt_cfi_run(&u->cfi, look))
		return false;
	cfa = u->regs[row->cfa_reg] + (uint64_t)row->cfa_n;
	if (row->cfa_is_expr && !mt_cfi_eval(&u->cfi, row->cfa_n, u->regs, c->pc, 0, load_checked, u, &cfa))
		return false;
	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		if (!full_register(u, i, cfa, c->pc))
			return false;
	if (row->how[MT_CFI_SP] == MT_CFI_SAME)
		u->next[MT_CFI_SP] = cfa;
	__builtin_memcpy(u->regs, u->next, sizeof(u->regs));
	c->pc = mt_arch_strip(u->regs[MT_CFI_RA]);
	c->sp = u->regs[MT_CFI_SP];
	c->fp = u->regs[MT_CFI_FP];
	c->exact = false;
	return row->how[MT_CFI_RA] != MT_CFI_UNDEFINED;
}

/* The registers that a function must preserve, in the function this is inlined into. */
static inline __attribute__((always_inline)) void full_here(uint64_t *regs, struct cursor *c)
{
	struct mt_regs here;

	mt_arch_preserved(regs);
	MT_REGS_HERE(here);
	regs[MT_CFI_FP] = here.fp;
	regs[MT_CFI_SP] = here.sp;
	*c = (struct cursor){ here.pc, here.sp, here.fp, here.lr, true };
}

/* The walk has only sp and fp; other registers are found by going from here to where it is, then one further. The
 * values of registers between here and the hook are our own frames' business, which have tables, too. */
static __attribute__((noinline)) bool full_from_here(struct mt_unwind *u, struct cursor *c)
{
	struct cursor *f = &u->inner;

	full_here(u->regs, f);
	mt_range_enter(&u->range, f->sp); /* can only grow: our own frames adjoin it */
	for (unsigned n = u->depth + 32; f->sp != c->sp || f->pc != c->pc; n--)
		if (!n || !full_step(u, f))
			return false;
	if (!full_step(u, f))
		return false;
	*c = *f;
	return true;
}

/* ---- rare steps ---- */

static inline struct frame *push(struct mt_unwind *u)
{
	return &u->new[u->new_count++];
}

/* Out of a signal handler, onto the stack of the code that it interrupted. */
static enum step step_signal(struct mt_unwind *u, struct cursor *c)
{
	if (!full_signal(u, c))
		return STEP_CUT;
	*push(u) = (struct frame){ .ra = c->pc, .flags = EXACT };
	u->barrier = u->new_count;
	if (u->ground == &u->range && !mt_range_has(u->ground, c->sp)) {
		u->ground = &u->other;
		u->other.hi = 0;
	}
	if (u->ground == &u->other && !mt_range_enter(u->ground, c->sp) && !mt_range_probe(c->sp))
		return STEP_CUT;
	return STEP_JUMP;
}

/* A function that realigned its stack: the CFA is in a cell, the caller's fp at fp. */
static enum step step_cell(struct mt_unwind *u, const struct mt_rule *r, struct cursor *c, struct frame *f)
{
	uint64_t cell = c->fp + (uint64_t)(int64_t)r->cfa, cfa;
	int64_t fp_at;

	if (!load_checked(u, cell, &cfa) || !load_checked(u, c->fp, &f->fp))
		return STEP_CUT;
	fp_at = (int64_t)(c->fp - (cfa + (uint64_t)(int64_t)r->ra)) / 8;
	if (cfa <= c->sp || !load_checked(u, cfa + (uint64_t)(int64_t)r->ra, &f->ra))
		return STEP_CUT;
	*push(u) = (struct frame){ .slot = cell, .ra = cfa, .flags = CELL };
	u->cells++;
	if (fp_at >= 0 || fp_at < INT16_MIN)
		return STEP_CUT;
	f->slot = cfa + (uint64_t)(int64_t)r->ra;
	f->fp_at = (int16_t)fp_at;
	c->sp = cfa;
	return STEP_FRAME;
}

/* From here on nothing is known of the memory that is read. What was found on a second stack is not kept. */
static void enter_guess(struct mt_unwind *u)
{
	if (u->ground == &u->other)
		u->barrier = u->new_count;
	if (u->sure > u->new_count)
		u->sure = u->new_count;
	if (u->ground != &u->guessed)
		mt_range_own(&u->guessed, (uintptr_t)__builtin_frame_address(0));
	u->ground = &u->guessed;
}

/* Code without unwind tables: if it has a frame pointer, fp points to the caller's, and the return address lies
 * above. A frame pointer of 0 marks the outermost frame. musl has neither, and mostly it is main() or a thread's first
 * function that it has called. */
static enum step step_bare(struct mt_unwind *u, struct cursor *c, struct frame *f)
{
	if (MT_ARCH_LINK_REGISTER && c->exact) { /* a stub or a leaf: it has no frame yet */
		*f = (struct frame){ .ra = c->lr, .fp = c->fp };
		u->barrier = u->new_count + 1;
		return STEP_FRAME;
	}
	if (c->fp == 0)
		return STEP_END;
	const bool bare = mt_ehframe_in_bare_libc(c->pc);
	enter_guess(u);
	if (c->fp & 7 || c->fp < c->sp || c->fp - c->sp > 1 << 20 || !load_checked(u, c->fp, &f->fp) ||
	    !load_checked(u, c->fp + 8, &f->ra))
		return bare ? STEP_END : STEP_CUT;
	f->slot = c->fp + 8;
	if (bare && !mt_ehframe_in_module(&u->cfi.eh, f->ra)) /* the register has something else, as argv */
		return STEP_END;
	f->fp_at = -1;
	f->flags = GUESSED;
	c->sp = c->fp + 16;
	return STEP_FRAME;
}

static enum step step_full(struct mt_unwind *u, struct cursor *c)
{
	if (!full_from_here(u, c))
		return STEP_CUT;
	if (!c->pc)
		return STEP_END;
	*push(u) = (struct frame){ .ra = c->pc };
	u->barrier = u->new_count;
	return STEP_JUMP;
}

/* CFA = register + offset, as in walk(), but with numbers that don't fit into a word; or (aarch64) the return address
 * of an interrupted function is still in its register, which nobody can verify later. */
static enum step step_wide(struct mt_unwind *u, const struct mt_rule *r, struct cursor *c, struct frame *f)
{
	uint64_t cfa = (r->kind == MT_RULE_SP ? c->sp : c->fp) + (uint64_t)(int64_t)r->cfa;
	uint64_t cell = cfa + (uint64_t)(int64_t)r->fp;

	if (!r->ra && !c->exact)
		return STEP_END; /* called by nobody, like makecontext's last function */
	if (cfa < c->sp || (cfa == c->sp && !c->exact))
		return STEP_CUT;
	*f = (struct frame){ .slot = cfa + (uint64_t)(int64_t)r->ra, .ra = c->lr, .fp = c->fp };
	if (!r->ra)
		u->barrier = u->new_count + 1;
	else if (!load_checked(u, f->slot, &f->ra))
		return STEP_CUT;
	if (r->fp && !load_checked(u, cell, &f->fp))
		return STEP_CUT;
	f->fp_at = r->fp ? (int16_t)((r->fp - r->ra) / 8) : 0;
	c->sp = cfa;
	return STEP_FRAME;
}

/* What was taken for a return address doesn't lie behind a call in any code: it was no frame. But if a table has led to
 * it, somebody has written it by hand into a new stack (boost.context): there that one begins. */
static enum step drop_last(struct mt_unwind *u)
{
	struct frame *last = u->new_count ? &u->new[u->new_count - 1] : NULL;

	if (!last || last->flags & (EXACT | CELL))
		return STEP_CUT;
	if (!(last->flags & GUESSED) && mt_ehframe_in_module(&u->cfi.eh, u->at.pc))
		return STEP_END;
	u->new_count--;
	return STEP_CUT;
}

enum step mt_unwind_step(struct mt_unwind *u)
{
	struct cursor *c = &u->at;
	struct mt_rule r = u->rule;

	if (r.kind == MT_RULE_BARE && r.cfa == MT_RULE_JIT && mt_ehframe_in_module(&u->cfi.eh, c->pc))
		r = mt_rules_make(&u->cfi, c->pc, c->exact, u->epoch);
	if (r.kind == MT_RULE_END)
		return STEP_END;
	if (r.kind == MT_RULE_NONE)
		return drop_last(u);
	if (u->new_count - u->cells == u->most)
		return STEP_CUT;
	u->found = (struct frame){ 0 };
	switch (r.kind) {
	case MT_RULE_SP:
	case MT_RULE_FP:
		return step_wide(u, &r, c, &u->found);
	case MT_RULE_CELL:
		return step_cell(u, &r, c, &u->found);
	case MT_RULE_SIGNAL:
		return step_signal(u, c);
	case MT_RULE_BARE:
		return step_bare(u, c, &u->found);
	default:
		return step_full(u, c);
	}
}
