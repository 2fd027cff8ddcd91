#include "shim/arch/code.h"
#include "shim/base/tables.h"
#include "shim/stack/range.h"
#include "shim/stack/rules.h"

#define MAX_WIDE 4096u

uint64_t (*mt_rules)[MT_RULES_WAYS];

/* Rules that don't fit into a word. Values, not tied to a pc: they are shared, stay true, and are never removed. */
static struct mt_rule *wide; /* MAX_WIDE */
static uint32_t wide_count;  /* entries below are whole: release in wide_add, acquire by readers */
static uint32_t wide_taken;

void mt_rules_tables(struct mt_tables *t)
{
	mt_rules = mt_tables_take(t, MT_RULES_SETS * sizeof(*mt_rules));
	wide = mt_tables_take(t, MAX_WIDE * sizeof(*wide));
}

static bool same(const struct mt_rule *a, const struct mt_rule *b)
{
	return a->kind == b->kind && a->cfa == b->cfa && a->fp == b->fp && a->ra == b->ra;
}

/* Index of r in the list, or MAX_WIDE if it has no room. */
static uint32_t wide_index(const struct mt_rule *r)
{
	uint32_t n = __atomic_load_n(&wide_count, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < n; i++)
		if (same(&wide[i], r))
			return i;
	/* An entry becomes visible when all before it are; a thread that finds another one busy doesn't wait. */
	if (n == MAX_WIDE ||
	    !__atomic_compare_exchange_n(&wide_taken, &n, n + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return MAX_WIDE;
	wide[i] = *r;
	__atomic_store_n(&wide_count, i + 1, __ATOMIC_RELEASE);
	return i;
}

struct mt_rule mt_rules_unpack(uint64_t word)
{
	struct mt_rule r = { .kind = mt_rules_kind(word) };

	if (r.kind == MT_RULE_WIDE) {
		/* pairs with the release in wide_index: the word was stored after it, by a thread that saw it */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return wide[word & (MAX_WIDE - 1)];
	}
	r.cfa = (int32_t)mt_rules_cfa(word);
	r.fp = -(int32_t)mt_rules_saved(word) * 8;
	r.ra = -(int32_t)mt_rules_ra(word);
	return r;
}

/* The low 25 bits of a word, or 0 if the rule can't be kept. */
static uint64_t pack(const struct mt_rule *r)
{
	uint64_t word = (uint64_t)r->kind << 22 | (uint64_t)(r->cfa / 8) << 9 | (uint64_t)(-r->fp / 8);
	struct mt_rule back;
	uint32_t i;

	if (r->cfa >= 0 && r->cfa < 8 << 13 && r->fp <= 0 && r->fp > -(8 << 9) && r->kind != MT_RULE_WIDE) {
		back = mt_rules_unpack(word);
		if (same(&back, r))
			return word;
	}
	i = wide_index(r);
	return i < MAX_WIDE ? (uint64_t)MT_RULE_WIDE << 22 | i : 0;
}

static void store_rule(uint64_t key, uint32_t epoch, uint64_t rule)
{
	uint64_t *set = mt_rules[mt_rules_set(key)];
	uint64_t word = (key >> MT_RULES_SETS_LOG) << 29 | (uint64_t)(epoch & 15) << 25 | rule;
	static uint32_t turn;
	uint32_t way = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % MT_RULES_WAYS;

	for (uint32_t i = 0; i < MT_RULES_WAYS; i++) {
		uint64_t old = __atomic_load_n(&set[i], __ATOMIC_RELAXED);
		if (!old || old >> 25 == word >> 25) {
			way = i;
			break;
		}
	}
	__atomic_store_n(&set[way], word, __ATOMIC_RELEASE);
}

void mt_rules_wipe(void)
{
	for (uint32_t i = 0; mt_rules && i < MT_RULES_SETS; i++)
		for (uint32_t k = 0; k < MT_RULES_WAYS; k++)
			if (__atomic_load_n(&mt_rules[i][k], __ATOMIC_RELAXED))
				__atomic_store_n(&mt_rules[i][k], 0, __ATOMIC_RELAXED);
}

/* ---- from a row of .eh_frame to a rule ---- */

/* Offsets from the CFA: a kept frame holds the distance of two of them in 16 bits, times 8. */
static bool small(int64_t n)
{
	return n >= -(1 << 17) && n < 1 << 17;
}

/* CFA = *(fp + n), as gcc writes it: DW_OP_breg<fp> n, DW_OP_deref. */
static bool cfa_in_cell(const struct mt_cfi_row *row, int32_t *n)
{
	struct mt_dwarf d = { (const uint8_t *)(uintptr_t)row->cfa_n, (const uint8_t *)(uintptr_t)row->cfa_n + 16 };
	uint64_t length = mt_dwarf_uleb(&d);
	int64_t off;

	if (length < 3 || length > 8)
		return false;
	d.end = d.p + length;
	if (*d.p++ != 0x70 + MT_CFI_FP)
		return false;
	off = mt_dwarf_sleb(&d);
	*n = (int32_t)off;
	return off >= -4096 && off < 4096 && d.p + 1 == d.end && *d.p == 0x06;
}

/* Caller's fp = *fp: DW_OP_breg<fp> 0. */
static bool fp_in_fp(const struct mt_cfi_row *row)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)row->n[MT_CFI_FP];

	return row->how[MT_CFI_FP] == MT_CFI_AT_EXPR && p[0] == 2 && p[1] == 0x70 + MT_CFI_FP && p[2] == 0;
}

static struct mt_rule rule_of(const struct mt_cfi_row *row, bool signal)
{
	struct mt_rule r = { .kind = MT_RULE_WIDE };
	uint8_t how_ra = row->how[MT_CFI_RA], how_fp = row->how[MT_CFI_FP];

	if (signal)
		return (struct mt_rule){ .kind = MT_RULE_SIGNAL };
	if (how_ra == MT_CFI_UNDEFINED)
		return (struct mt_rule){ .kind = MT_RULE_END };
	if (how_ra == MT_CFI_AT && small(row->n[MT_CFI_RA]))
		r.ra = (int32_t)row->n[MT_CFI_RA];
	if (how_ra != MT_CFI_AT && !(how_ra == MT_CFI_SAME && MT_ARCH_LINK_REGISTER))
		return (struct mt_rule){ .kind = MT_RULE_WIDE };
	if (row->how[MT_CFI_SP] != MT_CFI_SAME)
		return (struct mt_rule){ .kind = MT_RULE_WIDE };
	if (row->cfa_is_expr) {
		if (!cfa_in_cell(row, &r.cfa) || !fp_in_fp(row) || !r.ra)
			return (struct mt_rule){ .kind = MT_RULE_WIDE };
		r.kind = MT_RULE_CELL;
		return r;
	}
	if (how_fp == MT_CFI_AT && small(row->n[MT_CFI_FP]))
		r.fp = (int32_t)row->n[MT_CFI_FP];
	if ((how_fp != MT_CFI_SAME && !r.fp) || row->cfa_n < 0 || row->cfa_n > INT32_MAX)
		return (struct mt_rule){ .kind = MT_RULE_WIDE };
	r.cfa = (int32_t)row->cfa_n;
	r.kind = row->cfa_reg == MT_CFI_SP ? MT_RULE_SP : row->cfa_reg == MT_CFI_FP ? MT_RULE_FP : MT_RULE_WIDE;
	return r;
}

/* ---- code without unwind tables ---- */

/* Code of a JIT, or of an assembler file without tables. A word of somebody's data that is taken for a return
 * address must not become a frame: it has to point behind a call. */
static struct mt_rule bare(uint64_t pc, bool exact, bool in_module)
{
	struct mt_rule r = { .kind = MT_RULE_NONE, .cfa = in_module ? 0 : MT_RULE_JIT, .ra = -8 };
	const uint8_t *p = (const uint8_t *)(uintptr_t)pc;
	int before = mt_range_probe(pc - 8) ? 8 : (int)(pc % 8);

	if (!mt_range_probe(pc))
		return r;
	if (mt_range_probe(pc + 8) && mt_arch_is_sigreturn(p))
		r.kind = MT_RULE_SIGNAL;
	else if (in_module && !exact && mt_arch_is_after_call(p, before) && mt_range_probe(pc + MT_ARCH_INIT_BYTES) &&
		 mt_arch_in_init(p))
		r = (struct mt_rule)MT_ARCH_INIT_RULE;
	else if (exact || mt_arch_is_after_call(p, before))
		r.kind = MT_RULE_BARE;
	return r;
}

struct mt_rule mt_rules_make(struct mt_cfi *c, uint64_t pc, bool exact, uint32_t epoch)
{
	uint64_t look = exact ? pc : pc - 1, packed;
	struct mt_rule r = { .kind = MT_RULE_NONE };
	enum mt_eh found;

	if (!mt_arch_pc_possible(pc))
		return r;
	found = mt_ehframe_find(&c->eh, look);
	if (found == MT_EH_UNCOVERED && !exact) {
		/* A function nobody called, but made to be returned to, like makecontext's last: pc is its start. */
		look = pc;
		if (mt_ehframe_find(&c->eh, look) == MT_EH_FOUND && c->eh.fde.start == pc)
			found = MT_EH_FOUND;
	}
	if (found != MT_EH_FOUND)
		r = bare(pc, exact, found == MT_EH_UNCOVERED);
	else if (mt_cfi_run(c, look))
		r = rule_of(&c->row, c->eh.fde.signal);
	packed = r.kind != MT_RULE_NONE ? pack(&r) : 0;
	if (packed)
		store_rule(mt_arch_pc_key(pc, exact), epoch, packed);
	return r;
}
