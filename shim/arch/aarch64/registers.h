/* See shim/arch/registers.h. */
#ifndef MT_ARCH_AARCH64_REGISTERS_H
#define MT_ARCH_AARCH64_REGISTERS_H

#define MT_CFI_REGS 32 /* x0-x30, sp */
#define MT_CFI_FP   29
#define MT_CFI_SP   31
#define MT_CFI_RA   30

#define MT_ARCH_LINK_REGISTER 1
#define MT_ARCH_PLT_PUSHED    16

#define MT_REGS_HERE(r) \
	__asm__ volatile("mov %1, sp\n\tmov %2, x29\n\tmov %3, x30\n\tadr %0, 0f\n0:" \
			 : "=&r"((r).pc), "=&r"((r).sp), "=&r"((r).fp), "=&r"((r).lr) \
			 : \
			 : "memory"); \
	(r).called = false

static inline __attribute__((always_inline)) void mt_arch_preserved(uint64_t *regs)
{
	__asm__ volatile("stp x19, x20, [%0, #152]\n\tstp x21, x22, [%0, #168]\n\tstp x23, x24, [%0, #184]\n\t"
			 "stp x25, x26, [%0, #200]\n\tstp x27, x28, [%0, #216]\n\tstr x30, [%0, #240]"
			 :
			 : "r"(regs)
			 : "memory");
}

static inline uint64_t mt_arch_thread(void)
{
	uint64_t tp;

	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* It may carry a signature in its upper bits (pointer authentication). */
static inline uint64_t mt_arch_strip(uint64_t ra)
{
	register uint64_t x30 __asm__("x30") = ra;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri: a no-op where there are no signatures */
	return x30;
}

static inline uint64_t mt_arch_signal_register(uint64_t sp, unsigned reg)
{
	return sp + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs) + 8 * reg;
}

static inline uint64_t mt_arch_signal_pc(uint64_t sp)
{
	return mt_arch_signal_register(sp, 32);
}

/* User space ends at 2^48, and two bits of a pc are 0. */
static inline uint64_t mt_arch_pc_key(uint64_t pc, bool exact)
{
	return pc >> 1 | exact;
}

static inline bool mt_arch_pc_possible(uint64_t pc)
{
	return pc >> 48 == 0 && pc >= 4096 && (pc & 3) == 0;
}

/* A pair: frame pointer, link register. */
static inline uint32_t mt_arch_saved_ra(uint32_t saved)
{
	return saved * 8 - 8;
}

#endif
