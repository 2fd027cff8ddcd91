/*
 * Unwind rules: how to get from a pc to the caller's frame, in 8 bytes.
 *
 * Nearly every pc needs the same few facts: is the CFA the stack pointer or the frame pointer plus so much, and
 * where is the caller's frame pointer saved. These are worked out once from .eh_frame and kept for the whole process
 * in a table of sets of eight 64-bit words: one cache line a set. A word holds the part of the pc that its
 * place in the table does not say, so it names its pc exactly, and the rule. It is read and written by one
 * relaxed access: a reader sees a word that somebody stored whole, or none, and a word is true by itself.
 * It also holds four bits of the epoch in which the rule was made. When modules go away the epoch goes up and the
 * table is wiped; a thread that stores a rule it made just before makes a word that no longer matches, unless
 * it slept between its look at the epoch and its store through sixteen dlclose calls.
 *
 *	63 .. 29 tag of (pc, exact)   28 .. 25 epoch   24 .. 22 kind   21 .. 9 CFA offset / 8   8 .. 0 saved fp / 8
 *
 * Rules with other numbers are kept in a list of values that such words point into.
 */
#ifndef MT_STACK_RULES_H
#define MT_STACK_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stack/cfi.h"

enum mt_rule_kind {
	MT_RULE_NONE = 0,
	MT_RULE_END,    /* the outermost frame */
	MT_RULE_SP,     /* CFA = sp + cfa */
	MT_RULE_FP,     /* CFA = fp + cfa */
	MT_RULE_CELL,   /* CFA = *(fp + cfa), caller's fp = *fp: a function that realigns its stack */
	MT_RULE_BARE,   /* no unwind table: frame pointers, if that looks right */
	MT_RULE_SIGNAL, /* the registers of the interrupted code are on the stack */
	MT_RULE_WIDE,   /* in a word: the rule is in the list. In a rule: only the full interpreter can do it */
};

struct mt_rule {
	int32_t cfa;
	int32_t fp; /* caller's fp is at CFA + fp; 0: not saved */
	int32_t ra; /* return address is at CFA + ra; 0: still in the link register (aarch64) */
	uint32_t kind;
};

#define MT_RULE_JIT 8 /* cfa of a MT_RULE_BARE outside all modules: ask again whether one was loaded there */

#define MT_RULES_SETS_LOG 13
#define MT_RULES_SETS     (1u << MT_RULES_SETS_LOG)
#define MT_RULES_WAYS     8

extern uint64_t (*mt_rules)[MT_RULES_WAYS] __attribute__((visibility("hidden"))); /* MT_RULES_SETS of them */

/* Works out the rule and keeps it. */
struct mt_rule mt_rules_make(struct mt_cfi *scratch, uint64_t pc, bool exact, uint32_t epoch);

/* Modules went away: forgets everything. The caller has raised the epoch. */
void mt_rules_wipe(void);

/* Invertible given the tag (key >> 13), so that set and tag together are the key. */
static inline uint32_t mt_rules_set(uint64_t key)
{
	return (uint32_t)(key ^ key >> 13 ^ key >> 26) & (MT_RULES_SETS - 1);
}

static inline enum mt_rule_kind mt_rules_kind(uint64_t word)
{
	return (word >> 22) & 7;
}

/* Of a word of kind MT_RULE_SP or MT_RULE_FP: the CFA's offset, the place of the saved fp below the CFA in units of 8
 * bytes (0: not saved), the place of the return address below the CFA in bytes. */
static inline uint32_t mt_rules_cfa(uint64_t word)
{
	return (uint32_t)(word >> 9 & 0x1fff) * 8;
}

static inline uint32_t mt_rules_saved(uint64_t word)
{
	return word & 0x1ff;
}

static inline uint32_t mt_rules_ra(uint64_t word)
{
	return mt_arch_saved_ra(mt_rules_saved(word));
}

/* The word for a pc, or 0. */
static inline uint64_t mt_rules_find(uint64_t pc, bool exact, uint32_t epoch)
{
	uint64_t key = mt_arch_pc_key(pc, exact), want = (key >> MT_RULES_SETS_LOG) << 4 | (epoch & 15);
	const uint64_t *set = mt_rules[mt_rules_set(key)];

	for (int i = 0; i < MT_RULES_WAYS; i++) {
		uint64_t word = __atomic_load_n(&set[i], __ATOMIC_RELAXED);
		if (word >> 25 == want && word)
			return word;
	}
	return 0;
}

struct mt_rule mt_rules_unpack(uint64_t word);

static inline struct mt_rule mt_rules_get(struct mt_cfi *scratch, uint64_t pc, bool exact, uint32_t epoch)
{
	uint64_t word = mt_rules_find(pc, exact, epoch);

	return word ? mt_rules_unpack(word) : mt_rules_make(scratch, pc, exact, epoch);
}

struct mt_tables;
void mt_rules_tables(struct mt_tables *t);

#endif
