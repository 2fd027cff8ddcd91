/* See shim/arch/registers.h. */
#ifndef MT_ARCH_X86_64_REGISTERS_H
#define MT_ARCH_X86_64_REGISTERS_H

#define MT_CFI_REGS 17 /* rax rdx rcx rbx rsi rdi rbp rsp r8-r15, return address */
#define MT_CFI_FP   6
#define MT_CFI_SP   7
#define MT_CFI_RA   16

#define MT_ARCH_LINK_REGISTER 0
#define MT_ARCH_PLT_PUSHED    0

#define MT_REGS_HERE(r) \
	__asm__ volatile("leaq 0f(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2\n0:" \
			 : "=&r"((r).pc), "=&r"((r).sp), "=&r"((r).fp) \
			 : \
			 : "memory"); \
	(r).lr = 0; \
	(r).called = false

static inline __attribute__((always_inline)) void mt_arch_preserved(uint64_t *regs)
{
	__asm__ volatile("movq %%rbx, 24(%0)\n\tmovq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\t"
			 "movq %%r14, 112(%0)\n\tmovq %%r15, 120(%0)"
			 :
			 : "r"(regs)
			 : "memory");
}

static inline uint64_t mt_arch_thread(void)
{
	uint64_t tp;

	__asm__("movq %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline uint64_t mt_arch_strip(uint64_t ra)
{
	return ra;
}

static inline uint64_t mt_arch_signal_register(uint64_t sp, unsigned reg)
{
	static const uint8_t place[MT_CFI_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						    REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	return sp + offsetof(ucontext_t, uc_mcontext.gregs) + 8 * place[reg];
}

static inline uint64_t mt_arch_signal_pc(uint64_t sp)
{
	return mt_arch_signal_register(sp, MT_CFI_RA);
}

/* User space ends at 2^47. */
static inline uint64_t mt_arch_pc_key(uint64_t pc, bool exact)
{
	return pc << 1 | exact;
}

static inline bool mt_arch_pc_possible(uint64_t pc)
{
	return pc >> 47 == 0 && pc >= 4096;
}

static inline uint32_t mt_arch_saved_ra(uint32_t saved)
{
	(void)saved;
	return 8;
}

#endif
