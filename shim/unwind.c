/*
 * Unwinding a 60-frame stack on every malloc is what makes tracers slow; but from one malloc of a thread to the next
 * only the innermost few frames differ. So the previous capture is kept, and the new one is made as follows.
 *
 * Walk outwards from the hook with the rules of rules.h. The state between two frames is (pc, sp, fp): everything
 * further out follows from it and from the words of the stack that the walk reads. When a frame has the
 * slot (where its return address lies), return address and caller's frame pointer of a kept frame, the state is the one
 * that the previous capture had there; then it only remains to see that the words it read further out are still the
 * same: each kept frame's return address, the saved frame pointer, where that frame saved it, and
 * the cell that holds the CFA of a realigned frame. If they are, the rest of the stack is the kept one. (Comparing return
 * addresses alone is wrong: with an indirect call to f() and then to g() from one call site, both calling a
 * function that uses alloca, the frame pointer can differ while all return addresses are equal.)
 *
 * To find a stack's node, each kept frame has a 64-bit hash of all pcs from the outermost frame to it, so that the
 * hash of a new stack takes a multiplication per new frame. A small cache of the thread maps hashes of whole stacks
 * to nodes; only when it doesn't know one are the new frames looked up in the call tree one by one. Two
 * stacks whose hashes collide would be one: with a million different stacks, 1 chance in 10^7.
 *
 * Frames beyond a signal frame, or one that needed the full interpreter (whose other registers nobody verifies), are
 * not kept. A stack deeper than `depth` keeps its innermost frames; it is then walked anew each time, because which frame
 * is the outermost one shown depends on the innermost.
 */
#include <signal.h>
#include <ucontext.h>

#include "format/format.h"
#include "shim/range.h"
#include "shim/rules.h"
#include "shim/tree.h"
#include "shim/unwind.h"

enum { EXACT = MT_NODE_EXACT, CELL = 2 };

/* A frame of a capture. With CELL it is no frame but a word that one was found through: ra is its content. */
struct frame {
	uint64_t slot;  /* address of the return address */
	uint64_t ra;    /* as stored there */
	uint64_t fp;    /* frame pointer of the caller */
	int16_t fp_at;  /* it was loaded from slot + 8 * fp_at; 0: the frame didn't save it */
	uint16_t flags;
	uint32_t node;  /* 0: not looked up yet */
};

/* Where a walk is. `exact`: pc is the next instruction rather than a return address. */
struct cursor {
	uint64_t pc, sp, fp, lr;
	bool exact;
};

enum step { STEP_FRAME, STEP_JUMP /* no frame to compare */, STEP_END, STEP_CUT };

#define MEMO_WAYS 4
#define MEMO_SETS_MIN 16u
#define MEMO_SETS_MAX 4096u

/* The cache of stacks: a set is a cache line. It starts small, since untouched pages cost nothing. */
struct memo {
	uint64_t hash;
	uint32_t node, reserved;
};

struct mt_unwind {
	uint32_t epoch;
	unsigned depth;
	uint64_t thread;  /* thread pointer of the last user: rings change hands */
	bool busy;        /* a capture is being made, or was left by longjmp out of a signal handler */

	struct frame *kept; /* outermost first */
	uint64_t *hash;     /* of the stack up to each kept frame */
	unsigned kept_count;
	bool kept_cut;      /* the kept stack's outer end is not its real end */
	bool kept_full;     /* ... because it has `depth` frames: it can't be joined */
	struct mt_range range; /* holds all kept slots and cells */

	struct frame *new;  /* frames of the capture being made that are not kept ones, innermost first */
	unsigned new_count;
	unsigned cells;     /* new entries that are no frames */
	unsigned barrier;   /* new frames below this index are not to be kept */
	int join;           /* index of the kept frame that was reached, or -1 */
	bool cut;
	struct cursor at, inner; /* the rare kinds of steps work on copies here, to save stack */
	struct frame found;
	struct mt_rule rule;
	struct mt_range other;   /* a second stack: that of the code a signal handler interrupted */
	struct mt_range *ground; /* which of the two the walk is on */

	uint32_t memo_mask, memo_turn;
	struct mt_unwind_stats stats;
	struct mt_cfi cfi;
	uint64_t regs[MT_CFI_REGS], next[MT_CFI_REGS]; /* of the full interpreter */
	struct memo memo[MEMO_SETS_MAX][MEMO_WAYS] __attribute__((aligned(MT_UNWIND_ALIGN)));
};

static uint32_t epoch;
static uint64_t own_start, own_end; /* code of this library */

static inline uint64_t load(uint64_t addr)
{
	return *(const volatile uint64_t *)(uintptr_t)addr;
}

/* A return address may carry a signature in its upper bits (pointer authentication). */
static inline uint64_t strip(uint64_t ra)
{
#if defined(__aarch64__)
	register uint64_t x30 __asm__("x30") = ra;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri: a no-op where there are no signatures */
	return x30;
#else
	return ra;
#endif
}

static inline uint64_t thread_pointer(void)
{
	uint64_t tp;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(tp));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
#endif
	return tp;
}

/* The compiler may not move stores across this; a signal handler sees them in order. */
static inline void in_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- start ---- */

void mt_unwind_boot(void)
{
#if defined(__PIC__) && !defined(__PIE__)
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	own_start = (uintptr_t)__ehdr_start;
	own_end = (uintptr_t)_end;
#endif
	mt_range_boot();
	mt_ehframe_boot();
}

/* A frame of `depth` may bring a CELL with it. */
static size_t room(unsigned depth)
{
	return 2 * (size_t)depth + 2;
}

size_t mt_unwind_bytes(unsigned depth)
{
	return sizeof(struct mt_unwind) + room(depth) * (2 * sizeof(struct frame) + sizeof(uint64_t));
}

void mt_unwind_init(struct mt_unwind *u, unsigned depth)
{
	u->depth = depth;
	u->kept = (struct frame *)(u + 1);
	u->new = u->kept + room(depth);
	u->hash = (uint64_t *)(u->new + room(depth));
	u->memo_mask = MEMO_SETS_MIN - 1;
	u->epoch = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
}

void mt_unwind_flush(void)
{
	/* release: whoever sees the new epoch also sees what dlclose did */
	__atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
	mt_ehframe_forget();
	mt_rules_wipe();
	mt_range_unmapped();
}

void mt_unwind_sandboxed(void)
{
	mt_range_forbid();
}

void mt_unwind_unmapped(void)
{
	mt_range_unmapped();
}

/* ---- full interpreter: all registers, all that DWARF can say ---- */

/* On the stack we are on, or the one the walk has come to through a signal. */
static bool load_checked(void *arg, uint64_t addr, uint64_t *out)
{
	struct mt_unwind *u = arg;

	if (!mt_range_has(&u->range, addr) && (u->ground != &u->other || !mt_range_has(&u->other, addr)))
		return false;
	*out = load(addr);
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
	case MT_CFI_IS: v = cfa + (uint64_t)n; break;
	case MT_CFI_REGISTER: v = n >= 0 && n < MT_CFI_REGS ? u->regs[n] : 0; break;
	case MT_CFI_AT_EXPR:
		if (!mt_cfi_eval(&u->cfi, n, u->regs, pc, cfa, load_checked, u, &v) ||
		    !load_checked(u, v, &v))
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
#if defined(__x86_64__)
	static const uint8_t place[MT_CFI_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	uint64_t saved = c->sp + offsetof(ucontext_t, uc_mcontext.gregs);

	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		if (!load_checked(u, saved + 8 * place[i], &u->regs[i]))
			return false;
	c->pc = u->regs[MT_CFI_RA];
#elif defined(__aarch64__)
	uint64_t saved = c->sp + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs);

	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		if (!load_checked(u, saved + 8 * i, &u->regs[i]))
			return false;
	if (!load_checked(u, saved + 8 * 32, &c->pc))
		return false;
#endif
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
	if (row->cfa_is_expr &&
	    !mt_cfi_eval(&u->cfi, row->cfa_n, u->regs, c->pc, 0, load_checked, u, &cfa))
		return false;
	for (unsigned i = 0; i < MT_CFI_REGS; i++)
		if (!full_register(u, i, cfa, c->pc))
			return false;
	if (row->how[MT_CFI_SP] == MT_CFI_SAME)
		u->next[MT_CFI_SP] = cfa;
	__builtin_memcpy(u->regs, u->next, sizeof(u->regs));
	c->pc = strip(u->regs[MT_CFI_RA]);
	c->sp = u->regs[MT_CFI_SP];
	c->fp = u->regs[MT_CFI_FP];
	c->exact = false;
	return row->how[MT_CFI_RA] != MT_CFI_UNDEFINED;
}

/* The registers that a function must preserve, in the function this is inlined into. */
static inline __attribute__((always_inline)) void full_here(uint64_t *regs, struct cursor *c)
{
	struct mt_regs here;

#if defined(__x86_64__)
	__asm__ volatile("movq %%rbx, 24(%0)\n\tmovq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\t"
	                 "movq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)" : : "r"(regs) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("stp x19, x20, [%0, #152]\n\tstp x21, x22, [%0, #168]\n\tstp x23, x24, [%0, #184]\n\t"
	                 "stp x25, x26, [%0, #200]\n\tstp x27, x28, [%0, #216]\n\tstr x30, [%0, #240]"
	                 : : "r"(regs) : "memory");
#endif
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

	if (!mt_range_has(u->ground, cell) || !mt_range_has(u->ground, c->fp))
		return STEP_CUT;
	cfa = load(cell);
	fp_at = (int64_t)(c->fp - (cfa + (uint64_t)(int64_t)r->ra)) / 8;
	if (cfa <= c->sp || !mt_range_has(u->ground, cfa + (uint64_t)(int64_t)r->ra))
		return STEP_CUT;
	*push(u) = (struct frame){ .slot = cell, .ra = cfa, .flags = CELL };
	u->cells++;
	if (fp_at >= 0 || fp_at < INT16_MIN)
		return STEP_CUT;
	f->slot = cfa + (uint64_t)(int64_t)r->ra;
	f->ra = load(f->slot);
	f->fp = load(c->fp);
	f->fp_at = (int16_t)fp_at;
	c->sp = cfa;
	return STEP_FRAME;
}

/* Code without unwind tables: if it has a frame pointer, fp points to the caller's, and the return address lies
 * above. A frame pointer of 0 marks the outermost frame. */
static enum step step_bare(struct mt_unwind *u, struct cursor *c, struct frame *f)
{
#if defined(__aarch64__)
	if (c->exact) { /* a stub or a leaf: it has no frame yet */
		*f = (struct frame){ .ra = c->lr, .fp = c->fp };
		u->barrier = u->new_count + 1;
		return STEP_FRAME;
	}
#endif
	if (c->fp == 0)
		return STEP_END;
	if (c->fp & 7 || c->fp < c->sp || c->fp - c->sp > 1 << 20 || !mt_range_has(u->ground, c->fp) ||
	    !mt_range_has(u->ground, c->fp + 8))
		return STEP_CUT;
	f->slot = c->fp + 8;
	f->ra = load(f->slot);
	f->fp = load(c->fp);
	f->fp_at = -1;
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

/* CFA = register + offset, as in walk(), but with numbers that don't fit into a word; or (aarch64) the return address of
 * an interrupted function is still in its register, which nobody can verify later. */
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

/* What was taken for a return address doesn't lie behind a call in any code: it was no frame. */
static enum step drop_last(struct mt_unwind *u)
{
	if (u->new_count && !(u->new[u->new_count - 1].flags & (EXACT | CELL)))
		u->new_count--;
	return STEP_CUT;
}

/* All but the most common rules: u->rule, from u->at to u->at and u->found. */
static __attribute__((noinline)) enum step step_rare(struct mt_unwind *u)
{
	struct cursor *c = &u->at;
	struct mt_rule r = u->rule;

	if (r.kind == MT_RULE_BARE && r.cfa == MT_RULE_JIT && mt_ehframe_in_module(&u->cfi.eh, c->pc))
		r = mt_rules_make(&u->cfi, c->pc, c->exact, u->epoch);
	if (r.kind == MT_RULE_END)
		return STEP_END;
	if (r.kind == MT_RULE_NONE)
		return drop_last(u);
	if (u->new_count - u->cells == u->depth)
		return STEP_CUT;
	u->found = (struct frame){ 0 };
	switch (r.kind) {
	case MT_RULE_SP: case MT_RULE_FP: return step_wide(u, &r, c, &u->found);
	case MT_RULE_CELL: return step_cell(u, &r, c, &u->found);
	case MT_RULE_SIGNAL: return step_signal(u, c);
	case MT_RULE_BARE: return step_bare(u, c, &u->found);
	default: return step_full(u, c);
	}
}

/* ---- walk ---- */

/* The kept frame with index `top` was reached: do the words that its outer frames were found through still say the
 * same? If not, returns the index of the first that doesn't, else `top`. All of them lie in u->range. */
static inline int still_there(const struct mt_unwind *u, int top)
{
	int i;

	for (i = 0; i < top; i++) {
		const struct frame *f = &u->kept[i];
		if (load(f->slot) != f->ra || load(f->slot + (uint64_t)(f->fp_at * 8)) != (f->fp_at ? f->fp : f->ra))
			break;
	}
	return i;
}

/* Is f a kept frame, and everything outside of it as it was? *candidate: the innermost kept frame that can be it. */
static inline bool joins(struct mt_unwind *u, const struct frame *f, int *candidate)
{
	int j = *candidate, good;
	struct frame *k;

	while (j >= 0 && u->kept[j].slot < f->slot)
		j--;
	*candidate = j;
	if (j < 0)
		return false;
	k = &u->kept[j];
	if (k->slot != f->slot || k->ra != f->ra || k->fp != f->fp)
		return false;
	good = still_there(u, j);
	if (good < j) {
		*candidate = good - 1;
		return false;
	}
	k->fp_at = f->fp_at; /* another function may have saved the same frame pointer elsewhere */
	u->join = j;
	return true;
}

/* The common rule, CFA = register + offset. False if the stack can't be so. */
static inline __attribute__((always_inline)) bool step(struct mt_unwind *u, uint64_t word, struct cursor *c, struct frame *f)
{
	uint64_t cfa = (mt_rules_kind(word) == MT_RULE_SP ? c->sp : c->fp) + mt_rules_cfa(word);
	uint32_t saved = mt_rules_saved(word);

	f->slot = cfa - mt_rules_ra(word);
	f->fp = c->fp;
	f->fp_at = 0;
	f->flags = 0;
	f->node = 0;
	if (cfa <= c->sp || !mt_range_has(u->ground, f->slot))
		return false;
	if (saved) {
		if (!mt_range_has(u->ground, cfa - 8 * saved))
			return false;
		f->fp = load(cfa - 8 * saved);
		f->fp_at = (int16_t)((int32_t)(mt_rules_ra(word) / 8) - (int32_t)saved);
	}
	f->ra = load(f->slot);
	c->sp = cfa;
	return true;
}

/* From `at` outwards until a kept frame, the end, or `depth` frames. */
static __attribute__((noinline)) void walk(struct mt_unwind *u, const struct mt_regs *at, bool may_join)
{
	struct cursor c = { at->pc, at->sp, at->fp, at->lr, true };
	int candidate = may_join ? (int)u->kept_count - 1 : -1;
	struct frame f;
	enum step s;

	u->new_count = u->cells = u->barrier = 0;
	u->join = -1;
	u->cut = false;
	u->ground = &u->range;
	for (;;) {
		uint64_t word = mt_rules_find(c.pc, c.exact, u->epoch);
		if (mt_rules_kind(word) - MT_RULE_SP <= MT_RULE_FP - MT_RULE_SP) {
			s = u->new_count - u->cells < u->depth && step(u, word, &c, &f) ? STEP_FRAME : STEP_CUT;
		} else {
			u->at = c;
			u->rule = word ? mt_rules_unpack(word) : mt_rules_make(&u->cfi, c.pc, c.exact, u->epoch);
			s = step_rare(u);
			c = u->at;
			f = u->found;
			if (s == STEP_JUMP) {
				candidate = may_join && u->ground == &u->range ? (int)u->kept_count - 1 : -1;
				continue;
			}
		}
		u->cut = s == STEP_CUT;
		if (s != STEP_FRAME || !f.ra)
			return;
		c.pc = strip(f.ra);
		c.fp = f.fp;
		c.exact = false;
		if (u->new_count == 0 && c.pc - own_start < own_end - own_start)
			continue;
		if (joins(u, &f, &candidate))
			return;
		u->new[u->new_count++] = f;
	}
}

/* ---- from frames to a node ---- */

static inline uint64_t mix(uint64_t h, const struct frame *f)
{
	h = (h ^ strip(f->ra) ^ (uint64_t)(f->flags & EXACT) << 63) * 0x9E3779B97F4A7C15ull;
	return h ^ h >> 29;
}

/* Hash of the whole stack. New frames become kept ones, unless the walk says otherwise. */
static uint64_t absorb(struct mt_unwind *u)
{
	unsigned n = (unsigned)(u->join + 1), first = u->ground == &u->range ? u->barrier : u->new_count;
	uint64_t h = n ? u->hash[n - 1] : ((uint64_t)u->epoch + 1) * 0xD6E8FEB86659FD93ull;

	u->kept_cut = u->cut || (n && u->kept_cut);
	for (unsigned i = u->new_count; i-- > 0;) {
		const struct frame *f = &u->new[i];
		if (!(f->flags & CELL))
			h = mix(h, f);
		if (i >= first) {
			u->kept[n] = *f;
			u->hash[n++] = h;
		}
	}
	u->kept_count = n;
	return h;
}

static inline struct memo *memo_set(struct mt_unwind *u, uint64_t h)
{
	return u->memo[h >> 40 & u->memo_mask];
}

/* Random replacement: a loop over more stacks than there is room for would make any order miss always. */
static void memo_put(struct mt_unwind *u, uint64_t h, uint32_t node)
{
	unsigned way = MEMO_WAYS;
	struct memo *set;

	u->stats.missed++;
	u->memo_turn = u->memo_turn * 1664525 + 1013904223;
	if (u->memo_mask < MEMO_SETS_MAX - 1 && u->stats.missed > 2 * (u->memo_mask + 1))
		u->memo_mask = u->memo_mask * 2 + 1;
	set = memo_set(u, h);
	for (unsigned i = 0; i < MEMO_WAYS && way == MEMO_WAYS; i++)
		way = set[i].node ? MEMO_WAYS : i;
	set += way < MEMO_WAYS ? way : u->memo_turn >> 30;
	/* never a hash with another one's node, even if we are left in the middle */
	set->node = 0;
	in_order();
	set->hash = h;
	in_order();
	set->node = node;
}

/* Looks frames up in the tree, from the outermost that has no node yet. */
static __attribute__((noinline)) uint32_t resolve(struct mt_unwind *u, uint64_t h)
{
	unsigned kept = u->kept_count, from = kept, unkept = u->ground == &u->range ? u->barrier : u->new_count;
	uint32_t node = 0, child;
	struct frame *f;

	while (from > 0 && !u->kept[from - 1].node)
		from--;
	if (from > 0)
		node = u->kept[from - 1].node;
	for (unsigned i = from; i < kept + unkept; i++) {
		f = i < kept ? &u->kept[i] : &u->new[unkept - 1 - (i - kept)];
		if (!(f->flags & CELL)) {
			child = mt_tree_child(node, strip(f->ra), f->flags & EXACT);
			if (child == MT_NODE_FAILED) {
				u->cut = true;
				return node;
			}
			node = child;
		}
		f->node = node;
	}
	memo_put(u, h, node);
	return node;
}

static inline uint32_t find_node(struct mt_unwind *u, uint64_t h)
{
	struct memo *set = memo_set(u, h);

	for (int i = 0; i < MEMO_WAYS; i++)
		if (set[i].hash == h && set[i].node) {
			if (u->kept_count && u->barrier == 0 && u->ground == &u->range)
				u->kept[u->kept_count - 1].node = set[i].node;
			return set[i].node;
		}
	return resolve(u, h);
}

/* The innermost `depth` frames; what is kept is of no use then, or its outer end would differ from this one's. */
static bool too_deep(const struct mt_unwind *u)
{
	return (unsigned)(u->join + 1) + u->new_count > u->depth;
}

/* The walk is done: the node of what it found. */
static __attribute__((noinline)) uint32_t conclude(struct mt_unwind *u)
{
	u->stats.captures++;
	u->stats.joined += u->join >= 0;
	u->stats.frames += u->new_count;
	u->cut |= u->join >= 0 && u->kept_cut;
	u->kept_full = u->new_count - u->cells == u->depth;
	return find_node(u, absorb(u));
}

/* Another thread's state, or one that was left in the middle of a capture, is as good as none. */
static __attribute__((noinline)) void start_anew(struct mt_unwind *u, uint64_t thread)
{
	u->kept_count = 0;
	u->range = (struct mt_range){ 0 };
	u->thread = thread;
}

uint32_t mt_unwind_capture(struct mt_unwind *u, const struct mt_regs *at, bool *truncated)
{
	uint32_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE), node;

	if (u->busy || u->thread != thread_pointer())
		start_anew(u, thread_pointer());
	u->busy = true;
	in_order();
	if (!mt_range_enter(&u->range, (uintptr_t)__builtin_frame_address(0)) || u->epoch != now || u->kept_full)
		u->kept_count = 0;
	u->epoch = now;
	walk(u, at, true);
	if (u->join >= 0 && too_deep(u))
		walk(u, at, false);
	node = conclude(u);
	*truncated = *truncated || u->cut;
	in_order();
	u->busy = false;
	return node;
}

unsigned mt_unwind_frames(const struct mt_unwind *u, uint64_t *pc, unsigned most)
{
	unsigned unkept = u->ground == &u->range ? u->barrier : u->new_count, n = 0;

	for (unsigned i = 0; i < unkept && n < most; i++)
		if (!(u->new[i].flags & CELL))
			pc[n++] = strip(u->new[i].ra);
	for (unsigned i = u->kept_count; i-- > 0 && n < most;)
		if (!(u->kept[i].flags & CELL))
			pc[n++] = strip(u->kept[i].ra);
	return n;
}

struct mt_unwind_stats mt_unwind_stats(const struct mt_unwind *u)
{
	return u->stats;
}
